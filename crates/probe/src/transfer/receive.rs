//! The receiving end.

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

/// Who says nothing for so long after connecting is hung up on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes one transfer. Dropping it ends it.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Received>>,
}

/// What arrived, and when. Times count from the answer to the last small message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Small messages that were answered.
    pub heartbeats: u32,
    /// Bytes after them, in order.
    pub bytes: u64,
    /// Until the last byte arrived, or until it was given up, if more was to come.
    pub took: Duration,
    /// Pauses of [`STALL`] and more, together.
    pub stalled: Duration,
    /// When the last of these pauses was over; `None`: there was none, or it never was.
    pub flows_since: Option<Duration>,
    /// Whether the sender said that this was all.
    pub ended: bool,
}

impl Receiver {
    /// Listens in the calling thread's namespace; port 0: any. Who does not know the secret is hung up on.
    ///
    /// # Errors
    /// Where the address cannot be bound.
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

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it where it has not ended by itself, and tells what arrived.
    pub fn finish(mut self) -> Received {
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

fn receive(listener: &TcpListener, secret: &Secret, ends: &AtomicBool) -> Received {
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
        let mut received = Received::default();
        // A connection that breaks has told what it has told.
        let _ = heartbeats(&stream, secret, ends, &mut received)
            .and_then(|()| take(&stream, ends, &mut received));
        if received.heartbeats > 0 {
            return received;
        }
    }
    Received::default()
}

/// Waits for something to read; `false`: it is to end.
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
    received: &mut Received,
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
        // Smaller than any send buffer.
        stream.write_all(&message)?;
        received.heartbeats += 1;
    }
    Ok(())
}

fn take(mut stream: &TcpStream, ends: &AtomicBool, received: &mut Received) -> io::Result<()> {
    let began = Instant::now();
    let mut buffer = vec![0; 256 * 1024];
    let mut last = Duration::ZERO;
    loop {
        let more = wait(stream, ends, None)?;
        let length = match stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && more => continue,
            // Given up, here or there.
            Err(_) => None,
            Ok(length) => Some(length),
        };
        let now = began.elapsed();
        let pause = now.saturating_sub(last);
        let stalled = pause >= STALL;
        match length {
            // The sender's last word may come late and delays nothing.
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
