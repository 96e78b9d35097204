//! The receiving direction of a TCP stream.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use socket2::Socket;
use wirecost_sys::socket::{receive, receive_discarding};

use super::{Context, IoFailure, Progress, Task};
use crate::flow::Outcome;
use crate::options::{DISCARDED_AT_ONCE, Receiving};
use crate::read_offset::at_stream_offset;

/// Reads of one flow before the others of its thread are polled.
const BUDGET: u32 = 4;

/// What to do at the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnEof {
    /// Send the number of bytes read, and shut down.
    SendCount,
    /// Shut down the sending direction.
    ShutdownWrite,
    /// Nothing: the sending direction has ended already.
    Nothing,
}

pub(crate) struct StreamReceiver {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    pub(crate) on_eof: OnEof,
    /// Bytes read.
    total: u64,
}

impl StreamReceiver {
    pub(crate) fn new(socket: Arc<Socket>, flow: u32, on_eof: OnEof) -> Self {
        Self {
            socket,
            flow,
            on_eof,
            total: 0,
        }
    }

    fn read(&self, context: &mut Context<'_>) -> io::Result<usize> {
        match context.shared.options.load.receiving {
            // A read that copies, as an application's.
            Receiving::Copy => {
                let at_once = context.shared.options.read_at_once();
                let place = at_stream_offset(&mut context.buffers.read, self.total, at_once);
                receive(&*self.socket, place)
            }
            Receiving::Discard => receive_discarding(&*self.socket, DISCARDED_AT_ONCE),
        }
    }

    fn end(&self, context: &Context<'_>) -> Progress {
        let flow = context.flow(self.flow);
        let said = match self.on_eof {
            OnEof::SendCount => send_count(&self.socket, self.total),
            OnEof::ShutdownWrite => {
                flow.peer_done.store(true, Relaxed);
                // Wakes a blocked send; bytes that are queued already are still sent.
                let shut = match self.socket.shutdown(Shutdown::Write) {
                    // The sending direction had ended before.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    shut => shut,
                };
                context.shared.flows.notify();
                shut.and_then(|()| self.socket.set_linger(None))
            }
            OnEof::Nothing => Ok(()),
        };
        match said {
            Ok(()) => Progress::Over(Outcome::Orderly),
            Err(error) => Progress::failed(error),
        }
    }
}

/// Confirms how much was read and ends the connection in order, no longer with a reset.
pub(crate) fn send_count(mut socket: &Socket, bytes: u64) -> io::Result<()> {
    socket.write_all(&bytes.to_be_bytes())?;
    socket.set_linger(None)?;
    socket.shutdown(Shutdown::Write)
}

impl Task for StreamReceiver {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        for _ in 0..BUDGET {
            let read = self.read(context);
            if context.shared.flows.is_aborted() {
                return Progress::Over(Outcome::Released);
            }
            match read {
                Ok(0) => return self.end(context),
                Ok(bytes) => {
                    self.total += bytes as u64;
                    context.flow(self.flow).rx.bytes.publish(self.total);
                    if self.on_eof == OnEof::ShutdownWrite && !context.shared.flows.started() {
                        // All flows of this end start with the first byte received on any.
                        context.shared.flows.set_started();
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
}
