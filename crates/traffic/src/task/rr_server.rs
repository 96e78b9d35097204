//! TCP_RR server: requests and responses on a connection that stays.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::socket::receive;

use super::{Context, IoFailure, IoRequest, Progress, RingIo, Task, count_sent, write_messages};
use crate::flow::Outcome;

/// Transactions of one flow before the others of its thread are polled.
const BUDGET: u32 = 8;

pub(crate) struct RrServer {
    socket: Arc<Socket>,
    flow: u32,
    /// Bytes of an incomplete request.
    part: usize,
    /// Bytes of responses to be written.
    unsent: usize,
    /// Whether requests were read while earlier responses were still to be written.
    ahead: bool,
}

impl RrServer {
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
    fn send(&mut self, context: &Context<'_>) -> io::Result<bool> {
        let size = context.shared.options.load.response;
        write_messages(&self.socket, context, self.flow, &mut self.unsent, size)
    }

    /// Processes bytes of requests.
    fn take(&mut self, context: &Context<'_>, read: usize) {
        let request = context.shared.options.load.request as usize;
        let response = context.shared.options.load.response as usize;
        self.part += read;
        let complete = self.part / request;
        self.part %= request;
        self.unsent += complete * response;
        let rx = &context.flow(self.flow).rx;
        rx.bytes.add(read as u64);
        rx.messages.add(complete as u64);
    }

    /// Ends the connection at the client's FIN.
    fn end(&self) -> Outcome {
        if self.part > 0 {
            let words = "it ended within a request";
            return Outcome::Failed(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        let ended = self
            .socket
            .set_linger(None)
            .and_then(|()| self.socket.shutdown(Shutdown::Write));
        match ended {
            Ok(()) => Outcome::Orderly,
            Err(error) => Outcome::Failed(error),
        }
    }
}

impl Task for RrServer {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        for _ in 0..BUDGET {
            match self.send(context) {
                Ok(true) => {}
                // Nothing is read before all responses are written: a client that does not read could otherwise make
                // `unsent` grow without bound.
                Ok(false) => return Progress::WRITE,
                Err(error) => return Progress::failed(error),
            }
            match receive(&*self.socket, &mut context.buffers.read) {
                Ok(0) => return Progress::Over(self.end()),
                Ok(read) => {
                    self.take(context, read);
                    if read < context.buffers.read.len() && !context.blocking {
                        return match self.send(context) {
                            Ok(true) => Progress::READ,
                            Ok(false) => Progress::WRITE,
                            Err(error) => Progress::failed(error),
                        };
                    }
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Progress::READ,
                    IoFailure::Broken(error) => return Progress::failed(error),
                },
            }
        }
        Progress::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
    fn ring_io(&mut self) -> Option<&mut dyn RingIo> {
        Some(self)
    }
}

impl RingIo for RrServer {
    fn next_io(&mut self, _: &Context<'_>, _: u64) -> Result<IoRequest, Outcome> {
        Ok(IoRequest {
            send: self.unsent,
            // At most one read while responses are still to be written.
            receive: if self.ahead { 0 } else { usize::MAX },
            until: None,
        })
    }

    fn sent(&mut self, context: &Context<'_>, bytes: usize) {
        let size = context.shared.options.load.response;
        count_sent(context, self.flow, &mut self.unsent, size, bytes);
        self.ahead &= self.unsent > 0;
    }

    fn received(&mut self, context: &Context<'_>, bytes: usize, _: u64) -> Result<(), Outcome> {
        if bytes == 0 {
            return Err(self.end());
        }
        self.ahead = self.unsent > 0;
        self.take(context, bytes);
        Ok(())
    }
}
