//! Answers requests for the machines that run at this end of their move: one datagram for each request.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::Socket;
use wirecost_model::end_window::End;
use wirecost_sys::socket::poll_readable;

use super::liveness::GuestLiveness;
use crate::shared::Shared;

/// How often a thread without requests checks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Polling interval while requests wait for a tick of a guest's timer, which ticks each millisecond.
const TICK_LOOK: Duration = Duration::from_micros(100);
/// Upper bound on requests that wait: 16 ticks of as many machines as may be watched.
const WAITING: usize = 256;

/// Bytes of a request, and of its answer: tag 8, machine 4, end that answered 4, time of sending 8; big-endian.
pub(crate) const REQUEST_BYTES: usize = 24;

/// A request, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) machine: u32,
    /// The end that answered; `None` in a request.
    pub(crate) by: Option<End>,
    /// When the request was sent, nanoseconds by the clock of the end that asks.
    pub(crate) sent: u64,
}

impl Request {
    pub(crate) fn encode(self, tag: u64) -> [u8; REQUEST_BYTES] {
        let by = match self.by {
            None => 0u32,
            Some(End::Client) => 1,
            Some(End::Server) => 2,
        };
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..8].copy_from_slice(&tag.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.machine.to_be_bytes());
        bytes[12..16].copy_from_slice(&by.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sent.to_be_bytes());
        bytes
    }

    /// Decodes a request or an answer; `None` where it is malformed or has another tag.
    pub(crate) fn decode(bytes: &[u8], tag: u64) -> Option<Self> {
        let bytes: &[u8; REQUEST_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map(|word| u32::from_be_bytes(*word))
        };
        let long = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map(|long| u64::from_be_bytes(*long))
        };
        if long(0)? != tag {
            return None;
        }
        Some(Self {
            machine: word(8)?,
            by: match word(12)? {
                0 => None,
                1 => Some(End::Client),
                2 => Some(End::Server),
                _ => return None,
            },
            sent: long(16)?,
        })
    }
}

/// A thread that answers for the machines that run at this end. It ends when dropped.
#[derive(Debug)]
pub(crate) struct Service {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts a thread that answers the requests to a bound socket.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking; the thread cannot be created.
    pub(crate) fn start(shared: &Arc<Shared>, end: End, socket: Socket) -> io::Result<Self> {
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        let ending = Arc::new(AtomicBool::new(false));
        let (shared, told) = (Arc::clone(shared), Arc::clone(&ending));
        let thread = thread::Builder::new()
            .name("machine-answers".to_owned())
            .stack_size(128 << 10)
            .spawn(move || answer(&shared, end, &socket, &told))?;
        Ok(Self {
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A request that waits for the guest's next tick.
struct PendingRequest {
    request: Request,
    from: SocketAddr,
    /// Ticks of the guest when the request arrived.
    ticks: u32,
}

fn answer(shared: &Shared, end: End, socket: &UdpSocket, ending: &AtomicBool) {
    let tag = shared.watch_tag();
    let mut waiting: VecDeque<PendingRequest> = VecDeque::new();
    // Errors are ICMP errors from an observer that is gone.
    let reply = |request: Request, from: SocketAddr| {
        let answer = Request {
            by: Some(end),
            ..request
        };
        let _ = socket.send_to(&answer.encode(tag), from);
    };
    while !ending.load(Ordering::Relaxed) {
        if waiting.is_empty() {
            let _ = poll_readable(&[socket.as_fd()], LOOK_EVERY);
        } else {
            thread::sleep(TICK_LOOK);
        }
        for (request, from) in received(socket, tag) {
            match shared.guest_liveness(end, request.machine) {
                Some(GuestLiveness::Runs) => reply(request, from),
                Some(GuestLiveness::Ticks(ticks)) => waiting.push_back(PendingRequest {
                    request,
                    from,
                    ticks,
                }),
                None => {}
            }
        }
        waiting.retain(
            |one| match shared.guest_liveness(end, one.request.machine) {
                Some(GuestLiveness::Ticks(now)) if now == one.ticks => true,
                Some(_) => {
                    reply(one.request, one.from);
                    false
                }
                // The guest was stopped before it could answer.
                None => false,
            },
        );
        let surplus = waiting.len().saturating_sub(WAITING);
        waiting.drain(..surplus);
    }
}

/// The requests that have arrived, at most [`WAITING`].
fn received(socket: &UdpSocket, tag: u64) -> Vec<(Request, SocketAddr)> {
    let mut bytes = [0; REQUEST_BYTES + 1];
    let mut requests = Vec::new();
    for _ in 0..WAITING {
        match socket.recv_from(&mut bytes) {
            Ok((length, from)) => {
                let request = Request::decode(&bytes[..length], tag);
                requests.extend(request.map(|request| (request, from)));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_reads_back_and_a_stranger_s_does_not() {
        for by in [None, Some(End::Client), Some(End::Server)] {
            let request = Request {
                machine: 7,
                by,
                sent: 1 << 40,
            };
            let bytes = request.encode(9);
            assert_eq!(Request::decode(&bytes, 9), Some(request));
            assert_eq!(Request::decode(&bytes, 8), None);
            assert_eq!(Request::decode(&bytes[1..], 9), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_judged_without_a_panic(bytes: Vec<u8>, tag: u64) {
            let _ = Request::decode(&bytes, tag);
        }
    }
}
