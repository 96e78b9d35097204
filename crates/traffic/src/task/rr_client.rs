//! TCP_RR client: requests and responses on a connection that stays.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::socket::receive;

use super::request_loop::{self, Idle, RequestClient};
use super::request_schedule::RequestSchedule;
use super::{Context, IoFailure, IoRequest, Progress, RingIo, Task, count_sent, write_message};
use crate::flow::Outcome;
use crate::shared::Shared;
use crate::timeouts::PEER_TIMEOUT;

/// A request, sent or due.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// When the request was due, nanoseconds by [`Shared::now`].
    due: u64,
    /// When the first byte of the request was written; before that, when it was queued.
    sent: u64,
}

pub(crate) struct RrClient {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    schedule: RequestSchedule,
    /// Unanswered requests, in order.
    outstanding: VecDeque<Request>,
    /// How many of `outstanding` were written, at least in part.
    begun: usize,
    /// Bytes of requests to be written.
    unsent: usize,
    /// Bytes of an incomplete response.
    part: usize,
    /// Whether no more requests are to be sent.
    finishing: bool,
}

impl RrClient {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        Self {
            socket,
            flow,
            schedule: RequestSchedule::new(shared, flow),
            outstanding: VecDeque::with_capacity(shared.options.load.depth as usize),
            begun: 0,
            unsent: 0,
            part: 0,
            finishing: false,
        }
    }

    /// Notes `now` as the sending time of requests whose first byte was written.
    fn mark_sent(&mut self, context: &Context<'_>, now: u64) {
        let untouched = self.unsent / context.shared.options.load.request as usize;
        let begun = self.outstanding.len() - untouched;
        for request in self.outstanding.range_mut(self.begun..begun) {
            request.sent = now;
            context.record_lateness(request.due, now);
        }
        self.begun = begun;
    }

    /// Bytes of responses outstanding.
    fn expected(&self, context: &Context<'_>) -> usize {
        self.outstanding.len() * context.shared.options.load.response as usize - self.part
    }

    /// Processes bytes of responses read by `now`.
    fn take(&mut self, context: &Context<'_>, read: usize, now: u64) -> io::Result<()> {
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let response = context.shared.options.load.response as usize;
        self.part += read;
        let complete = self.part / response;
        self.part %= response;
        for request in self.outstanding.drain(..complete) {
            context.record(request.sent, now);
            self.schedule.done(now);
        }
        self.begun -= complete;
        let rx = &context.flow(self.flow).rx;
        rx.bytes.add(read as u64);
        rx.messages.add(complete as u64);
        Ok(())
    }

    /// Shuts down; the server's FIN follows.
    fn finish(&self) -> Outcome {
        let _ = self.socket.shutdown(Shutdown::Write);
        Outcome::Orderly
    }
}

impl RequestClient for RrClient {
    fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    fn queue(&mut self, context: &Context<'_>, now: u64) {
        self.finishing |= context.shared.flows.stopping();
        self.schedule.begin(context.shared.began());
        while !self.finishing {
            let Some(due) = self.schedule.next(now, self.outstanding.len()) else {
                return;
            };
            if context.shared.take_budget(1) == 0 {
                self.finishing = true;
                return;
            }
            self.outstanding.push_back(Request { due, sent: now });
            self.unsent += context.shared.options.load.request as usize;
        }
    }

    fn send(&mut self, context: &Context<'_>, mut now: u64) -> io::Result<bool> {
        let size = context.shared.options.load.request;
        while self.unsent > 0 {
            let before = self.unsent;
            let all = write_message(&self.socket, context, self.flow, &mut self.unsent, size)?;
            if self.unsent < before {
                self.mark_sent(context, now);
            }
            if !all {
                return Ok(false);
            }
            if self.unsent > 0 {
                now = context.shared.now();
            }
        }
        Ok(true)
    }

    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let room = self.expected(context).min(context.buffers.read.len());
        let read = match receive(&*self.socket, &mut context.buffers.read[..room]) {
            Ok(read) => read,
            Err(error) => match IoFailure::from(error) {
                IoFailure::Interrupted => return Ok(true),
                IoFailure::Blocked => return Ok(false),
                IoFailure::Broken(error) => return Err(error),
            },
        };
        self.take(context, read, context.shared.now())?;
        Ok(read == room)
    }

    fn timed_out(&self, now: u64) -> bool {
        self.outstanding.front().is_some_and(|request| {
            now.saturating_sub(request.sent) > PEER_TIMEOUT.as_nanos() as u64
        })
    }

    fn idle(&mut self, _: &Context<'_>) -> Idle {
        if self.finishing {
            Idle::Over(self.finish())
        } else {
            Idle::Until(self.schedule.due(0))
        }
    }

    fn until(&self) -> Option<u64> {
        let silence = self
            .outstanding
            .front()
            .map(|request| request.sent + PEER_TIMEOUT.as_nanos() as u64);
        let due = if self.finishing {
            None
        } else {
            self.schedule.due(self.outstanding.len())
        };
        [silence, due].into_iter().flatten().min()
    }
}

impl Task for RrClient {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        request_loop::poll(self, context)
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

impl RingIo for RrClient {
    fn next_io(&mut self, context: &Context<'_>, now: u64) -> Result<IoRequest, Outcome> {
        if self.timed_out(now) {
            return Err(Outcome::Failed(io::ErrorKind::TimedOut.into()));
        }
        self.queue(context, now);
        // The ring submits the new requests right after this.
        let begun = self.outstanding.len();
        for request in self.outstanding.range(self.begun..begun) {
            context.record_lateness(request.due, request.sent);
        }
        self.begun = begun;
        if self.outstanding.is_empty() && self.finishing {
            return Err(self.finish());
        }
        Ok(IoRequest {
            send: self.unsent,
            receive: self.expected(context),
            until: self.until(),
        })
    }

    fn sent(&mut self, context: &Context<'_>, bytes: usize) {
        let size = context.shared.options.load.request;
        count_sent(context, self.flow, &mut self.unsent, size, bytes);
    }

    fn received(&mut self, context: &Context<'_>, bytes: usize, now: u64) -> Result<(), Outcome> {
        self.take(context, bytes, now).map_err(Outcome::Failed)
    }
}
