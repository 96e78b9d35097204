//! The server's side of request/response on a TCP connection that stays.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;

use super::{Desk, Machine, Next, Trouble, write_messages};
use crate::flow::End;

/// Exchanges of one flow before the others of its thread have their turn.
const TURN: u32 = 8;

pub(crate) struct Responder {
    socket: Arc<Socket>,
    flow: u32,
    /// Bytes of a request whose rest is missing.
    part: usize,
    /// Bytes of responses still to be written.
    unsent: usize,
}

impl Responder {
    pub(crate) fn new(socket: Arc<Socket>, flow: u32) -> Self {
        Self {
            socket,
            flow,
            part: 0,
            unsent: 0,
        }
    }

    /// Writes responses; `false` where the socket takes no more.
    fn send(&mut self, desk: &Desk<'_>) -> io::Result<bool> {
        let size = desk.load.options.response;
        write_messages(&self.socket, desk, self.flow, &mut self.unsent, size)
    }

    fn end(&self) -> Next {
        if self.part > 0 {
            let words = "it ended within a request";
            return Next::failed(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        let ended = self
            .socket
            .set_linger(None)
            .and_then(|()| self.socket.shutdown(Shutdown::Write));
        match ended {
            Ok(()) => Next::Over(End::Orderly),
            Err(error) => Next::failed(error),
        }
    }
}

impl Machine for Responder {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        let request = desk.load.options.request as usize;
        let response = desk.load.options.response as usize;
        for _ in 0..TURN {
            match self.send(desk) {
                Ok(true) => {}
                // Nothing more is read before: what a client may ask at once is bounded by what it reads.
                Ok(false) => return Next::WRITE,
                Err(error) => return Next::failed(error),
            }
            match (&*self.socket).read(&mut desk.room.bytes) {
                Ok(0) => return self.end(),
                Ok(read) => {
                    self.part += read;
                    let whole = self.part / request;
                    self.part %= request;
                    self.unsent += whole * response;
                    let incoming = &desk.flow(self.flow).incoming;
                    incoming.bytes.add(read as u64);
                    incoming.messages.add(whole as u64);
                    if read < desk.room.bytes.len() && !desk.blocking {
                        return match self.send(desk) {
                            Ok(true) => Next::READ,
                            Ok(false) => Next::WRITE,
                            Err(error) => Next::failed(error),
                        };
                    }
                }
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Next::READ,
                    Trouble::Broken(error) => return Next::failed(error),
                },
            }
        }
        Next::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}
