//! The writing half of a TCP stream.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{read_completions, send, send_zero_copy};

use super::gate::Gate;
use super::write_size::WriteSize;
use super::{Desk, LOOK, Machine, Next, Trouble};
use crate::flow::{End, Flow};
use crate::options::{Options, Sending};

/// Bytes that one flow may write before the others of its thread have their turn.
const TURN: usize = 128 << 10;
/// Zero-copy sends after which the completions are looked for: they take memory of the kernel's.
const COMPLETIONS_EVERY: u64 = 16;

/// Who says when to begin and when to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// This end.
    Own,
    /// The peer: begin when it does, end the connection when it has ended its half.
    Peer,
}

pub(crate) struct Source {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    pub(crate) lead: Lead,
    /// Bytes written.
    pub(crate) total: u64,
    /// Bytes taken from the load's limit and not yet written.
    pub(crate) rest: usize,
    /// How long its writes are.
    size: WriteSize,
    /// Where the stream has a rate.
    gate: Option<Gate>,
}

impl Source {
    pub(crate) fn new(options: &Options, socket: Arc<Socket>, flow: u32, lead: Lead) -> Self {
        Self {
            socket,
            flow,
            lead,
            total: 0,
            rest: 0,
            size: WriteSize::of(options),
            gate: Gate::of(options, flow),
        }
    }

    fn stopping(&self, desk: &Desk<'_>) -> bool {
        match self.lead {
            Lead::Own => desk.load.flows.stopping(),
            Lead::Peer => desk.flow(self.flow).peer_done.load(Relaxed),
        }
    }

    /// The end of the stream goes out behind the last byte.
    fn end(&self, desk: &Desk<'_>) -> Next {
        if desk.load.options.sending == Sending::ZeroCopy {
            // What is still under way is looked for once more when the flow is closed.
            let _ = self.count_completions(desk.flow(self.flow));
        }
        match self.socket.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Next::failed(error),
            _ => Next::Over(End::Orderly),
        }
    }

    fn write(&self, desk: &Desk<'_>, bytes: &[u8]) -> io::Result<usize> {
        if desk.load.options.sending == Sending::Copy {
            return send(&*self.socket, bytes);
        }
        let out = &desk.flow(self.flow).out;
        if out.zero_copy.get().is_multiple_of(COMPLETIONS_EVERY) {
            self.count_completions(desk.flow(self.flow))?;
        }
        if let Some(sent) = send_zero_copy(&*self.socket, bytes)? {
            out.zero_copy.add(1);
            return Ok(sent);
        }
        self.count_completions(desk.flow(self.flow))?;
        let sent = send(&*self.socket, bytes)?;
        out.fallbacks.add(1);
        Ok(sent)
    }

    fn count_completions(&self, flow: &Flow) -> io::Result<()> {
        count_completions(&self.socket, flow)
    }
}

/// Enters what the error queue says of zero-copy sends.
pub(crate) fn count_completions(socket: &Socket, flow: &Flow) -> io::Result<()> {
    let some = read_completions(socket)?;
    flow.out.completed.add(some.completed);
    flow.out.copied.add(some.copied);
    Ok(())
}

impl Machine for Source {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        let load = desk.load;
        let flows = &load.flows;
        if self.lead == Lead::Peer && !flows.started() && !self.stopping(desk) {
            if !desk.blocking {
                return Next::PARK;
            }
            let deadline = std::time::Instant::now() + LOOK;
            let told = || flows.started() || flows.is_cut() || self.stopping(desk);
            if !flows.wait_until(Some(deadline), told) {
                return Next::READ;
            }
        }
        if load.options.sending == Sending::ZeroCopy
            && let Err(error) = self.count_completions(desk.flow(self.flow))
        {
            return Next::failed(error);
        }
        if let Some(gate) = &mut self.gate {
            gate.begin(load.began());
        }
        let mut written = 0;
        while written < TURN {
            if self.stopping(desk) {
                return self.end(desk);
            }
            let due = match &mut self.gate {
                None => usize::MAX,
                Some(gate) => match gate.open(load.now(), self.total) {
                    Ok(due) => due,
                    Err(until) => return Next::Wait(Interest::NONE, Some(until)),
                },
            };
            let length = self.size.next(&self.socket, self.total);
            if self.rest < length {
                let more = length - self.rest;
                self.rest += match self.lead {
                    Lead::Own => load.take(more as u64) as usize,
                    // A limit is of what the client sends, and this half ends with that one.
                    Lead::Peer => more,
                };
                if self.rest == 0 {
                    return self.end(desk);
                }
            }
            match self.write(desk, &load.message[..self.rest.min(length).min(due)]) {
                Ok(sent) => {
                    self.rest -= sent;
                    self.total += sent as u64;
                    desk.flow(self.flow).out.bytes.publish(self.total);
                    written += sent;
                }
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Next::WRITE,
                    // Our own shutdown, which wakes a send that waits.
                    Trouble::Broken(error)
                        if error.kind() == io::ErrorKind::BrokenPipe && self.stopping(desk) =>
                    {
                        return Next::Over(End::Orderly);
                    }
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
