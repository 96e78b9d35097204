//! The receiving end of a transfer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirecost_sys::socket::poll_readable;

use super::{HEARTBEAT_BYTES, HEARTBEATS, LOOK, STALL};
use crate::error::ProbeError;
use crate::message::Secret;
use crate::stream::listen;

/// A connection that sends no small message for so long is closed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Receives one transfer, and ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<ReceiverResult>>,
}

/// What arrived, and when. Times are relative to the answer to the last small message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverResult {
    /// Number of small messages that were answered.
    pub heartbeats: u32,
    /// Number of bytes after them, in order.
    pub bytes: u64,
    /// Time until the last byte arrived or, if more was to come, until the transfer was given up.
    pub took: Duration,
    /// Total length of pauses of [`STALL`] or more.
    pub stalled: Duration,
    /// When the last of these pauses ended; `None` if there was none, or it did not end.
    pub flows_since: Option<Duration>,
    /// Whether the sender closed the stream after the last byte.
    pub ended: bool,
}

impl Receiver {
    /// Listens in the calling thread's namespace. Port 0 is any port. A client without the secret is disconnected.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn start(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        let failed = |source| ProbeError::Responder { address, source };
        let listener = listen(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name("transfer".into())
            .spawn(move || receive(&listener, &secret, &told))
            .map_err(failed)?;
        Ok(Self {
            address: bound,
            ends,
            thread: Some(thread),
        })
    }

    /// The address and port on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the transfer if it still runs, and returns what arrived.
    pub fn finish(mut self) -> ReceiverResult {
        self.ends.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join);
        joined.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn receive(listener: &TcpListener, secret: &Secret, ends: &AtomicBool) -> ReceiverResult {
    while !ends.load(Ordering::Relaxed) {
        let waited = poll_readable(&[listener.as_fd()], LOOK);
        if waited.is_err() {
            break;
        }
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let mut received = ReceiverResult::default();
        // A connection that breaks counts for what it carried.
        let _ = heartbeats(&stream, secret, ends, &mut received)
            .and_then(|()| take(&stream, ends, &mut received));
        if received.heartbeats > 0 {
            return received;
        }
    }
    ReceiverResult::default()
}

/// Waits for data; `false` if the transfer has to end or `until` has passed.
fn wait(stream: &TcpStream, ends: &AtomicBool, until: Option<Instant>) -> io::Result<bool> {
    while !ends.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
        if !poll_readable(&[stream.as_fd()], LOOK)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn heartbeats(
    mut stream: &TcpStream,
    secret: &Secret,
    ends: &AtomicBool,
    received: &mut ReceiverResult,
) -> io::Result<()> {
    let connected = Instant::now();
    for _ in 0..HEARTBEATS {
        let mut message = [0; HEARTBEAT_BYTES];
        let mut filled = 0;
        while filled < message.len() {
            let until = (received.heartbeats == 0).then_some(connected + PATIENCE);
            if !wait(stream, ends, until)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match stream.read(&mut message[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if message[..secret.probe.len()] != secret.probe {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // The message is smaller than any send buffer.
        stream.write_all(&message)?;
        received.heartbeats += 1;
    }
    Ok(())
}

fn take(
    mut stream: &TcpStream,
    ends: &AtomicBool,
    received: &mut ReceiverResult,
) -> io::Result<()> {
    let began = Instant::now();
    let mut buffer = vec![0; 256 * 1024];
    let mut last = Duration::ZERO;
    loop {
        let more = wait(stream, ends, None)?;
        let length = match stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && more => continue,
            // Given up by this end or the other.
            Err(_) => None,
            Ok(length) => Some(length),
        };
        let now = began.elapsed();
        let pause = now.saturating_sub(last);
        let stalled = pause >= STALL;
        match length {
            // The end of the stream may come late, which is no stall.
            Some(0) => {
                received.ended = true;
                return Ok(());
            }
            Some(length) => {
                received.bytes += length as u64;
                received.flows_since = if stalled {
                    Some(now)
                } else {
                    received.flows_since
                };
                last = now;
            }
            None => received.flows_since = if stalled { None } else { received.flows_since },
        }
        received.took = now;
        received.stalled += if stalled { pause } else { Duration::ZERO };
        if length.is_none() {
            return Ok(());
        }
    }
}
