//! A connection of `tcp-crr` at the server: its header, its request and its response.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{receive, send};

use crate::dispatch::Handoff;
use crate::flow::Outcome;
use crate::handshake::{Answer, HEADER_BYTES, HeaderCheck, Phase, check_header};
use crate::task::{Context, IoFailure};
use crate::timeouts::PEER_TIMEOUT;

/// How long a connection may take to send its header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and how far its transaction is.
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// When the connection was accepted here or handed over, or its transaction last moved; nanoseconds.
    pub(super) since: u64,
    pub(super) header: [u8; HEADER_BYTES],
    /// Bytes of the header that were read.
    filled: usize,
    /// The flow of the transaction, once the header is complete.
    pub(super) flow: Option<u32>,
    /// Bytes of the request that were read.
    read: usize,
    /// Bytes of the response that were written.
    written: usize,
    /// Whether epoll also waits for room in the socket.
    pub(super) writes: bool,
}

/// What to do with a connection.
pub(super) enum Disposition {
    Wait(Interest),
    Done,
    /// The header names another load.
    OtherLoad,
    Stray,
}

impl Connection {
    pub(super) fn handoff(self) -> Handoff {
        Handoff {
            socket: self.socket,
            header: self.header,
            filled: self.filled,
        }
    }

    pub(super) fn new(socket: Socket, since: u64) -> Self {
        Self {
            socket,
            since,
            header: [0; HEADER_BYTES],
            filled: 0,
            flow: None,
            read: 0,
            written: 0,
            writes: false,
        }
    }

    /// A connection that another load's server handed over, with what it had read of the header.
    pub(super) fn resumed(handoff: Handoff, since: u64) -> Self {
        Self {
            header: handoff.header,
            filled: handoff.filled,
            ..Self::new(handoff.socket, since)
        }
    }

    /// Whether the connection is late at `now`, nanoseconds: its header, or the next bytes of its transaction.
    pub(super) fn is_late(&self, now: u64) -> bool {
        let patience = match self.flow {
            None => HEADER_TIMEOUT,
            Some(_) => PEER_TIMEOUT,
        };
        now.saturating_sub(self.since) > patience.as_nanos() as u64
    }

    pub(super) fn answer(&self, answer: Answer) {
        // Twelve bytes into an empty buffer cannot block; a peer that is gone needs no answer.
        let _ = (&self.socket).write_all(&answer.encode());
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> io::Result<Disposition> {
        while self.flow.is_none() {
            match self.read_header()? {
                Some(Disposition::Done) => {}
                Some(disposition) => return Ok(disposition),
                None => return Ok(Disposition::Stray),
            }
            if let Some(disposition) = self.check(context) {
                return Ok(disposition);
            }
        }
        self.serve(context)
    }

    /// Reads the header. `Done`: it is complete; `Wait`: bytes are missing; `None`: the peer has closed.
    fn read_header(&mut self) -> io::Result<Option<Disposition>> {
        while self.filled < HEADER_BYTES {
            match (&self.socket).read(&mut self.header[self.filled..]) {
                Ok(0) => return Ok(None),
                Ok(read) => self.filled += read,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Some(Disposition::Wait(Interest::READ))),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        Ok(Some(Disposition::Done))
    }

    /// Checks the header and answers it; `None` where it opens a transaction, which has no answer of its own.
    fn check(&mut self, context: &Context<'_>) -> Option<Disposition> {
        let shared = context.shared;
        let answer = match check_header(&self.header, &shared.options) {
            HeaderCheck::Flow(index, phase) => {
                let flow = &shared.flows.all()[index as usize];
                let here = flow.connected.load(Relaxed);
                match phase {
                    Phase::Transaction if here => {
                        self.flow = Some(index);
                        return None;
                    }
                    Phase::Open if !here => {
                        shared.flows.set_connected(flow);
                        Answer::Accepted
                    }
                    Phase::Close if here => {
                        shared.flows.end(flow, Outcome::Orderly);
                        Answer::Accepted
                    }
                    _ => Answer::OtherFlow,
                }
            }
            HeaderCheck::Refuse(Answer::OtherSecret) => return Some(Disposition::OtherLoad),
            HeaderCheck::Refuse(answer) => answer,
            HeaderCheck::Stray => return Some(Disposition::Stray),
        };
        self.answer(answer);
        Some(if answer == Answer::Accepted {
            Disposition::Done
        } else {
            Disposition::Stray
        })
    }

    fn serve(&mut self, context: &mut Context<'_>) -> io::Result<Disposition> {
        let shared = context.shared;
        let (request, response) = (
            shared.options.load.request as usize,
            shared.options.load.response as usize,
        );
        let Some(flow) = self.flow.map(|index| &shared.flows.all()[index as usize]) else {
            return Ok(Disposition::Stray);
        };
        while self.read < request {
            match receive(&self.socket, &mut context.buffers.read) {
                Ok(0) => return Ok(Disposition::Stray),
                Ok(read) => self.read += read,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Disposition::Wait(Interest::READ)),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        while self.written < response {
            match send(&self.socket, &shared.message[..response - self.written]) {
                Ok(sent) => self.written += sent,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Disposition::Wait(Interest::WRITE)),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        // Several threads may serve one flow: these counters need atomic additions.
        flow.rx.messages.add_shared(1);
        flow.rx.bytes.add_shared(request as u64);
        flow.tx.messages.add_shared(1);
        flow.tx.bytes.add_shared(response as u64);
        Ok(Disposition::Done)
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn a_connection_that_says_nothing_is_late_before_a_transaction_that_moves() {
        const SECOND: u64 = 1_000_000_000;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let mut connection = Connection::new(socket, SECOND);
        assert!(!connection.is_late(6 * SECOND) && connection.is_late(6 * SECOND + 1));
        connection.flow = Some(0);
        assert!(!connection.is_late(11 * SECOND) && connection.is_late(11 * SECOND + 1));
    }
}
