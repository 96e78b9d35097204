//! The far end: acknowledges the probes of one run, and says how they arrived.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wirecost_sys::socket::{enable_fragment_size, poll_readable, receive_arrived};

use crate::error::ProbeError;
use crate::message::{Secret, answer};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Opens a responder in the calling thread's namespace; port 0: any.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn start(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        let failed = |source| ProbeError::Responder { address, source };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        // Without it, an old kernel's, a datagram in fragments counts as whole.
        let _ = enable_fragment_size(&socket);
        let bound = socket.local_addr().map_err(failed)?;
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name("responder".into())
            .spawn(move || respond(&socket, &secret, &told))
            .map_err(failed)?;
        Ok(Self {
            address: bound,
            ends,
            thread: Some(thread),
        })
    }

    /// Where it answers.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn respond(socket: &UdpSocket, secret: &Secret, ends: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !ends.load(Ordering::Relaxed) {
        if poll_readable(&[socket.as_fd()], LOOK).is_err() {
            return;
        }
        loop {
            match receive_arrived(socket, &mut buffer) {
                Ok(Some(arrived)) => {
                    let datagram = &buffer[..arrived.length.min(buffer.len())];
                    if let Some(answer) = answer(datagram, arrived.fragment, secret) {
                        // Lost on the way or refused here: the prober asks again.
                        let _ = socket.send_to(&answer, arrived.from);
                    }
                }
                Ok(None) => break,
                // An ICMP message about an answer of ours; the socket stays good.
                Err(_) if ends.load(Ordering::Relaxed) => return,
                Err(_) => {}
            }
        }
    }
}
