//! The server's side of request/response on a TCP connection that stays.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::socket::receive;

use super::{Desk, Exchange, Machine, Next, Trouble, Wants, count_sent, write_messages};
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
    /// Whether more was read before they were.
    ahead: bool,
}

impl Responder {
    pub(crate) fn new(socket: Arc<Socket>, flow: u32) -> Self {
        Self {
            socket,
            flow,
            part: 0,
            unsent: 0,
            ahead: false,
        }
    }

    /// Writes responses; `false` where the socket takes no more.
    fn send(&mut self, desk: &Desk<'_>) -> io::Result<bool> {
        let size = desk.load.options.response;
        write_messages(&self.socket, desk, self.flow, &mut self.unsent, size)
    }

    /// Takes bytes of requests that were read.
    fn take(&mut self, desk: &Desk<'_>, read: usize) {
        let request = desk.load.options.request as usize;
        let response = desk.load.options.response as usize;
        self.part += read;
        let whole = self.part / request;
        self.part %= request;
        self.unsent += whole * response;
        let incoming = &desk.flow(self.flow).incoming;
        incoming.bytes.add(read as u64);
        incoming.messages.add(whole as u64);
    }

    /// The stream is over.
    fn end(&self) -> End {
        if self.part > 0 {
            let words = "it ended within a request";
            return End::Failed(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        let ended = self
            .socket
            .set_linger(None)
            .and_then(|()| self.socket.shutdown(Shutdown::Write));
        match ended {
            Ok(()) => End::Orderly,
            Err(error) => End::Failed(error),
        }
    }
}

impl Machine for Responder {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        for _ in 0..TURN {
            match self.send(desk) {
                Ok(true) => {}
                // Nothing more is read before: what a client may ask at once is bounded by what it reads.
                Ok(false) => return Next::WRITE,
                Err(error) => return Next::failed(error),
            }
            match receive(&*self.socket, &mut desk.room.bytes) {
                Ok(0) => return Next::Over(self.end()),
                Ok(read) => {
                    self.take(desk, read);
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
    fn exchange(&mut self) -> Option<&mut dyn Exchange> {
        Some(self)
    }
}

impl Exchange for Responder {
    fn wants(&mut self, _: &Desk<'_>, _: u64) -> Result<Wants, End> {
        Ok(Wants {
            send: self.unsent,
            // One read ahead of what is to be written and no more, as above.
            receive: if self.ahead { 0 } else { usize::MAX },
            until: None,
        })
    }

    fn sent(&mut self, desk: &Desk<'_>, bytes: usize) {
        let size = desk.load.options.response;
        count_sent(desk, self.flow, &mut self.unsent, size, bytes);
        self.ahead &= self.unsent > 0;
    }

    fn received(&mut self, desk: &Desk<'_>, bytes: usize, _: u64) -> Result<(), End> {
        if bytes == 0 {
            return Err(self.end());
        }
        self.ahead = self.unsent > 0;
        self.take(desk, bytes);
        Ok(())
    }
}
