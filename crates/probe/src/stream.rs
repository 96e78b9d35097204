//! Small and full TCP segments whose content is compared byte by byte on arrival. They reveal
//! checksums that an offload computes wrongly, and segments that it cuts wrongly, where a datagram
//! of the same size passes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_sys::secret::same;
use wirecost_sys::socket::{bind_here, poll_readable, set_max_pacing_rate};

use crate::error::ProbeError;
use crate::message::Secret;

/// Time limit to connect, in addition to two round trips: where a filter drops the SYN, no error comes.
const CONNECTING: Duration = Duration::from_millis(300);
/// Time limit for a part, in addition to the round trips that it needs: a lost segment is sent again after 200 ms.
const ANSWERING: Duration = Duration::from_millis(400);
/// The server's time limit for a read or write: the longest round trip, and a part on a slow path.
const SERVING: Duration = Duration::from_secs(15);
/// Bytes of the small part, sent in writes of [`SMALL_WRITE`], and upper bound on those of the full part.
pub(crate) const SMALL: usize = 800;
pub(crate) const SMALL_WRITE: usize = 100;
const FULL: usize = 256 << 10;
/// Wait above which the path has long round trips. The full part is then what a connection sends at
/// once (RFC 6928: ten segments), and on a slow path what passes in [`FULL_TIME`].
const FAR: Duration = Duration::from_millis(100);
const AT_ONCE: usize = 10;
/// On such a path there are fewer small segments, sent together with the full ones: each answer is a round trip.
const FAR_SMALL_WRITE: usize = SMALL / 2;
const FAR_SMALL: usize = 3;
/// Upper bound on the length of IP and TCP headers with timestamps, bytes.
const HEADERS: u32 = 40 + 32;
const FULL_TIME: Duration = Duration::from_millis(250);
/// Period of the content in bytes, a prime: no segment equals the next.
const PERIOD: usize = 251;
/// Length of a TCP header without options, bytes.
const TCP_BYTES: u32 = 20;
/// Number of connections that are tried at once.
const TRIES: usize = 4;
/// The server only waits for a client or for its end.
const WAIT: Duration = Duration::from_mins(10);

/// Outcome of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOutcome {
    /// No connection and no error: filtered perhaps, or every segment is corrupted.
    NotConnected,
    /// The connection was refused: by a reset, though the far end listens, or by an ICMP message.
    Refused,
    /// All content arrived as it was sent.
    Passed,
    /// Not even small segments arrive in time and unchanged.
    SmallFails {
        /// Whether they arrived with other content than was sent.
        changed: bool,
    },
    /// Small segments arrive, full ones do not.
    FullFails {
        /// Whether they arrived with other content than was sent.
        changed: bool,
    },
}

/// Accepts streams until it is dropped.
#[derive(Debug)]
pub struct StreamServer {
    address: SocketAddr,
    /// Ends the thread when it is closed.
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl StreamServer {
    /// Listens on any port of an address, in the calling thread's namespace.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn start(address: IpAddr, secret: Secret) -> Result<Self, ProbeError> {
        let address = SocketAddr::new(address, 0);
        let failed = |source| ProbeError::Responder { address, source };
        let listener = listen(address).map_err(failed)?;
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

    /// The address and port on which it listens.
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

/// A TCP listener on an address of this host, in a VRF or not.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    bind_here(&socket, address)?;
    socket.listen(256)?;
    Ok(socket.into())
}

fn serve(listener: &TcpListener, secret: &Secret, ends: &UnixStream) {
    while let Ok(ready) = poll_readable(&[listener.as_fd(), ends.as_fd()], WAIT) {
        if ready.contains(&1) {
            return;
        }
        if let Ok((stream, _)) = listener.accept() {
            let secret = *secret;
            // A client's error concerns that client only, and delays no other.
            let _ = thread::Builder::new()
                .name("stream".into())
                .spawn(move || take(stream, &secret));
        }
    }
}

/// Serves a client, which sends the secret, the length of the full part and both parts. Each part
/// is answered with 1 if it arrived as it was sent, else with 0.
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
    let mut full = [0; 4];
    stream.read_exact(&mut full)?;
    let full = (u32::from_be_bytes(full) as usize).min(FULL);
    let mut buffer = vec![0; 16 << 10];
    for bytes in [SMALL, full] {
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

/// Properties of a path for a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamPath {
    /// IP packet size of full segments, bytes.
    pub size: u32,
    /// Upper bound on the pace, bytes per second, above 0.
    pub bytes_per_second: f64,
    /// Upper bound on the round trip.
    pub wait: Duration,
}

impl StreamPath {
    fn is_far(&self) -> bool {
        self.wait > FAR
    }

    /// Length of the full part, bytes.
    fn full(&self) -> usize {
        let segments = (AT_ONCE - FAR_SMALL) * self.size.saturating_sub(HEADERS) as usize;
        let far = if self.is_far() { segments } else { FULL };
        let slow = self.bytes_per_second * FULL_TIME.as_secs_f64();
        // Some segments in any case: the test is about their checksums.
        far.min((slow as usize).max(segments / 2)).min(FULL)
    }

    /// Time limit to send so many bytes and get the answer.
    fn answering(&self, bytes: usize) -> Duration {
        let sending = bytes as f64 / self.bytes_per_second;
        ANSWERING + self.wait * 2 + Duration::try_from_secs_f64(2.0 * sending).unwrap_or_default()
    }
}

/// Sends small and full segments to a [`StreamServer`] with the same secret. The connection and
/// each part have a time limit of their own, so that it takes little more than a second and some
/// round trips at most.
///
/// # Errors
/// A socket cannot be made. What the path does is no error.
pub fn stream(
    from: IpAddr,
    to: SocketAddr,
    path: &StreamPath,
    secret: &Secret,
) -> Result<StreamOutcome, ProbeError> {
    let failed = |source| ProbeError::Socket { to, source };
    let connecting = CONNECTING + path.wait * 2;
    let mut stream = match connect(from, to, path, (connecting, TRIES)).map_err(failed)? {
        Ok(stream) => stream,
        Err(refused) => return Ok(refused),
    };
    let full = path.full();
    let writing = path.answering(full);
    stream.set_write_timeout(Some(writing)).map_err(failed)?;
    let until = |bytes| Instant::now() + path.answering(bytes);
    let head = [&secret.probe[..], &(full as u32).to_be_bytes()].concat();
    let small = stream.write_all(&head).and_then(|()| {
        if path.is_far() {
            send(&mut stream, SMALL, FAR_SMALL_WRITE, until(SMALL))?;
            send(&mut stream, full, full, until(full))?;
            answer(&mut stream, until(SMALL))
        } else {
            part(&mut stream, SMALL, SMALL_WRITE, path.answering(SMALL))
        }
    });
    match small {
        Ok(true) => {}
        Ok(false) => return Ok(StreamOutcome::SmallFails { changed: true }),
        Err(_) => return Ok(StreamOutcome::SmallFails { changed: false }),
    }
    let all = if path.is_far() {
        answer(&mut stream, until(full))
    } else {
        part(&mut stream, full, full, path.answering(full))
    };
    Ok(match all {
        Ok(true) => StreamOutcome::Passed,
        Ok(false) => StreamOutcome::FullFails { changed: true },
        Err(_) => StreamOutcome::FullFails { changed: false },
    })
}

/// The first of several connections that are opened at once. With a single one, a lost SYN would
/// look like a filter: it is sent again only after a second (RFC 6298, 2.1).
pub(crate) fn connect(
    from: IpAddr,
    to: SocketAddr,
    path: &StreamPath,
    (within, tries): (Duration, usize),
) -> io::Result<Result<TcpStream, StreamOutcome>> {
    let sockets = (0..tries).map(|_| open(from, to, path));
    let sockets: Vec<Socket> = sockets.collect::<io::Result<_>>()?;
    let ended: Vec<io::Result<Socket>> = thread::scope(|scope| {
        let threads = sockets.into_iter().map(|socket| {
            scope.spawn(move || socket.connect_timeout(&to.into(), within).map(|()| socket))
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
            .collect()
    });
    let mut why = StreamOutcome::NotConnected;
    for connected in ended {
        match connected {
            Ok(socket) => {
                let stream = TcpStream::from(socket);
                stream.set_nodelay(true)?;
                return Ok(Ok(stream));
            }
            Err(error) if error.kind() != io::ErrorKind::TimedOut => why = StreamOutcome::Refused,
            Err(_) => {}
        }
    }
    Ok(Err(why))
}

fn open(from: IpAddr, to: SocketAddr, path: &StreamPath) -> io::Result<Socket> {
    let (domain, header) = match to {
        SocketAddr::V4(_) => (Domain::IPV4, 20),
        SocketAddr::V6(_) => (Domain::IPV6, 40),
    };
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    bind_here(&socket, SocketAddr::new(from, 0))?;
    // On a device with a larger MTU, segments must not be larger than asked for. Range of
    // `TCP_MAXSEG`: net/ipv4/tcp.c.
    let segment = path.size.saturating_sub(header + TCP_BYTES);
    let segment = segment.clamp(88, 32_767);
    socket.set_tcp_mss(segment)?;
    set_max_pacing_rate(&socket, path.bytes_per_second as u64)?;
    Ok(socket)
}

/// Sends a part in writes of `each` bytes. Returns whether it arrived as it was sent.
pub(crate) fn part(
    stream: &mut TcpStream,
    bytes: usize,
    each: usize,
    within: Duration,
) -> io::Result<bool> {
    let until = Instant::now() + within;
    send(stream, bytes, each, until)?;
    answer(stream, until)
}

fn send(stream: &mut TcpStream, bytes: usize, each: usize, until: Instant) -> io::Result<()> {
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
    Ok(())
}

/// Reads the answer: whether a part arrived as it was sent.
fn answer(stream: &mut TcpStream, until: Instant) -> io::Result<bool> {
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
        let path = StreamPath {
            size: 1500,
            bytes_per_second: 1e9,
            wait: Duration::from_millis(10),
        };
        let asked = |secret: &Secret| stream(home, server.address(), &path, secret);
        // A part is late where the server has no core for its time, and not each time.
        let passes = |_| asked(&SECRET).expect("a socket") == StreamOutcome::Passed;
        assert!((0..10).any(passes));
        let other = Secret {
            probe: [9; 16],
            ..SECRET
        };
        assert_eq!(
            asked(&other).expect("a socket"),
            StreamOutcome::SmallFails { changed: false }
        );
        let address = server.address();
        drop(server);
        let nobody = stream(home, address, &path, &SECRET);
        assert_eq!(nobody.expect("a socket"), StreamOutcome::Refused);
    }

    #[test]
    fn a_far_or_slow_path_has_fewer_full_segments() {
        let near = StreamPath {
            size: 1500,
            bytes_per_second: 40e6,
            wait: Duration::from_millis(10),
        };
        assert_eq!(near.full(), FULL);
        let far = StreamPath {
            wait: Duration::from_secs(3),
            ..near
        };
        assert_eq!(far.full(), 9996);
        assert!(far.answering(far.full()) > Duration::from_secs(6));
        let slow = StreamPath {
            bytes_per_second: 100e3,
            ..near
        };
        assert_eq!(slow.full(), 25_000);
        assert!(slow.answering(slow.full()) > Duration::from_millis(900));
    }
}
