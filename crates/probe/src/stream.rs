//! Small and full segments of TCP, with what arrives compared byte by byte: checksums that an offload computes wrongly,
//! and segments that it cuts wrongly, show where a datagram of the same size passes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_sys::socket::{poll_readable, set_max_pacing_rate};

use crate::error::ProbeError;
use crate::message::{Secret, same};

/// How long a connection may take to be made: where a filter drops it, nothing is said about it.
const CONNECTING: Duration = Duration::from_millis(300);
/// How long a part may take: a lost segment comes again after 200 ms.
const ANSWERING: Duration = Duration::from_millis(400);
/// The server's patience with a client.
const SERVING: Duration = Duration::from_secs(3);
/// Bytes of the small part, sent in writes of [`SMALL_WRITE`], and of the full one.
const SMALL: usize = 800;
const SMALL_WRITE: usize = 100;
const FULL: usize = 256 << 10;
/// The content repeats after so many bytes, a prime: no segment is like the next.
const PERIOD: usize = 251;
/// TCP and IP headers without options, bytes.
const TCP_BYTES: u32 = 20;
/// It only waits for a client or its end.
const WAIT: Duration = Duration::from_mins(10);

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streamed {
    /// No connection: filtered, perhaps.
    NotConnected,
    /// Everything arrived as it was sent.
    Passed,
    /// Small segments already do not arrive in time, or not as they were sent.
    SmallFails {
        /// They arrived, and were not what was sent.
        changed: bool,
    },
    /// Small ones arrive, full ones do not.
    FullFails {
        /// As of [`SmallFails`](Self::SmallFails).
        changed: bool,
    },
}

/// Takes streams until it is dropped.
#[derive(Debug)]
pub struct StreamServer {
    address: SocketAddr,
    /// Closed, it ends the thread.
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl StreamServer {
    /// Listens on any port of an address, in the calling thread's namespace.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn start(address: IpAddr, secret: Secret) -> Result<Self, ProbeError> {
        let address = SocketAddr::new(address, 0);
        let failed = |source| ProbeError::Responder { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (end, ends) = UnixStream::pair().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("streams".into())
            .spawn(move || serve(&listener, &secret, &ends))
            .map_err(failed)?;
        Ok(Self {
            address: bound,
            end,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, secret: &Secret, ends: &UnixStream) {
    while let Ok(ready) = poll_readable(&[listener.as_fd(), ends.as_fd()], WAIT) {
        if ready.contains(&1) {
            return;
        }
        if let Ok((stream, _)) = listener.accept() {
            // A client that goes wrong is its own loss.
            let _ = take(stream, secret);
        }
    }
}

/// The secret, then both parts, each answered with 1 where it arrived as it was sent, or with 0.
fn take(mut stream: TcpStream, secret: &Secret) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SERVING))?;
    stream.set_write_timeout(Some(SERVING))?;
    stream.set_nodelay(true)?;
    let mut said = [0; 16];
    stream.read_exact(&mut said)?;
    if !same(&said, &secret.probe) {
        return Ok(());
    }
    let mut buffer = vec![0; 16 << 10];
    for bytes in [SMALL, FULL] {
        let (mut taken, mut right) = (0, true);
        while taken < bytes {
            let room = buffer.len().min(bytes - taken);
            match stream.read(&mut buffer[..room])? {
                0 => return Ok(()),
                read => {
                    right &= buffer[..read]
                        .iter()
                        .zip(taken..)
                        .all(|(byte, at)| *byte == content(at));
                    taken += read;
                }
            }
        }
        stream.write_all(&[u8::from(right)])?;
    }
    Ok(())
}

const fn content(at: usize) -> u8 {
    (at % PERIOD) as u8
}

/// Sends small and full segments to a [`StreamServer`] with the same secret; full ones are IP packets of `size` bytes.
/// The connection and each part have an end of their own, so that it takes little more than a second at most.
///
/// # Errors
/// Where a socket cannot be made. What the path does is no error.
pub fn stream(
    from: IpAddr,
    to: SocketAddr,
    size: u32,
    bytes_per_second: f64,
    secret: &Secret,
) -> Result<Streamed, ProbeError> {
    let failed = |source| ProbeError::Socket { to, source };
    let socket = open(from, to, size, bytes_per_second).map_err(failed)?;
    if socket.connect_timeout(&to.into(), CONNECTING).is_err() {
        return Ok(Streamed::NotConnected);
    }
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_write_timeout(Some(ANSWERING)).map_err(failed)?;
    let small = stream
        .write_all(&secret.probe)
        .and_then(|()| part(&mut stream, SMALL, SMALL_WRITE));
    match small {
        Ok(true) => {}
        Ok(false) => return Ok(Streamed::SmallFails { changed: true }),
        Err(_) => return Ok(Streamed::SmallFails { changed: false }),
    }
    Ok(match part(&mut stream, FULL, FULL) {
        Ok(true) => Streamed::Passed,
        Ok(false) => Streamed::FullFails { changed: true },
        Err(_) => Streamed::FullFails { changed: false },
    })
}

fn open(from: IpAddr, to: SocketAddr, size: u32, bytes_per_second: f64) -> io::Result<Socket> {
    let (domain, header) = match to {
        SocketAddr::V4(_) => (Domain::IPV4, 20),
        SocketAddr::V6(_) => (Domain::IPV6, 40),
    };
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    // A larger device must not make it send more than is asked about. The kernel's range: net/ipv4/tcp.c, TCP_MAXSEG.
    let segment = size.saturating_sub(header + TCP_BYTES).clamp(88, 32_767);
    socket.set_tcp_mss(segment)?;
    set_max_pacing_rate(&socket, bytes_per_second as u64)?;
    Ok(socket)
}

/// Sends a part in writes of so many bytes; what the other end answers.
fn part(stream: &mut TcpStream, bytes: usize, each: usize) -> io::Result<bool> {
    let until = Instant::now() + ANSWERING;
    let part: Vec<u8> = (0..bytes).map(content).collect();
    for chunk in part.chunks(each) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let written = stream.write(rest)?;
            if written == 0 || Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            rest = &rest[written..];
        }
    }
    let left = until.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer == [1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret {
        probe: [3; 16],
        acknowledgement: [4; 8],
    };

    #[test]
    fn a_loopback_passes_and_another_secret_is_not_served() {
        let home: IpAddr = [127, 0, 0, 1].into();
        let server = StreamServer::start(home, SECRET).expect("a port");
        let asked = |secret: &Secret| stream(home, server.address(), 1500, 1e9, secret);
        assert_eq!(asked(&SECRET).expect("a socket"), Streamed::Passed);
        let other = Secret {
            probe: [9; 16],
            ..SECRET
        };
        assert_eq!(
            asked(&other).expect("a socket"),
            Streamed::SmallFails { changed: false }
        );
        let address = server.address();
        drop(server);
        let nobody = stream(home, address, 1500, 1e9, &SECRET);
        assert_eq!(nobody.expect("a socket"), Streamed::NotConnected);
    }
}
