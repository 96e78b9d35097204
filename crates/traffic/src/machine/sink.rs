//! The reading half of a TCP stream.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use socket2::Socket;
use wirecost_sys::socket::{receive, receive_discarding};

use super::landing::landing;
use super::{Desk, Machine, Next, Trouble};
use crate::flow::End;
use crate::options::{DISCARDED_AT_ONCE, Receiving};

/// Reads of one flow before the others of its thread have their turn.
const TURN: u32 = 4;

/// What the end of the stream calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Tell the peer how much was read, and end the connection.
    Count,
    /// Have our own writing half end, which ends the connection.
    EndOwnHalf,
    /// Nothing: our own half has ended already, and the connection with this one.
    Nothing,
}

pub(crate) struct Sink {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    pub(crate) farewell: Farewell,
    /// Bytes read.
    total: u64,
}

impl Sink {
    pub(crate) fn new(socket: Arc<Socket>, flow: u32, farewell: Farewell) -> Self {
        Self {
            socket,
            flow,
            farewell,
            total: 0,
        }
    }

    fn read(&self, desk: &mut Desk<'_>) -> io::Result<usize> {
        match desk.load.options.receiving {
            // A read that copies, as an application's would.
            Receiving::Copy => {
                let at_once = desk.load.options.read_at_once();
                let place = landing(&mut desk.room.bytes, self.total, at_once);
                receive(&*self.socket, place)
            }
            Receiving::Discard => receive_discarding(&*self.socket, DISCARDED_AT_ONCE),
        }
    }

    fn end(&self, desk: &Desk<'_>) -> Next {
        let flow = desk.flow(self.flow);
        let said = match self.farewell {
            Farewell::Count => bid_farewell(&self.socket, self.total),
            Farewell::EndOwnHalf => {
                flow.peer_done.store(true, Relaxed);
                // Wakes a send that waits; what it had queued so far is sent all the same.
                let shut = match self.socket.shutdown(Shutdown::Write) {
                    // Our half ended before, and this was the last of the connection.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    shut => shut,
                };
                desk.load.flows.notify();
                shut.and_then(|()| self.socket.set_linger(None))
            }
            Farewell::Nothing => Ok(()),
        };
        match said {
            Ok(()) => Next::Over(End::Orderly),
            Err(error) => Next::failed(error),
        }
    }
}

/// The stream ended in order, and so may the connection: no reset any more.
pub(crate) fn bid_farewell(mut socket: &Socket, bytes: u64) -> io::Result<()> {
    socket.write_all(&bytes.to_be_bytes())?;
    socket.set_linger(None)?;
    socket.shutdown(Shutdown::Write)
}

impl Machine for Sink {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        for _ in 0..TURN {
            let read = self.read(desk);
            if desk.load.flows.is_cut() {
                return Next::Over(End::Released);
            }
            match read {
                Ok(0) => return self.end(desk),
                Ok(bytes) => {
                    self.total += bytes as u64;
                    desk.flow(self.flow).incoming.bytes.publish(self.total);
                    if self.farewell == Farewell::EndOwnHalf && !desk.load.flows.started() {
                        // All of this end's flows begin with the first byte of any.
                        desk.load.flows.set_started();
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
