//! Finds which size of TCP segments passes, one segment at a time. A bulk transfer on one machine
//! leaves in super-packets whose size no device checks; a single segment is a packet as on the
//! wire.
//!
//! One acknowledged segment proves that a size passes. That it does not is concluded when every
//! copy is lost, each on a connection of its own that carried small segments right before;
//! meanwhile the kernel retransmits each.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use wirecost_pmtu::likely_sizes;
use wirecost_sys::socket::tcp_info;

use crate::error::ProbeError;
use crate::message::Secret;
use crate::stream::{SMALL, SMALL_WRITE, StreamPath, connect, part};

/// Number of connections for one size.
const COPIES: usize = 3;
/// Number of sizes at once.
const WIDTH: usize = 16;
/// Number of rounds to narrow the search: each divides the gap by [`WIDTH`].
const ROUNDS: usize = 3;
/// Wait for an answer, in addition to two round trips. The kernel retransmits after 200 ms.
pub(crate) const WAIT: Duration = Duration::from_millis(250);
/// The same once a size is known to fail: a loss then only narrows the search.
const NARROWING: Duration = Duration::from_millis(80);
/// Length of TCP's timestamp option, bytes (RFC 7323).
const TIMESTAMPS: u32 = 12;

/// Sizes of segments that pass and fail, as IP packets, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segments {
    /// The largest that arrived; `None` if no connection carried even small segments.
    pub passes: Option<u32>,
    /// The smallest of which every copy was lost; `None` if there is none, or the ends of the
    /// connection agreed on a smaller MSS.
    pub fails: Option<u32>,
}

/// Finds which segments pass to a [`StreamServer`](crate::StreamServer) with the same secret: those
/// of `path.size` and, where these do not and `low` is given, smaller ones down to `low` bytes.
/// Takes at most about a second and some round trips.
///
/// # Errors
/// A socket cannot be made. What the path does is no error.
pub fn segments(
    from: IpAddr,
    to: SocketAddr,
    path: &StreamPath,
    low: Option<u32>,
    secret: &Secret,
) -> Result<Segments, ProbeError> {
    let ask = |size: u32, within: Duration| {
        let path = StreamPath { size, ..*path };
        one(from, to, &path, within, secret)
    };
    search(path.size, (low, low.is_some()), &ask)
        .map_err(|source| ProbeError::Socket { to, source })
}

/// Probes one size on one connection; the answer is waited for the given time and two round trips.
pub(crate) type SizeProbe<'a> = dyn Fn(u32, Duration) -> io::Result<Answer> + Sync + 'a;

/// Whether `size` passes and, where it does not and `low` is given, the largest size that does.
/// With `lost`, `size` was lost before, and smaller sizes are probed in the first round too.
pub(crate) fn search(
    size: u32,
    (low, lost): (Option<u32>, bool),
    ask: &SizeProbe<'_>,
) -> io::Result<Segments> {
    let mut found = Segments::default();
    let mut sizes = vec![size];
    if lost {
        sizes.extend(low.into_iter().flat_map(|low| between(low, size)));
    }
    let mut within = WAIT;
    for _ in 0..=ROUNDS {
        for (size, answer) in ask_all(&sizes, within, ask)? {
            match answer {
                Answer::Arrived(sent) => found.passes = found.passes.max(Some(sent)),
                Answer::Lost => found.fails = Some(found.fails.map_or(size, |it| it.min(size))),
                Answer::Untold => {}
            }
        }
        // Larger sizes may have been lost by chance.
        found.fails = found
            .fails
            .filter(|&fails| found.passes.is_none_or(|it| it < fails));
        let (Some(fails), Some(low)) = (found.fails, low) else {
            break;
        };
        sizes = between(found.passes.unwrap_or(low), fails);
        within = NARROWING;
        if sizes.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Sizes between the two, exclusive: likely ones if there are 4 to [`WIDTH`] of them, else evenly spaced ones.
fn between(above: u32, below: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = likely_sizes();
    sizes.retain(|size| (above + 1..below).contains(size));
    if sizes.len() > WIDTH || sizes.len() < 4 {
        let gap = below.saturating_sub(above);
        let parts = gap.min(WIDTH as u32 + 1).max(1);
        sizes = (1..parts).map(|part| above + gap * part / parts).collect();
    }
    sizes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A packet of this size arrived, which may be smaller than the one asked for; bytes.
    Arrived(u32),
    Lost,
    /// Not even small segments arrived.
    Untold,
}

fn ask_all(sizes: &[u32], within: Duration, ask: &SizeProbe<'_>) -> io::Result<Vec<(u32, Answer)>> {
    thread::scope(|scope| {
        let asked: Vec<_> = sizes
            .iter()
            .map(|&size| {
                let copy = || scope.spawn(move || ask(size, within));
                let copies = std::iter::repeat_with(copy).take(COPIES);
                (size, copies.collect::<Vec<_>>())
            })
            .collect();
        let answered = asked.into_iter().map(|(size, copies)| {
            let mut all = Vec::new();
            for copy in copies {
                all.push(copy.join().unwrap_or(Ok(Answer::Untold))?);
            }
            let arrived = all.iter().find(|it| matches!(it, Answer::Arrived(_)));
            let lost = all.iter().filter(|it| **it == Answer::Lost).count();
            let answer = match arrived {
                Some(arrived) => *arrived,
                None if lost == COPIES => Answer::Lost,
                None => Answer::Untold,
            };
            Ok((size, answer))
        });
        answered.collect()
    })
}

/// Length of a data segment's headers, bytes: IP, TCP, and timestamps where both ends use them.
pub(crate) const fn headers(to: SocketAddr, timestamps: bool) -> u32 {
    let plain = if to.is_ipv4() { 40 } else { 60 };
    plain + if timestamps { TIMESTAMPS } else { 0 }
}

/// One connection: small segments, then a single one of the size in question.
fn one(
    from: IpAddr,
    to: SocketAddr,
    path: &StreamPath,
    within: Duration,
    secret: &Secret,
) -> io::Result<Answer> {
    let within = within + path.wait * 2;
    let Ok(mut stream) = connect(from, to, path, (within, 1))? else {
        return Ok(Answer::Untold);
    };
    let info = tcp_info(&stream)?;
    let payload = info.snd_mss;
    let sent = (payload + headers(to, info.timestamps)).min(path.size);
    let head = [&secret.probe[..], &payload.to_be_bytes()].concat();
    stream.set_write_timeout(Some(within))?;
    let small = stream.write_all(&head).is_ok()
        && matches!(part(&mut stream, SMALL, SMALL_WRITE, within), Ok(true));
    if !small {
        return Ok(Answer::Untold);
    }
    let payload = payload as usize;
    Ok(match part(&mut stream, payload, payload, within) {
        Ok(_) => Answer::Arrived(sent),
        Err(_) => Answer::Lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamServer;

    #[test]
    fn a_loopback_carries_what_is_asked_for() {
        let home: IpAddr = [127, 0, 0, 1].into();
        let secret = Secret {
            probe: [5; 16],
            acknowledgement: [6; 8],
        };
        let server = StreamServer::start(home, secret).expect("a port");
        let path = StreamPath {
            size: 1500,
            bytes_per_second: 1e9,
            // Only a limit: on a loopback every answer comes.
            wait: Duration::from_secs(10),
        };
        let found = segments(home, server.address(), &path, Some(128), &secret).expect("a socket");
        assert_eq!((found.passes, found.fails), (Some(1500), None));
    }

    #[test]
    fn a_gap_shrinks_until_it_is_closed() {
        let (mut above, below) = (61, 1501);
        let mut rounds = 0;
        while let Some(last) = between(above, below).last() {
            above = *last;
            rounds += 1;
        }
        assert_eq!(above, 1500);
        assert!(rounds < 8, "{rounds}");
    }
}
