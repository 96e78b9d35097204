//! The client's side of a connection for each request and response.
//!
//! A transaction is: socket, connect, request, response, the server's end of the connection, close. The server closes
//! first, so that the port that is spent for a while (`TIME_WAIT`) is the server's side of the pair, and a client's own
//! ports last for ever (RFC 6191: a new connection may follow upon one that waits).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{receive, send};

use super::request::Schedule;
use super::{Desk, LOOK, Machine, Next, PEER_SILENCE, Trouble};
use crate::error::TrafficError;
use crate::flow::End;
use crate::handshake::{HEADER_BYTES, Header, Phase};
use crate::load::Load;
use crate::socket;

/// Transactions of one flow before the others of its thread have their turn.
const TURN: u32 = 8;

pub(crate) struct Connector {
    target: SocketAddr,
    flow: u32,
    schedule: Schedule,
    /// The header and the request.
    opening: Box<[u8]>,
    current: Option<Transaction>,
    /// Connections so far: what tells one's descriptor from the next one's.
    generation: u32,
}

struct Transaction {
    socket: Socket,
    began: u64,
    connected: bool,
    /// Bytes of the opening that were written.
    written: usize,
    /// Bytes of the response that were read.
    read: usize,
}

/// How far a transaction got.
enum Step {
    Done,
    Needs(Interest),
}

impl Connector {
    pub(crate) fn new(load: &Load, target: SocketAddr, flow: u32) -> Self {
        let header = Header::new(&load.options, flow, Phase::Transaction).encode();
        let mut opening = header.to_vec();
        opening.resize(HEADER_BYTES + load.options.request as usize, 0xA5);
        Self {
            target,
            flow,
            schedule: Schedule::new(&load.options, flow),
            opening: opening.into_boxed_slice(),
            current: None,
            generation: 0,
        }
    }

    fn begin(&mut self, desk: &Desk<'_>, began: u64) -> io::Result<()> {
        let socket =
            socket::client_tcp(self.target, &desk.load.options).map_err(|error| match error {
                TrafficError::Socket { source, .. } => source,
                other => io::Error::other(other.to_string()),
            })?;
        if desk.blocking {
            // Nothing else wakes a thread that waits on a connection of its own.
            socket.set_read_timeout(Some(LOOK))?;
            socket.set_write_timeout(Some(LOOK))?;
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
            connected,
            written: 0,
            read: 0,
        });
        Ok(())
    }

    /// Goes on with the transaction there is.
    fn go_on(
        transaction: &mut Transaction,
        opening: &[u8],
        flow: u32,
        desk: &mut Desk<'_>,
    ) -> io::Result<Step> {
        if !transaction.connected {
            if let Some(error) = transaction.socket.take_error()? {
                return Err(explain(error));
            }
            transaction.connected = true;
        }
        while transaction.written < opening.len() {
            match send(&transaction.socket, &opening[transaction.written..]) {
                Ok(sent) => transaction.written += sent,
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Ok(Step::Needs(Interest::WRITE)),
                    // The connection is not made yet after all.
                    Trouble::Broken(error) if error.kind() == io::ErrorKind::NotConnected => {
                        return Ok(Step::Needs(Interest::WRITE));
                    }
                    Trouble::Broken(error) => return Err(error),
                },
            }
            if transaction.written == opening.len() {
                let out = &desk.flow(flow).out;
                out.messages.add(1);
                out.bytes.add((opening.len() - HEADER_BYTES) as u64);
                if !desk.blocking {
                    return Ok(Step::Needs(Interest::READ));
                }
            }
        }
        let response = desk.load.options.response as usize;
        loop {
            match receive(&transaction.socket, &mut desk.room.bytes) {
                Ok(0) if transaction.read == response => return Ok(Step::Done),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    transaction.read += read;
                    if transaction.read == response {
                        desk.record(transaction.began, desk.load.now());
                        let incoming = &desk.flow(flow).incoming;
                        incoming.messages.add(1);
                        incoming.bytes.add(response as u64);
                    } else if transaction.read > response {
                        let words = "it answered with more than a response";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
                    }
                }
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Ok(Step::Needs(Interest::READ)),
                    Trouble::Broken(error) => return Err(error),
                },
            }
        }
    }
}

/// The errors of connect(2) that say little by themselves.
fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AddrNotAvailable {
        let words =
            "no local port is free for another connection (sysctl net.ipv4.ip_local_port_range)";
        return io::Error::new(error.kind(), words);
    }
    error
}

impl Machine for Connector {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        for _ in 0..TURN {
            if self.current.is_none() {
                if desk.load.flows.stopping() {
                    return Next::Over(End::Orderly);
                }
                self.schedule.begin(desk.load.began());
                let now = desk.load.now();
                let Some(due) = self.schedule.next(now, 0) else {
                    return Next::Wait(Interest::NONE, self.schedule.due(0));
                };
                if desk.load.take(1) == 0 {
                    return Next::Over(End::Orderly);
                }
                desk.record_lateness(due, now);
                if let Err(error) = self.begin(desk, now) {
                    return Next::failed(error);
                }
                if !self
                    .current
                    .as_ref()
                    .is_some_and(|current| current.connected)
                {
                    return Next::WRITE;
                }
            }
            let Some(current) = &mut self.current else {
                continue;
            };
            match Self::go_on(current, &self.opening, self.flow, desk) {
                Ok(Step::Done) => {
                    self.current = None;
                    self.schedule.done(desk.load.now());
                }
                Ok(Step::Needs(interest)) => {
                    let silence = current.began + PEER_SILENCE.as_nanos() as u64;
                    if desk.load.now() > silence {
                        return Next::failed(io::ErrorKind::TimedOut.into());
                    }
                    return Next::Wait(interest, Some(silence));
                }
                Err(error) => return Next::failed(error),
            }
        }
        Next::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        let current = self.current.as_ref()?;
        Some((current.socket.as_fd(), self.generation))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}
