//! TCP_CRR client: a connection for each request and response.
//!
//! A transaction is: socket, connect, request, response, the server's FIN, close. The server closes first, so that
//! `TIME_WAIT` is on its side and the client's ports do not run out (RFC 6191: a new connection may replace one in
//! `TIME_WAIT`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{receive, send};

use super::request_schedule::RequestSchedule;
use super::{Context, IoFailure, Progress, Task};
use crate::error::TrafficError;
use crate::flow::Outcome;
use crate::handshake::{HEADER_BYTES, Header, Phase};
use crate::shared::Shared;
use crate::socket;
use crate::timeouts::{PEER_TIMEOUT, POLL_INTERVAL};

/// Transactions of one flow before the others of its thread are polled.
const BUDGET: u32 = 8;

pub(crate) struct CrrClient {
    target: SocketAddr,
    flow: u32,
    schedule: RequestSchedule,
    /// The header and the request.
    opening: Box<[u8]>,
    current: Option<Transaction>,
    /// Connections so far: distinguishes their descriptors.
    generation: u32,
}

struct Transaction {
    socket: Socket,
    /// When the transaction began, before connect(2); nanoseconds by [`Shared::now`].
    began: u64,
    /// When the server last sent or took something, or the transaction began; nanoseconds by [`Shared::now`].
    last_activity: u64,
    connected: bool,
    /// Bytes of `opening` written.
    written: usize,
    /// Bytes of the response read.
    read: usize,
}

/// What a transaction needs next.
enum Step {
    Done,
    Needs(Interest),
}

impl Transaction {
    /// How far the transaction is: bytes written and read.
    const fn moved(&self) -> usize {
        self.written + self.read
    }

    /// When the server counts as gone, where nothing moves until then.
    const fn until(&self) -> u64 {
        self.last_activity + PEER_TIMEOUT.as_nanos() as u64
    }
}

impl CrrClient {
    pub(crate) fn new(shared: &Shared, target: SocketAddr, flow: u32) -> Self {
        let header = Header::new(&shared.options, flow, Phase::Transaction).encode();
        let mut opening = header.to_vec();
        opening.resize(HEADER_BYTES + shared.options.load.request as usize, 0xA5);
        Self {
            target,
            flow,
            schedule: RequestSchedule::new(shared, flow),
            opening: opening.into_boxed_slice(),
            current: None,
            generation: 0,
        }
    }

    fn begin(&mut self, context: &Context<'_>, began: u64) -> io::Result<()> {
        let socket =
            socket::client_tcp(self.target, &context.shared.options).map_err(
                |error| match error {
                    TrafficError::Socket { source, .. } => source,
                    other => io::Error::other(other.to_string()),
                },
            )?;
        if context.blocking {
            // A blocked call returns after this time, to check whether to stop.
            socket.set_read_timeout(Some(POLL_INTERVAL))?;
            socket.set_write_timeout(Some(POLL_INTERVAL))?;
        } else {
            socket.set_nonblocking(true)?;
        }
        let connected = match socket.connect(&self.target.into()) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(socket::IN_PROGRESS) => false,
            Err(error) => return Err(explain(error)),
        };
        self.generation = self.generation.wrapping_add(1);
        self.current = Some(Transaction {
            socket,
            began,
            last_activity: began,
            connected,
            written: 0,
            read: 0,
        });
        Ok(())
    }

    /// Continues the current transaction.
    fn advance(
        transaction: &mut Transaction,
        opening: &[u8],
        flow: u32,
        context: &mut Context<'_>,
    ) -> io::Result<Step> {
        if !transaction.connected {
            if let Some(error) = transaction.socket.take_error()? {
                return Err(explain(error));
            }
            transaction.connected = true;
        }
        // Bytes count as they move: the end of a load tells by them whether the server is alive.
        let payload = |at: usize| at.saturating_sub(HEADER_BYTES) as u64;
        while transaction.written < opening.len() {
            match send(&transaction.socket, &opening[transaction.written..]) {
                Ok(sent) => {
                    let before = payload(transaction.written);
                    transaction.written += sent;
                    let moved = payload(transaction.written) - before;
                    context.flow(flow).tx.bytes.add(moved);
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Step::Needs(Interest::WRITE)),
                    // Still connecting.
                    IoFailure::Broken(error) if error.kind() == io::ErrorKind::NotConnected => {
                        return Ok(Step::Needs(Interest::WRITE));
                    }
                    IoFailure::Broken(error) => return Err(error),
                },
            }
            if transaction.written == opening.len() {
                context.flow(flow).tx.messages.add(1);
                if !context.blocking {
                    return Ok(Step::Needs(Interest::READ));
                }
            }
        }
        let response = context.shared.options.load.response as usize;
        loop {
            match receive(&transaction.socket, &mut context.buffers.read) {
                Ok(0) if transaction.read == response => return Ok(Step::Done),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    transaction.read += read;
                    let rx = &context.flow(flow).rx;
                    rx.bytes.add(read as u64);
                    if transaction.read == response {
                        context.record(transaction.began, context.shared.now());
                        rx.messages.add(1);
                    } else if transaction.read > response {
                        let words = "it answered with more than a response";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
                    }
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Step::Needs(Interest::READ)),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
    }
}

/// Adds advice to errors of connect(2).
fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AddrNotAvailable {
        let words =
            "no local port is free for another connection (sysctl net.ipv4.ip_local_port_range)";
        return io::Error::new(error.kind(), words);
    }
    error
}

impl Task for CrrClient {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        for _ in 0..BUDGET {
            if self.current.is_none() {
                if context.shared.flows.stopping() {
                    return Progress::Over(Outcome::Orderly);
                }
                self.schedule.begin(context.shared.began());
                let now = context.shared.now();
                let Some(due) = self.schedule.next(now, 0) else {
                    return Progress::Wait(Interest::NONE, self.schedule.due(0));
                };
                if context.shared.take_budget(1) == 0 {
                    return Progress::Over(Outcome::Orderly);
                }
                context.record_lateness(due, now);
                if let Err(error) = self.begin(context, now) {
                    return Progress::failed(error);
                }
                if let Some(current) = &self.current
                    && !current.connected
                {
                    return Progress::Wait(Interest::WRITE, Some(current.until()));
                }
            }
            let Some(current) = &mut self.current else {
                continue;
            };
            let before = current.moved();
            match Self::advance(current, &self.opening, self.flow, context) {
                Ok(Step::Done) => {
                    self.current = None;
                    self.schedule.done(context.shared.now());
                }
                Ok(Step::Needs(interest)) => {
                    let now = context.shared.now();
                    if current.moved() > before {
                        current.last_activity = now;
                    }
                    if now > current.until() {
                        return Progress::failed(io::ErrorKind::TimedOut.into());
                    }
                    return Progress::Wait(interest, Some(current.until()));
                }
                Err(error) => return Progress::failed(error),
            }
        }
        Progress::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        let current = self.current.as_ref()?;
        Some((current.socket.as_fd(), self.generation))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    use wirecost_model::end_window::End;

    use super::*;
    use crate::buffers::{BufferSizes, Buffers};
    use crate::options::{Options, Workload};

    #[test]
    fn a_transaction_that_moves_is_waited_for_anew() {
        let options = Options::new(Workload::TcpCrr, [7; 16]).with(|load| load.response = 1 << 20);
        let sizes = BufferSizes::tcp(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut buffers = Buffers::new(&sizes, false);
        let mut context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: true,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = CrrClient::new(&shared, listener.local_addr().unwrap(), 0);
        let mut waits_until = || match client.poll(&mut context) {
            Progress::Wait(_, Some(until)) => until,
            other => panic!("{other:?}"),
        };
        let asked = waits_until();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[0; 1_000]).unwrap();
        let answered = waits_until();
        assert!(answered > asked);
        assert_eq!(waits_until(), answered, "nothing more came");
        let request = u64::from(options.load.request);
        assert_eq!(shared.flows.all()[0].bytes(), request + 1_000);
    }
}
