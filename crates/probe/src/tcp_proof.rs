//! Proof over TCP to any open port: the other end's kernel acknowledges a full segment, whatever
//! the program behind the port does with it. No agent is needed there.
//!
//! Each segment has its own connection, as for [`segments`](crate::segments()). Its content is newlines.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_sys::socket::tcp_info;

use crate::error::ProbeError;
use crate::segments::{Answer, Segments, headers, search};
use crate::stream::{StreamOutcome, StreamPath, connect};

/// Number of connections tried at once to see whether the port is open.
const TRIES: usize = 3;
/// Time limit to connect while no round trip is known: a SYN is sent again after a second, and a
/// path of three seconds still answers.
const CONNECTING: Duration = Duration::from_millis(3600);
/// Interval at which the kernel is asked what was acknowledged.
const ACKNOWLEDGED_INTERVAL: Duration = Duration::from_millis(2);

/// Result of the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpProof {
    /// Why no connection was made; `None` if one was.
    pub failed: Option<StreamOutcome>,
    /// IP packet size of a full segment of this connection, bytes.
    pub full: u32,
    /// Sizes of segments that pass and fail.
    pub segments: Segments,
    /// Bytes of full segments that were acknowledged.
    pub acknowledged: u64,
    /// Number of segments that were retransmitted.
    pub retransmits: u32,
    /// MSS of the segments that this end sends, bytes: the one that the far end announced, or less where this host
    /// sends less.
    pub snd_mss: u32,
    /// MSS that this end announced, bytes.
    pub adv_mss: u32,
    /// The socket's path MTU when the connection was made and after the first segment, bytes.
    pub pmtu: (u32, u32),
}

/// Sends full segments to an open port. Segments are at most `path.size` bytes; where they are lost,
/// smaller ones down to `low` are tried.
///
/// # Errors
/// A socket cannot be made. What the path does is no error.
pub fn tcp_proof(
    from: IpAddr,
    to: SocketAddr,
    path: &StreamPath,
    low: u32,
) -> Result<TcpProof, ProbeError> {
    let failed = |source| ProbeError::Socket { to, source };
    let mut proof = TcpProof {
        failed: None,
        full: 0,
        segments: Segments::default(),
        acknowledged: 0,
        retransmits: 0,
        snd_mss: 0,
        adv_mss: 0,
        pmtu: (0, 0),
    };
    let began = Instant::now();
    let stream = match connect(from, to, path, (CONNECTING, TRIES)).map_err(failed)? {
        Ok(stream) => stream,
        Err(why) => {
            proof.failed = Some(why);
            return Ok(proof);
        }
    };
    let path = StreamPath {
        wait: path.wait.max(began.elapsed()),
        ..*path
    };
    let info = tcp_info(&stream).map_err(failed)?;
    proof.full = (info.snd_mss + headers(to, info.timestamps)).min(path.size);
    (proof.snd_mss, proof.adv_mss) = (info.snd_mss, info.adv_mss);
    proof.pmtu = (info.pmtu, info.pmtu);
    // Even if the program closes the connection at the first byte, its kernel acknowledges the segment first.
    let (first, told) =
        acknowledged(stream, info.snd_mss as usize, within(&path)).map_err(failed)?;
    if first {
        proof.acknowledged = u64::from(info.snd_mss);
    }
    proof.retransmits = told.total_retrans;
    proof.pmtu.1 = told.pmtu.min(info.pmtu);
    let ask = |size: u32, beside: Duration| one(from, to, (size, beside), &path);
    proof.segments = search(proof.full, (Some(low), !first), &ask).map_err(failed)?;
    Ok(proof)
}

fn within(path: &StreamPath) -> Duration {
    crate::segments::WAIT + path.wait * 2
}

/// Probes one size: a connection with a single segment.
fn one(
    from: IpAddr,
    to: SocketAddr,
    (size, beside): (u32, Duration),
    path: &StreamPath,
) -> io::Result<Answer> {
    let path = StreamPath { size, ..*path };
    let within = beside + path.wait * 2;
    let Ok(stream) = connect(from, to, &path, (within.max(crate::segments::WAIT), 1))? else {
        return Ok(Answer::Untold);
    };
    let info = tcp_info(&stream)?;
    let (arrived, told) = acknowledged(stream, info.snd_mss as usize, within)?;
    // A router's message may have made the kernel send smaller segments.
    let mss = told.snd_mss.min(info.snd_mss);
    let sent = (mss + headers(to, info.timestamps)).min(size);
    Ok(if arrived {
        Answer::Arrived(sent)
    } else {
        Answer::Lost
    })
}

/// Sends one segment of `bytes`. Returns whether it was acknowledged, and the last `TCP_INFO` of the connection.
fn acknowledged(
    mut stream: TcpStream,
    bytes: usize,
    within: Duration,
) -> io::Result<(bool, wirecost_sys::socket::TcpInfo)> {
    let before = tcp_info(&stream)?;
    stream.set_write_timeout(Some(within))?;
    if stream.write_all(&vec![b'\n'; bytes]).is_err() {
        return Ok((false, before));
    }
    let until = Instant::now() + within;
    let mut last = before;
    loop {
        let info = tcp_info(&stream)?;
        // After a reset most of `TCP_INFO` is zero.
        if info.snd_mss > 0 {
            last = info;
        }
        if info.bytes_acked.saturating_sub(before.bytes_acked) >= bytes as u64 {
            return Ok((true, last));
        }
        if Instant::now() > until {
            return Ok((false, last));
        }
        thread::sleep(ACKNOWLEDGED_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const PATH: StreamPath = StreamPath {
        size: 1500,
        bytes_per_second: 1e9,
        wait: Duration::from_millis(10),
    };

    #[test]
    fn a_port_that_somebody_listens_on_is_enough() {
        let home: IpAddr = [127, 0, 0, 1].into();
        let listener = TcpListener::bind((home, 0)).expect("a port");
        let to = listener.local_addr().expect("an address");
        let proof = tcp_proof(home, to, &PATH, 128).expect("a socket");
        assert_eq!(proof.failed, None);
        assert_eq!(proof.segments.passes, Some(1500));
        assert_eq!(proof.segments.fails, None);
        assert!(proof.acknowledged > 1400, "{proof:?}");
        drop(listener);
        let closed = tcp_proof(home, to, &PATH, 128).expect("a socket");
        assert_eq!(closed.failed, Some(StreamOutcome::Refused));
    }
}
