//! The sending direction of a TCP stream.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{read_completions, send, send_zero_copy};

use super::write_pacer::WritePacer;
use super::{Context, IoFailure, Progress, Task};
use crate::flow::{Flow, Outcome};
use crate::options::{Options, Sending};
use crate::timeouts::POLL_INTERVAL;
use crate::write_size::WriteSize;

/// Bytes of one flow before the others of its thread are polled.
const BUDGET: usize = 128 << 10;
/// Zero-copy sends between two readings of the completions, which take kernel memory.
const COMPLETIONS_EVERY: u64 = 16;

/// Which end decides when to start and to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Initiator {
    /// This end.
    Local,
    /// The peer: start and stop when the peer does.
    Remote,
}

pub(crate) struct StreamSender {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    pub(crate) initiator: Initiator,
    /// Bytes written.
    pub(crate) total: u64,
    /// Bytes taken from the load's limit and not written.
    pub(crate) rest: usize,
    /// The length of its writes.
    size: WriteSize,
    /// Paces the writes of a stream with a rate; `None` without one.
    gate: Option<WritePacer>,
}

impl StreamSender {
    pub(crate) fn new(
        options: &Options,
        socket: Arc<Socket>,
        flow: u32,
        initiator: Initiator,
    ) -> Self {
        Self {
            socket,
            flow,
            initiator,
            total: 0,
            rest: 0,
            size: WriteSize::of(options),
            gate: WritePacer::of(options, flow),
        }
    }

    fn stopping(&self, context: &Context<'_>) -> bool {
        match self.initiator {
            Initiator::Local => context.shared.flows.stopping(),
            Initiator::Remote => context.flow(self.flow).peer_done.load(Relaxed),
        }
    }

    /// Shuts down: the FIN follows the last byte.
    fn end(&self, context: &Context<'_>) -> Progress {
        if context.shared.options.load.sending == Sending::ZeroCopy {
            // Later completions are read when the flow is closed.
            let _ = self.count_completions(context.flow(self.flow));
        }
        match self.socket.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Progress::failed(error),
            _ => Progress::Over(Outcome::Orderly),
        }
    }

    fn write(&self, context: &Context<'_>, bytes: &[u8]) -> io::Result<usize> {
        if context.shared.options.load.sending == Sending::Copy {
            return send(&*self.socket, bytes);
        }
        let tx = &context.flow(self.flow).tx;
        if tx.zero_copy.get().is_multiple_of(COMPLETIONS_EVERY) {
            self.count_completions(context.flow(self.flow))?;
        }
        if let Some(sent) = send_zero_copy(&*self.socket, bytes)? {
            tx.zero_copy.add(1);
            return Ok(sent);
        }
        self.count_completions(context.flow(self.flow))?;
        let sent = send(&*self.socket, bytes)?;
        tx.fallbacks.add(1);
        Ok(sent)
    }

    fn count_completions(&self, flow: &Flow) -> io::Result<()> {
        count_completions(&self.socket, flow)
    }
}

/// Adds the zero-copy completions in the socket's error queue to the flow's counters.
pub(crate) fn count_completions(socket: &Socket, flow: &Flow) -> io::Result<()> {
    let some = read_completions(socket)?;
    flow.tx.completed.add(some.completed);
    flow.tx.copied.add(some.copied);
    Ok(())
}

impl Task for StreamSender {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let shared = context.shared;
        let flows = &shared.flows;
        if self.initiator == Initiator::Remote && !flows.started() && !self.stopping(context) {
            if !context.blocking {
                return Progress::PARK;
            }
            let deadline = std::time::Instant::now() + POLL_INTERVAL;
            let told = || flows.started() || flows.is_aborted() || self.stopping(context);
            if !flows.wait_until(Some(deadline), told) {
                return Progress::READ;
            }
        }
        if shared.options.load.sending == Sending::ZeroCopy
            && let Err(error) = self.count_completions(context.flow(self.flow))
        {
            return Progress::failed(error);
        }
        if let Some(gate) = &mut self.gate {
            gate.begin(shared.began());
        }
        let mut written = 0;
        while written < BUDGET {
            if self.stopping(context) {
                return self.end(context);
            }
            let due = match &mut self.gate {
                None => usize::MAX,
                Some(gate) => match gate.open(shared.now(), self.total) {
                    Ok(due) => due,
                    Err(until) => return Progress::Wait(Interest::NONE, Some(until)),
                },
            };
            let length = self.size.next(&self.socket, self.total);
            if self.rest < length {
                let more = length - self.rest;
                self.rest += match self.initiator {
                    Initiator::Local => shared.take_budget(more as u64) as usize,
                    // The limit applies to the client's direction, with which this one ends.
                    Initiator::Remote => more,
                };
                if self.rest == 0 {
                    return self.end(context);
                }
            }
            match self.write(context, &shared.message[..self.rest.min(length).min(due)]) {
                Ok(sent) => {
                    self.rest -= sent;
                    self.total += sent as u64;
                    context.flow(self.flow).tx.bytes.publish(self.total);
                    written += sent;
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Progress::WRITE,
                    // Our own shutdown(2).
                    IoFailure::Broken(error)
                        if error.kind() == io::ErrorKind::BrokenPipe && self.stopping(context) =>
                    {
                        return Progress::Over(Outcome::Orderly);
                    }
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
