//! The far end: acknowledges the probes of one run, and says how they arrived.

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

/// It only ever waits for a datagram or its end: how long at a time does not matter, and nothing wakes up between.
const WAIT: Duration = Duration::from_mins(10);

/// What may wait until a busy machine lets the responder run: a tenth of a second and more at 40 MB/s. The kernel counts
/// about twice a datagram's size, and doubles this in turn. By default no more than some twenty large datagrams may wait.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Answers on one socket or many, from one thread, until it is dropped.
#[derive(Debug)]
pub struct Responder {
    addresses: Vec<SocketAddr>,
    /// Closed, it ends the thread.
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Opens a responder in the calling thread's namespace; port 0: any.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn start(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        Self::over(vec![Self::bind(address)?], secret)
    }

    /// Opens a responder on a port that something else on this host has, such as a live tunnel: it listens to what
    /// arrives for that port, and answers in its name. No guest sees the probes: they are no header of a tunnel (for
    /// VXLAN one without a network identifier, for Geneve one of an unknown version, RFC 7348 and RFC 8926), so that
    /// the tunnel drops them.
    ///
    /// What arrives is seen before the host's own filters have their say.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`.
    pub fn start_tapped(address: SocketAddr, secret: Secret) -> Result<Self, ProbeError> {
        let tap = Tap::open(address).map_err(|source| ProbeError::Tap { address, source })?;
        Self::run(vec![address], vec![Ear::Tap(tap)], secret)
    }

    /// A socket for [`over`](Self::over), in the calling thread's namespace, where it stays; port 0: any.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<UdpSocket, ProbeError> {
        let bound = datagrams(address);
        let socket = bound.map_err(|source| ProbeError::Responder { address, source })?;
        // Less where `net.core.rmem_max` does not allow it.
        let _ = SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
        // Without it, an old kernel's, a datagram in fragments counts as whole.
        let _ = enable_fragment_size(&socket);
        Ok(socket)
    }

    /// Opens a responder over sockets of any namespaces.
    ///
    /// # Errors
    /// Where a socket has no address, or no thread can be started.
    pub fn over(sockets: Vec<UdpSocket>, secret: Secret) -> Result<Self, ProbeError> {
        let addresses: io::Result<Vec<_>> = sockets.iter().map(UdpSocket::local_addr).collect();
        let addresses = addresses.map_err(failed)?;
        let ears = sockets.into_iter().map(Ear::Socket).collect();
        Self::run(addresses, ears, secret)
    }

    fn run(addresses: Vec<SocketAddr>, ears: Vec<Ear>, secret: Secret) -> Result<Self, ProbeError> {
        let (end, ends) = UnixStream::pair().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("responder".into())
            .spawn(move || respond(&ears, &secret, &ends))
            .map_err(failed)?;
        Ok(Self {
            addresses,
            end,
            thread: Some(thread),
        })
    }

    /// Where it answers, by socket.
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

/// Where probes are heard.
#[derive(Debug)]
enum Ear {
    Socket(UdpSocket),
    Tap(Tap),
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Tap(tap) => tap.as_fd(),
        }
    }
}

/// What has no address of its own to blame.
fn failed(source: io::Error) -> ProbeError {
    ProbeError::Responder {
        address: SocketAddr::from(([0; 4], 0)),
        source,
    }
}

fn respond(ears: &[Ear], secret: &Secret, ends: &UnixStream) {
    let mut buffer = vec![0; 1 << 16];
    let mut fds: Vec<_> = ears.iter().map(AsFd::as_fd).collect();
    fds.push(ends.as_fd());
    loop {
        let Ok(ready) = poll_readable(&fds, WAIT) else {
            return;
        };
        for index in ready {
            match ears.get(index) {
                Some(Ear::Socket(socket)) => answer_all(socket, secret, &mut buffer),
                Some(Ear::Tap(tap)) => answer_tapped(tap, secret, &mut buffer),
                None => return,
            }
        }
    }
}

/// Datagrams after which other sockets, and the end, have their turn.
const TURN: usize = 256;

/// Answers what has arrived at one socket.
fn answer_all(socket: &UdpSocket, secret: &Secret, buffer: &mut [u8]) {
    for _ in 0..TURN {
        match receive_arrived(socket, buffer) {
            Ok(Some(arrived)) => {
                let datagram = &buffer[..arrived.length.min(buffer.len())];
                if let Some(answer) = answer(datagram, arrived.fragment, secret) {
                    // Lost on the way or refused here: the prober asks again.
                    let _ = socket.send_to(&answer, arrived.from);
                }
            }
            Ok(None) => return,
            // An ICMP message about an answer of ours; the socket stays good.
            Err(_) => {}
        }
    }
}

/// The same of what has arrived for somebody else.
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
