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
    /// When the server last sent something, or took a part of the oldest request; nanoseconds by [`Shared::now`].
    last_activity: u64,
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
            last_activity: 0,
            finishing: false,
        }
    }

    /// Since when the server is silent while a response is awaited; `None`: none is.
    fn silent_since(&self) -> Option<u64> {
        let oldest = self.outstanding.front()?;
        Some(oldest.sent.max(self.last_activity))
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
        self.last_activity = now;
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
    fn socket(&self) -> &Socket {
        &self.socket
    }

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
            // Later requests do not count: a server that never answers takes them until its buffer is full.
            let is_oldest = before > self.outstanding.len().saturating_sub(1) * size as usize;
            let all = write_message(&self.socket, context, self.flow, &mut self.unsent, size)?;
            if self.unsent < before {
                self.mark_sent(context, now);
                if is_oldest {
                    self.last_activity = now;
                }
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
        self.silent_since()
            .is_some_and(|since| now.saturating_sub(since) > PEER_TIMEOUT.as_nanos() as u64)
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
            .silent_since()
            .map(|since| since + PEER_TIMEOUT.as_nanos() as u64);
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

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};
    use wirecost_model::end_window::End;

    use super::*;
    use crate::buffers::{BufferSizes, Buffers};
    use crate::options::{Options, Rate, Workload};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_response_that_goes_on_arriving_is_no_silence_however_long_it_takes() {
        const RESPONSE: usize = 1 << 20;
        let options =
            Options::new(Workload::TcpRr, [7; 16]).with(|load| load.response = RESPONSE as u32);
        let sizes = BufferSizes::tcp_rr(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut buffers = Buffers::new(&sizes, false);
        let context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: false,
        };
        let (socket, _server) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        let mut client = RrClient::new(&shared, Arc::new(socket), 0);
        client.queue(&context, SECOND);
        assert!(client.send(&context, SECOND).unwrap());
        assert!(!client.timed_out(11 * SECOND) && client.timed_out(11 * SECOND + 1));

        for at in [9, 18, 27] {
            client.take(&context, 1_000, at * SECOND).unwrap();
        }
        assert!(!client.timed_out(37 * SECOND) && client.timed_out(37 * SECOND + 1));
        assert_eq!(client.until(), Some(37 * SECOND));

        client
            .take(&context, RESPONSE - 3_000, 28 * SECOND)
            .unwrap();
        assert!(!client.timed_out(90 * SECOND), "nothing is awaited");
        client.queue(&context, 90 * SECOND);
        assert!(!client.timed_out(100 * SECOND) && client.timed_out(100 * SECOND + 1));
    }

    #[test]
    fn a_server_that_takes_requests_and_answers_none_is_silent() {
        let options = Options::new(Workload::TcpRr, [7; 16]).with(|load| {
            load.depth = 100;
            load.rate = Some(Rate::RequestsPerSecond(1.0));
        });
        let sizes = BufferSizes::tcp_rr(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut buffers = Buffers::new(&sizes, false);
        let context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: false,
        };
        let (socket, _server) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        let mut client = RrClient::new(&shared, Arc::new(socket), 0);
        let mut now = 0;
        while client.outstanding.len() < 2 {
            now += SECOND;
            client.queue(&context, now);
            client.send(&context, now).unwrap();
        }
        let first = client.outstanding[0].sent;
        for _ in 0..60 {
            now += SECOND;
            client.queue(&context, now);
            client.send(&context, now).unwrap();
        }
        assert_eq!(client.silent_since(), Some(first));
        assert!(client.timed_out(now));
    }

    #[test]
    fn a_server_that_ends_the_connection_between_two_requests_is_noticed_at_once() {
        let options = Options::new(Workload::TcpRr, [7; 16])
            .with(|load| load.rate = Some(Rate::RequestsPerSecond(0.001)));
        let sizes = BufferSizes::tcp_rr(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut buffers = Buffers::new(&sizes, false);
        let mut context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: false,
        };
        let (socket, server) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut client = RrClient::new(&shared, Arc::new(socket), 0);
        let waits = client.poll(&mut context);
        assert!(matches!(waits, Progress::Wait(..)), "{waits:?}");
        drop(server);
        let over = client.poll(&mut context);
        let Progress::Over(Outcome::Failed(error)) = over else {
            panic!("it would wait for what it is woken by again and again: {over:?}");
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
