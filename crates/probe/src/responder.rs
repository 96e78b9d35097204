//! The far end of a survey: acknowledges the probes of one run, and how they arrived.

use std::io;
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::SockRef;
use wirecost_sys::socket::{enable_fragment_size, poll_readable, receive_arrived};

use crate::error::ProbeError;
use crate::flow::datagrams;
use crate::message::{Secret, answer};
use crate::tap::Tap;

/// Wait for a datagram or for the end of the responder. Its length does not matter, and nothing wakes up in between.
const WAIT: Duration = Duration::from_mins(10);

/// Receive buffer, bytes: what arrives at 40 MB/s in a tenth of a second and more, until a busy
/// machine schedules the responder. The kernel accounts about twice a datagram's size, and doubles
/// this value in turn (socket(7), `SO_RCVBUF`). The default holds only some twenty large datagrams.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Answers probes on one or more sockets, from one thread, until it is dropped.
#[derive(Debug)]
pub struct Responder {
    addresses: Vec<SocketAddr>,
    /// Ends the thread when it is closed.
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Starts a responder in the calling thread's namespace. Port 0 is any port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn start(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        Self::over(vec![Self::bind(address)?], secret)
    }

    /// Starts a responder on a port that another socket of this host owns, such as a live tunnel's:
    /// it captures what arrives for that port, and answers in its name. No guest sees the probes:
    /// they have no valid tunnel header (for VXLAN one without a network identifier, for Geneve one
    /// of an unknown version, RFC 7348 and RFC 8926), so that the tunnel drops them.
    ///
    /// Datagrams are captured before the host's own filters.
    ///
    /// # Errors
    /// `CAP_NET_RAW` is missing.
    pub fn start_tapped(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        let tap = Tap::open(address).map_err(|source| ProbeError::Tap { address, source })?;
        Self::run(vec![address], vec![ProbeSource::Tap(tap)], secret)
    }

    /// A socket for [`over`](Self::over), in the calling thread's namespace, where it stays. Port 0 is any port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<UdpSocket, ProbeError> {
        let bound = datagrams(address);
        let socket = bound.map_err(|source| ProbeError::Responder { address, source })?;
        // The buffer is smaller where `net.core.rmem_max` limits it.
        let _ = SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
        // Old kernels lack this; a datagram in fragments then counts as whole.
        let _ = enable_fragment_size(&socket);
        Ok(socket)
    }

    /// Starts a responder over bound sockets, which may be of different namespaces.
    ///
    /// # Errors
    /// A socket has no address, or no thread can be started.
    pub fn over(sockets: Vec<UdpSocket>, secret: Secret) -> Result<Self, ProbeError> {
        let addresses: io::Result<Vec<_>> = sockets.iter().map(UdpSocket::local_addr).collect();
        let addresses = addresses.map_err(failed)?;
        let sources = sockets.into_iter().map(ProbeSource::Socket).collect();
        Self::run(addresses, sources, secret)
    }

    fn run(
        addresses: Vec<SocketAddr>,
        sources: Vec<ProbeSource>,
        secret: Secret,
    ) -> Result<Self, ProbeError> {
        let (end, ends) = UnixStream::pair().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("responder".into())
            .spawn(move || respond(&sources, &secret, &ends))
            .map_err(failed)?;
        Ok(Self {
            addresses,
            end,
            thread: Some(thread),
        })
    }

    /// The addresses on which it answers, by socket.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A source of probes.
#[derive(Debug)]
enum ProbeSource {
    Socket(UdpSocket),
    Tap(Tap),
}

impl AsFd for ProbeSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Tap(tap) => tap.as_fd(),
        }
    }
}

/// An error of no address in particular.
fn failed(source: io::Error) -> ProbeError {
    ProbeError::Responder {
        address: SocketAddr::from(([0; 4], 0)),
        source,
    }
}

fn respond(sources: &[ProbeSource], secret: &Secret, ends: &UnixStream) {
    let mut buffer = vec![0; 1 << 16];
    let mut fds: Vec<_> = sources.iter().map(AsFd::as_fd).collect();
    fds.push(ends.as_fd());
    loop {
        let Ok(ready) = poll_readable(&fds, WAIT) else {
            return;
        };
        for index in ready {
            match sources.get(index) {
                Some(ProbeSource::Socket(socket)) => answer_all(socket, secret, &mut buffer),
                Some(ProbeSource::Tap(tap)) => answer_tapped(tap, secret, &mut buffer),
                None => return,
            }
        }
    }
}

/// Number of datagrams of one socket after which the other sockets are read.
const TURN: usize = 256;

/// Answers the datagrams that have arrived at a socket.
fn answer_all(socket: &UdpSocket, secret: &Secret, buffer: &mut [u8]) {
    for _ in 0..TURN {
        match receive_arrived(socket, buffer) {
            Ok(Some(arrived)) => {
                let datagram = &buffer[..arrived.length.min(buffer.len())];
                if let Some(answer) = answer(datagram, arrived.fragment, secret) {
                    // An answer that is lost or refused here is no error: the prober sends again.
                    let _ = socket.send_to(&answer, arrived.from);
                }
            }
            Ok(None) => return,
            // An ICMP message about an earlier answer; the socket stays usable.
            Err(_) => {}
        }
    }
}

/// Answers the datagrams that have arrived for another socket's port.
fn answer_tapped(tap: &Tap, secret: &Secret, buffer: &mut [u8]) {
    for _ in 0..TURN {
        match tap.receive(buffer) {
            Ok(Some((copied, checked))) => {
                let answered = tap.parse(&buffer[..copied], checked).and_then(|heard| {
                    Some((heard.from, answer(heard.payload, heard.fragment, secret)?))
                });
                if let Some((to, answer)) = answered {
                    let _ = tap.answer(to, &answer);
                }
            }
            Ok(None) => return,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 probes of a jumbo frame's size are what leaves in a fortieth of a second.
    #[test]
    fn a_burst_waits_for_a_responder_that_does_not_run_yet() {
        const PROBES: usize = 100;
        let socket = Responder::bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let room = SockRef::from(&socket).recv_buffer_size().expect("a size");
        if room < RECEIVE_BUFFER {
            // `net.core.rmem_max` is the machine's, and is not ours to set.
            wirecost_skips::lacks(format!("net.core.rmem_max allows {room} bytes"));
            return;
        }
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let target = socket.local_addr().expect("an address");
        for _ in 0..PROBES {
            sender.send_to(&[0x5a; 8972], target).expect("sent");
        }
        socket.set_nonblocking(true).expect("a flag");
        let mut buffer = [0; 9000];
        let waiting = (0..PROBES).take_while(|_| socket.recv(&mut buffer).is_ok());
        assert_eq!(waiting.count(), PROBES);
    }
}
