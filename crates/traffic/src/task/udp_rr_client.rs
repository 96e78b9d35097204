//! UDP_RR client: requests and responses in datagrams, either of which may be lost.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::epoll::Interest;

use super::request_schedule::RequestSchedule;
use super::{Context, IoFailure, Progress, Task};
use crate::datagram::Datagram;
use crate::flow::Outcome;
use crate::handshake::is_control;
use crate::options::WaitMode;
use crate::sequence::{Arrival, SequenceTracker, Timestamp};
use crate::shared::Shared;
use crate::timeouts::PEER_TIMEOUT;

/// Transactions of one flow before the others of its thread are polled.
const BUDGET: u32 = 8;
/// Lost requests in a row after which the peer counts as gone.
pub(super) const LOST_IN_A_ROW: u32 = 10;

/// Outstanding requests by number. No clock, no socket.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// Requests in ascending order of their numbers.
    waiting: VecDeque<Entry>,
    /// Entries of `waiting` that were answered.
    answered: usize,
    /// Nanoseconds after which a request times out.
    timeout: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    sent: u64,
    expires: u64,
    answered: bool,
}

impl Outstanding {
    pub(crate) fn new(depth: usize, timeout: u64) -> Self {
        Self {
            // Answered entries stay behind an older one that is not.
            waiting: VecDeque::with_capacity(2 * depth),
            answered: 0,
            timeout,
        }
    }

    /// Requests neither answered nor timed out.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() - self.answered
    }

    /// Whether there is room for `more` and another one without an allocation.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.waiting.len() + more < self.waiting.capacity()
    }

    /// Adds a request sent at `now`. Numbers ascend.
    pub(crate) fn sent(&mut self, number: u64, now: u64) {
        self.waiting.push_back(Entry {
            number,
            sent: now,
            expires: now + self.timeout,
            answered: false,
        });
    }

    /// Notes a response. Returns when its request was sent; `None` where the request was answered before or has
    /// timed out.
    pub(crate) fn answered(&mut self, number: u64, now: u64) -> Option<u64> {
        let place = self
            .waiting
            .binary_search_by_key(&number, |entry| entry.number)
            .ok()?;
        let entry = &mut self.waiting[place];
        if entry.answered || entry.expires <= now {
            return None;
        }
        entry.answered = true;
        let sent = entry.sent;
        self.answered += 1;
        self.forget_answered();
        Some(sent)
    }

    /// Removes requests that have timed out. Returns how many.
    pub(crate) fn expire(&mut self, now: u64) -> u64 {
        let mut given_up = 0;
        while let Some(oldest) = self.waiting.front() {
            if !oldest.answered && oldest.expires > now {
                break;
            }
            let answered = oldest.answered;
            self.waiting.pop_front();
            if answered {
                self.answered -= 1;
            } else {
                given_up += 1;
            }
        }
        given_up
    }

    /// When the next request times out.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.waiting.front().map(|entry| entry.expires)
    }

    fn forget_answered(&mut self) {
        while self.waiting.front().is_some_and(|entry| entry.answered) {
            self.waiting.pop_front();
            self.answered -= 1;
        }
    }
}

/// How long the peer has been silent while a response was awaited: between requests that are seldom due its silence
/// says nothing. Times are nanoseconds. No clock, no socket.
#[derive(Debug)]
struct Silence {
    /// When the last response arrived, moved by the time in which none was awaited.
    since: u64,
    /// From when on no response has been awaited; `None` while one is.
    idle: Option<u64>,
}

impl Silence {
    /// Before the first request.
    const fn new() -> Self {
        Self {
            since: 0,
            idle: Some(0),
        }
    }

    /// Notes that a response is awaited.
    const fn awaits(&mut self, now: u64) {
        if let Some(idle) = self.idle.take() {
            self.since += now.saturating_sub(idle);
        }
    }

    /// Notes that none is.
    fn rests(&mut self, now: u64) {
        self.idle.get_or_insert(now);
    }

    /// Notes that the peer sent something, which may be late.
    const fn ends(&mut self, now: u64) {
        self.since = now;
        if self.idle.is_some() {
            self.idle = Some(now);
        }
    }

    const fn length(&self, now: u64) -> u64 {
        now.saturating_sub(self.since)
    }
}

pub(crate) struct UdpRrClient {
    socket: Arc<Socket>,
    flow: u32,
    schedule: RequestSchedule,
    outstanding: Outstanding,
    /// When the requests were due that are to be sent next, or that the socket had no room for.
    unsent: VecDeque<u64>,
    /// Numbers of the responses that have arrived: a duplicate does not count as late.
    tracker: SequenceTracker,
    /// The number of the next request.
    number: u64,
    silence: Silence,
    /// Nanoseconds of silence after which the peer counts as gone.
    patience: u64,
    finishing: bool,
}

impl UdpRrClient {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let timeout = shared.options.load.reply_timeout.as_nanos() as u64;
        Self {
            socket,
            flow,
            schedule: RequestSchedule::new(shared, flow),
            outstanding: Outstanding::new(shared.options.load.depth as usize, timeout),
            unsent: VecDeque::with_capacity(shared.options.load.depth as usize),
            tracker: SequenceTracker::new(),
            number: 0,
            silence: Silence::new(),
            patience: (timeout * u64::from(LOST_IN_A_ROW)).max(PEER_TIMEOUT.as_nanos() as u64),
            finishing: false,
        }
    }

    /// Reads what has arrived; `false` where there is no more.
    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let received =
            match context
                .buffers
                .rx_batch
                .receive(&*self.socket, context.blocking, false)
            {
                Ok(received) => received,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => return Ok(true),
                    IoFailure::Blocked => return Ok(false),
                    IoFailure::Broken(error) => return Err(error),
                },
            };
        let now = context.shared.now();
        self.silence.ends(now);
        for index in 0..received {
            let message = context.buffers.rx_batch.get(index);
            let length = message.length as u64;
            let ours = Datagram::get(message.bytes).filter(|datagram| {
                datagram.tag == context.shared.tag && u32::from(datagram.flow) == self.flow
            });
            let Some(datagram) = ours else {
                // The handshake's answer may arrive several times.
                if !is_control(message.bytes) {
                    context.shared.flows.count_stray();
                }
                continue;
            };
            let rx = &context.flow(self.flow).rx;
            match self.tracker.record(datagram.number, datagram.sent, now) {
                Arrival::InOrder | Arrival::Reordered => {}
                Arrival::Duplicate => {
                    rx.duplicated.publish(self.tracker.duplicated());
                    continue;
                }
                Arrival::TooOld => {
                    rx.too_old.publish(self.tracker.too_old());
                    continue;
                }
            }
            let Some(sent) = self.outstanding.answered(datagram.number, now) else {
                rx.late.add(1);
                continue;
            };
            rx.messages.add(1);
            rx.bytes.add(length);
            context.record(sent, now);
            self.schedule.done(now);
        }
        Ok(true)
    }

    fn expire(&mut self, context: &Context<'_>, now: u64) {
        let given_up = self.outstanding.expire(now);
        if given_up > 0 {
            context.flow(self.flow).rx.timeouts.add(given_up);
            for _ in 0..given_up {
                self.schedule.done(now);
            }
        }
    }

    /// Takes the requests that may be sent at `now` from the schedule, a batch at most.
    fn queue(&mut self, shared: &Shared, now: u64, batch: usize) {
        self.schedule.begin(shared.began());
        if shared.flows.stopping() {
            self.finishing = true;
            self.unsent.clear();
        }
        while !self.finishing
            && self.unsent.len() < batch
            && self.outstanding.has_room(self.unsent.len())
        {
            let open = self.outstanding.len() + self.unsent.len();
            let Some(due) = self.schedule.next(now, open) else {
                break;
            };
            if shared.take_budget(1) == 0 {
                self.finishing = true;
                break;
            }
            self.unsent.push_back(due);
            self.silence.awaits(now);
        }
    }

    /// Sends the requests that may be sent now; `false` where the socket takes no more. What it does not take is sent
    /// later, as over TCP: a request that never left is not lost.
    fn send_requests(&mut self, context: &mut Context<'_>, now: u64) -> io::Result<bool> {
        let shared = context.shared;
        self.queue(shared, now, context.buffers.tx_batch.capacity());
        let batched = self.unsent.len();
        for (index, number) in (0..batched).zip(self.number..) {
            let datagram = Datagram {
                counted: false,
                tag: shared.tag,
                flow: self.flow as u16,
                number,
                sent: Timestamp::of(now),
            };
            datagram.put(context.buffers.tx_batch.message(index));
        }
        let mut sent = 0;
        while sent < batched {
            match context
                .buffers
                .tx_batch
                .send(&*self.socket, sent, batched, context.blocking)
            {
                Ok(some) => sent += some,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => break,
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        for due in self.unsent.drain(..sent) {
            self.outstanding.sent(self.number, now);
            context.record_lateness(due, now);
            self.number += 1;
        }
        let tx = &context.flow(self.flow).tx;
        tx.messages.publish(self.number);
        tx.bytes
            .publish(self.number * u64::from(shared.options.load.request));
        Ok(sent == batched)
    }
}

impl Task for UdpRrClient {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        for _ in 0..BUDGET {
            let awaited = self.outstanding.len() > 0;
            if awaited && let Err(error) = self.receive(context) {
                return Progress::failed(explain(error));
            }
            let now = context.shared.now();
            self.expire(context, now);
            let all_sent = match self.send_requests(context, now) {
                Ok(all) => all,
                Err(error) => return Progress::failed(explain(error)),
            };
            if self.outstanding.len() == 0 && all_sent {
                self.silence.rests(now);
                if self.finishing {
                    return Progress::Over(Outcome::Orderly);
                }
                // Nothing is due and nothing was awaited: a late response may have woken the thread. Unread it would do
                // so at once again.
                let waits =
                    !context.blocking && context.shared.options.load.waiting == WaitMode::Sleep;
                if waits
                    && !awaited
                    && let Err(error) = self.receive(context)
                {
                    return Progress::failed(explain(error));
                }
                let interest = Interest {
                    read: !context.blocking,
                    write: false,
                };
                return Progress::Wait(interest, self.schedule.due(0));
            }
            if self.silence.length(now) > self.patience {
                return Progress::failed(io::ErrorKind::TimedOut.into());
            }
            if context.shared.flows.is_aborted() {
                return Progress::Over(Outcome::Released);
            }
            if !context.blocking {
                // What is due has to wait for room in the socket.
                let due = all_sent.then(|| self.schedule.due(self.outstanding.len()));
                let until = [self.outstanding.next_expiry(), due.flatten()]
                    .into_iter()
                    .flatten()
                    .min();
                let interest = Interest {
                    read: true,
                    write: !all_sent,
                };
                return Progress::Wait(interest, until);
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

fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::ConnectionRefused {
        let words = "no process listens on that port (ICMP port unreachable)";
        return io::Error::new(error.kind(), words);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use proptest::prelude::*;
    use socket2::{Domain, Type};
    use wirecost_model::end_window::End;

    use super::*;
    use crate::buffers::{BufferSizes, Buffers};
    use crate::options::{Limit, Options, Rate, Workload};

    const TIMEOUT: u64 = 100;

    #[test]
    fn a_late_answer_is_no_latency_and_neither_is_a_second_one() {
        let mut outstanding = Outstanding::new(4, TIMEOUT);
        outstanding.sent(0, 10);
        outstanding.sent(1, 20);
        assert_eq!(outstanding.answered(1, 50), Some(20));
        assert_eq!(outstanding.answered(1, 51), None);
        assert_eq!(outstanding.answered(0, 10 + TIMEOUT), None);
        assert_eq!(outstanding.expire(10 + TIMEOUT), 1);
        assert_eq!(outstanding.answered(0, 112), None);
        assert_eq!(outstanding.answered(7, 112), None);
        assert_eq!((outstanding.len(), outstanding.next_expiry()), (0, None));
    }

    #[test]
    fn silence_lasts_only_while_a_response_is_awaited() {
        let mut silence = Silence::new();
        silence.awaits(1_000);
        assert_eq!(silence.length(1_000), 0, "the first request");
        silence.ends(1_010);
        silence.rests(1_010);
        silence.awaits(90_000);
        assert_eq!(silence.length(90_000), 0, "seldom due");
        // Given up.
        silence.rests(90_100);
        silence.rests(90_150);
        silence.awaits(200_000);
        assert_eq!(silence.length(200_030), 130, "a lost one and the next");
        silence.awaits(200_040);
        assert_eq!(silence.length(200_040), 140);
        silence.rests(300_000);
        silence.ends(350_000);
        silence.awaits(400_000);
        assert_eq!(silence.length(400_010), 10, "after a late response");
    }

    /// Unix sockets that keep datagram boundaries: what is sent takes room of the sender's buffer until the peer reads
    /// it, and the smallest buffer holds a few.
    fn narrow_pair() -> (Socket, Socket) {
        let (client, server) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
        client.set_send_buffer_size(1).unwrap();
        client.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        (client, server)
    }

    #[test]
    fn what_comes_while_no_request_is_due_is_read() {
        let options = Options::new(Workload::UdpRr, [7; 16])
            .with(|load| load.rate = Some(Rate::RequestsPerSecond(1e-3)));
        let sizes = BufferSizes::udp_rr(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut buffers = Buffers::new(&sizes, false);
        let mut context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: false,
        };
        let (socket, server) = narrow_pair();
        let mut client = UdpRrClient::new(&shared, Arc::new(socket), 0);
        server.send(&[0; 16]).unwrap();
        let Progress::Wait(interest, Some(_)) = client.poll(&mut context) else {
            panic!("it waits for the time of its first request");
        };
        assert!(interest.read);
        assert_eq!(shared.flows.strays(), 1, "epoll would report it again");
    }

    #[test]
    fn a_request_that_the_socket_has_no_room_for_is_sent_later_and_is_not_lost() {
        const ALL: u64 = 100;
        // In the open loop all are due at once.
        for rate in [None, Some(Rate::RequestsPerSecond(1e9))] {
            let options = Options::new(Workload::UdpRr, [7; 16]).with(|load| {
                load.depth = 64;
                load.rate = rate;
                load.limit = Some(Limit::Transactions(ALL));
                load.reply_timeout = Duration::from_mins(1);
            });
            let sizes = BufferSizes::udp_rr(&options);
            let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
            let mut buffers = Buffers::new(&sizes, false);
            let mut context = Context {
                shared: &shared,
                thread: &shared.threads[0],
                buffers: &mut buffers,
                blocking: false,
            };
            let (socket, server) = narrow_pair();
            let mut client = UdpRrClient::new(&shared, Arc::new(socket), 0);
            let flow = &shared.flows.all()[0];
            let (mut waited, mut over, mut arrived) = (false, false, 0);
            for _ in 0..10 * ALL {
                match client.poll(&mut context) {
                    Progress::Wait(interest, _) => waited |= interest.write,
                    Progress::Again => {}
                    Progress::Over(outcome) => {
                        assert!(matches!(outcome, Outcome::Orderly), "{outcome:?}");
                        over = true;
                        break;
                    }
                }
                assert_eq!(flow.tx.messages.get(), client.number);
                let mut request = [0; 2048];
                while let Ok(length) = (&server).read(&mut request) {
                    arrived += 1;
                    server.send(&request[..length]).unwrap();
                }
            }
            let counts = flow.counts();
            assert!(waited, "the buffer was never full");
            assert_eq!((counts.sent, counts.received, arrived), (ALL, ALL, ALL));
            assert_eq!(counts.timeouts, 0);
            assert_eq!(counts.sent_bytes, ALL * u64::from(options.load.request));
            assert!(over, "it waits for what was never sent");
        }
    }

    proptest! {
        #[test]
        fn every_request_is_answered_or_given_up_exactly_once(
            delays in prop::collection::vec(0u64..2 * TIMEOUT, 1..60), depth in 1usize..16,
        ) {
            let mut outstanding = Outstanding::new(depth, TIMEOUT);
            let (mut answered, mut given_up, mut next) = (0, 0, 0);
            let mut under_way: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            while next < delays.len() || outstanding.len() > 0 {
                given_up += outstanding.expire(now);
                while next < delays.len() && outstanding.len() < depth && outstanding.has_room(0) {
                    outstanding.sent(next as u64, now);
                    under_way.push((next as u64, now + delays[next]));
                    next += 1;
                }
                for (number, at) in &under_way {
                    if *at == now {
                        let in_time = delays[*number as usize] < TIMEOUT;
                        prop_assert_eq!(outstanding.answered(*number, now).is_some(), in_time);
                        answered += u64::from(in_time);
                    }
                }
                now += 1;
            }
            prop_assert_eq!(answered + given_up, delays.len() as u64);
        }
    }
}
