//! The sending end of a stream.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_sys::socket::send;

use crate::error::TrafficError;
use crate::flow::{End, Finished, Flow, FlowEnd, Flows};
use crate::handshake::{ANSWER_BYTES, COUNT_BYTES, HEADER_BYTES, Header, read_answer};
use crate::options::StreamOptions;
use crate::snapshot::StreamSnapshot;

/// What the buffer holds; no device on the way may profit from zeros.
const FILL: u8 = 0xA5;

/// The sending end: connected, then started, then stopped.
///
/// Dropping it gives up every flow at once.
#[derive(Debug)]
pub struct StreamSource {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    flows: Flows,
    started: AtomicBool,
    /// One for all writers: it is only read, and every page of it is there before the start.
    message: Box<[u8]>,
}

impl StreamSource {
    /// Opens every flow to the sink at `target` and has each one accepted there, within `timeout` in all.
    ///
    /// Sockets are made on the calling thread, in its network namespace. Nothing is sent but the handshakes.
    pub fn connect(
        target: SocketAddr,
        options: &StreamOptions,
        timeout: Duration,
    ) -> Result<Self, TrafficError> {
        options.validate()?;
        let deadline = Instant::now() + timeout;
        // All knock before the first answer is waited for.
        let sockets = (0..options.streams)
            .map(|flow| knock(target, options, flow, deadline))
            .collect::<Result<Vec<_>, _>>()?;
        for (flow, socket) in (0..).zip(&sockets) {
            hear(socket, target, flow, deadline)?;
            // Not before the handshake: a header is a partial segment.
            cork(socket)?;
            keep_little_unsent(socket)?;
        }

        let shared = Arc::new(Shared {
            flows: Flows::new(options.streams),
            started: AtomicBool::new(false),
            message: vec![FILL; options.message as usize].into_boxed_slice(),
        });
        let mut source = Self {
            shared: Arc::clone(&shared),
            writers: Vec::new(),
        };
        for (index, (flow, socket)) in shared.flows.all().iter().zip(sockets).enumerate() {
            let _ = flow.socket.set(socket);
            let shared = Arc::clone(&shared);
            let writer = thread::Builder::new()
                .name(format!("stream-out-{index}"))
                .spawn(move || shared.run(index))
                .map_err(TrafficError::Thread)?;
            source.writers.push(writer);
        }
        Ok(source)
    }

    /// Has all flows begin together; returns when that was.
    ///
    /// # Errors
    /// A flow that broke since it was connected.
    pub fn start(&self) -> Result<Instant, TrafficError> {
        let flows = &self.shared.flows;
        for (flow, _, socket) in flows.open() {
            if let Some(source) = socket.take_error().unwrap_or_else(Some) {
                return Err(TrafficError::PeerVanished {
                    flow,
                    bytes: 0,
                    source,
                });
            }
        }
        let at = Instant::now();
        self.shared.started.store(true, Relaxed);
        flows.notify();
        Ok(at)
    }

    /// Counters and socket states now.
    ///
    /// # Errors
    /// A flow that broke, by name.
    pub fn snapshot(&self) -> Result<StreamSnapshot, TrafficError> {
        StreamSnapshot::take(&self.shared.flows)
    }

    /// Bytes handed to the kernel so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.shared.flows.bytes()
    }

    /// Stops writing, sends what is left, and waits, at most `timeout`, until the sink has read all of it. What was
    /// not drained by then is aborted.
    ///
    /// # Errors
    /// A flow that broke, by name. Every thread is joined all the same.
    pub fn stop(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        let deadline = Instant::now() + timeout;
        self.join_writers(Shutdown::Write);
        let flows = &self.shared.flows;
        flows.check()?;
        let ends = flows
            .open()
            .map(|(index, flow, socket)| {
                let bytes = flow.bytes.get();
                let drained = drain(socket, bytes, deadline).map_err(|source| {
                    TrafficError::PeerVanished {
                        flow: index,
                        bytes,
                        source,
                    }
                })?;
                Ok(FlowEnd { bytes, drained })
            })
            .collect::<Result<Vec<_>, TrafficError>>()?;
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: 0,
        })
    }

    /// Ends every writer and joins it. Shutting a socket down wakes a blocked send(2), which returns what it had
    /// queued so far: the counters stay exact, and the end of the stream goes out behind the last byte.
    fn join_writers(&mut self, how: Shutdown) {
        let flows = &self.shared.flows;
        flows.set_stopping();
        for (_, _, socket) in flows.open() {
            let _ = socket.shutdown(how);
        }
        for writer in self.writers.drain(..) {
            let _ = writer.join();
        }
    }
}

impl Drop for StreamSource {
    fn drop(&mut self) {
        if !self.writers.is_empty() {
            self.join_writers(Shutdown::Both);
        }
    }
}

impl Shared {
    fn run(&self, index: usize) {
        let flows = &self.flows;
        flows.wait_until(None, || self.started.load(Relaxed) || flows.stopping());
        let flow = &flows.all()[index];
        if let Some(socket) = flow.socket.get() {
            flows.end(
                flow,
                write_until_stopped(flows, flow, socket, &self.message),
            );
        }
    }
}

/// Has only full segments leave (`TCP_CORK`): the kernel fills each to the MSS across writes, so that neither the
/// message size nor what is left of it after division by the MSS decides how many there are. The last, partial
/// segment leaves with the end of the stream.
///
/// With segmentation offload off, 128 KiB writes that each left a small tail segment made a factor of 1.37 in
/// throughput between MTUs 8 bytes apart. `MSG_MORE` on every send is not enough: it holds for that send only, and
/// an acknowledgement that comes in between lets the tail go (RFC 896; tcp(7)). Counted on loopback at MSS 1396,
/// segments in proportion to the fewest possible: `MSG_MORE` 1.97 with messages of 100 bytes, 1.26 to 1.29 with 1000,
/// 1.05 to 1.09 with 10,007, up to 1.005 from 64 KiB on; `TCP_CORK` at most 1.0001 with each.
pub(crate) fn cork(socket: &Socket) -> Result<(), TrafficError> {
    socket
        .set_tcp_cork(true)
        .map_err(|source| TrafficError::Socket {
            what: "setting TCP_CORK",
            source,
        })
}

/// Unsent bytes beyond which a write waits (`TCP_NOTSENT_LOWAT`, tcp(7)).
const UNSENT: u32 = 256 << 10;

/// Keeps the queue of what is written and not yet sent short, so that data leave the writing thread hot from the
/// cache and while it runs. With megabytes queued they leave from the handling of acknowledgements instead, a window
/// at a time: such bursts overflow the backlog of the sending core (`net.core.netdev_max_backlog`), and both cores
/// halt in turns. Over the same unoffloaded path at MTU 1500 without a rate limit: 4.6 Gbit/s without, 6.2 to 6.9 with
/// 32 to 256 KiB.
fn keep_little_unsent(socket: &Socket) -> Result<(), TrafficError> {
    socket
        .set_tcp_notsent_lowat(UNSENT)
        .map_err(|source| TrafficError::Socket {
            what: "setting TCP_NOTSENT_LOWAT",
            source,
        })
}

/// The data path.
pub(crate) fn write_until_stopped(
    flows: &Flows,
    flow: &Flow,
    socket: &Socket,
    message: &[u8],
) -> End {
    let mut total = 0;
    while !flows.stopping() {
        match send(socket, message) {
            Ok(sent) => {
                total += sent as u64;
                flow.bytes.publish(total);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Our own shutdown, seen by a send that had begun before it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && flows.stopping() => break,
            Err(error) => return End::Failed(error),
        }
    }
    End::Orderly
}

/// Connects one flow and says whose it is.
fn knock(
    target: SocketAddr,
    options: &StreamOptions,
    flow: u32,
    deadline: Instant,
) -> Result<Socket, TrafficError> {
    let mut socket = options.socket(target)?;
    let header: [u8; HEADER_BYTES] = Header {
        secret: options.secret,
        flow,
        flows: options.streams,
    }
    .encode();
    // A process that is killed leaves no half-closed connection behind, which would keep its network namespace
    // alive: until the stream has ended in order, closing it means resetting it.
    socket
        .set_linger(Some(Duration::ZERO))
        .and_then(|()| socket.connect_timeout(&target.into(), left(deadline)))
        .and_then(|()| socket.write_all(&header))
        .map_err(|source| TrafficError::Connect {
            target,
            flow,
            source,
        })?;
    Ok(socket)
}

/// Waits for the sink's answer.
fn hear(
    mut socket: &Socket,
    target: SocketAddr,
    flow: u32,
    deadline: Instant,
) -> Result<(), TrafficError> {
    let mut answer = [0; ANSWER_BYTES];
    let mut filled = 0;
    let mut fill = || -> io::Result<()> {
        while filled < ANSWER_BYTES {
            socket.set_read_timeout(Some(left(deadline)))?;
            match socket.read(&mut answer[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The read's time-out, by its better name.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
        socket.set_read_timeout(None)
    };
    fill()
        .and_then(|()| read_answer(answer))
        .map_err(|source| TrafficError::NoAnswer {
            target,
            flow,
            source,
        })?
        .map_err(|refusal| TrafficError::Refused {
            target,
            flow,
            refusal,
        })
}

/// Waits for the sink's count, which it sends once it has read all of ours. `false`: not by `deadline`.
fn drain(mut socket: &Socket, sent: u64, deadline: Instant) -> io::Result<bool> {
    let mut count = [0; COUNT_BYTES];
    let mut filled = 0;
    while filled < COUNT_BYTES {
        socket.set_read_timeout(Some(left(deadline)))?;
        match socket.read(&mut count[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    let read = u64::from_be_bytes(count);
    if read != sent {
        let words = format!("the sink says that it read {read}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    socket.set_linger(None)?;
    // Its end of stream is right behind. Acknowledged before our namespace may go, it leaves the sink no half-closed
    // connection either; that it comes late makes nothing less drained.
    socket.set_read_timeout(Some(left(deadline)))?;
    let _ = socket.read(&mut count);
    Ok(true)
}

/// What is left until `deadline`; never zero, which sockets take for "for ever".
fn left(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}
