//! The client's side of request/response in datagrams, which survives what is lost.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::epoll::Interest;

use super::request::Schedule;
use super::{Desk, Machine, Next, PEER_SILENCE, Trouble};
use crate::datagram::Datagram;
use crate::flow::End;
use crate::handshake::is_control;
use crate::load::Load;
use crate::sequence::{Arrival, Ledger, Stamp};

/// Exchanges of one flow before the others of its thread have their turn.
const TURN: u32 = 8;
/// Requests of a flow that may be lost one after the other before its peer counts as vanished.
const LOST_IN_A_ROW: u64 = 10;

/// Requests that wait for their response, by number. No clock, no socket.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// From the oldest: number, when it was sent, when it is given up, whether it was answered.
    waiting: VecDeque<Entry>,
    answered: usize,
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
            // Answered ones may stay behind an older one that is not.
            waiting: VecDeque::with_capacity(2 * depth),
            answered: 0,
            timeout,
        }
    }

    /// Requests that are neither answered nor given up.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() - self.answered
    }

    /// Whether another may be sent without growing beyond what there is room for.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < self.waiting.capacity()
    }

    /// A request is sent at `now`. Numbers ascend.
    pub(crate) fn sent(&mut self, number: u64, now: u64) {
        self.waiting.push_back(Entry {
            number,
            sent: now,
            expires: now + self.timeout,
            answered: false,
        });
    }

    /// A response came: when its request was sent, or `None` where none waits for it (any more).
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

    /// Gives up what waited too long; how many that were.
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

    /// When the next one is given up.
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

pub(crate) struct UdpRequester {
    socket: Arc<Socket>,
    flow: u32,
    schedule: Schedule,
    outstanding: Outstanding,
    /// Of the responses: one that comes twice is no late one.
    ledger: Ledger,
    number: u64,
    /// When the last response came, or the first request was sent.
    heard: u64,
    /// Without any response for so long the peer counts as vanished, and not its datagrams as lost.
    patience: u64,
    finishing: bool,
}

impl UdpRequester {
    pub(crate) fn new(load: &Load, socket: Arc<Socket>, flow: u32) -> Self {
        let timeout = load.options.reply_timeout.as_nanos() as u64;
        Self {
            socket,
            flow,
            schedule: Schedule::new(&load.options, flow),
            outstanding: Outstanding::new(load.options.depth as usize, timeout),
            ledger: Ledger::new(),
            number: 0,
            heard: 0,
            patience: (timeout * LOST_IN_A_ROW).max(PEER_SILENCE.as_nanos() as u64),
            finishing: false,
        }
    }

    /// Reads what is there; `false` where that is all for now.
    fn receive(&mut self, desk: &mut Desk<'_>) -> io::Result<bool> {
        let received = match desk
            .room
            .incoming
            .receive(&*self.socket, desk.blocking, false)
        {
            Ok(received) => received,
            Err(error) => match Trouble::from(error) {
                Trouble::Interrupted => return Ok(true),
                Trouble::Blocked => return Ok(false),
                Trouble::Broken(error) => return Err(error),
            },
        };
        let now = desk.load.now();
        self.heard = now;
        for index in 0..received {
            let message = desk.room.incoming.get(index);
            let length = message.length as u64;
            let ours = Datagram::get(message.bytes).filter(|datagram| {
                datagram.tag == desk.load.tag && u32::from(datagram.flow) == self.flow
            });
            let Some(datagram) = ours else {
                // The opening was answered more than once where it was asked more than once.
                if !is_control(message.bytes) {
                    desk.load.flows.count_stray();
                }
                continue;
            };
            let incoming = &desk.flow(self.flow).incoming;
            match self.ledger.enter(datagram.number, datagram.sent, now) {
                Arrival::InOrder | Arrival::Reordered => {}
                Arrival::Duplicate => {
                    incoming.duplicated.publish(self.ledger.duplicated());
                    continue;
                }
                Arrival::TooOld => {
                    incoming.too_old.publish(self.ledger.too_old());
                    continue;
                }
            }
            let Some(sent) = self.outstanding.answered(datagram.number, now) else {
                incoming.late.add(1);
                continue;
            };
            incoming.messages.add(1);
            incoming.bytes.add(length);
            desk.record(sent, now);
            self.schedule.done(now);
        }
        Ok(true)
    }

    fn expire(&mut self, desk: &Desk<'_>, now: u64) {
        let given_up = self.outstanding.expire(now);
        if given_up > 0 {
            desk.flow(self.flow).incoming.timeouts.add(given_up);
            for _ in 0..given_up {
                self.schedule.done(now);
            }
        }
    }

    /// Sends what may be asked now; `false` where the socket takes no more.
    fn ask(&mut self, desk: &mut Desk<'_>, now: u64) -> io::Result<bool> {
        let load = desk.load;
        self.finishing |= load.flows.stopping();
        self.schedule.begin(load.began());
        let mut batched = 0;
        while !self.finishing && batched < desk.room.out.capacity() && self.outstanding.has_room() {
            let Some(due) = self.schedule.next(now, self.outstanding.len()) else {
                break;
            };
            if load.take(1) == 0 {
                self.finishing = true;
                break;
            }
            if self.heard == 0 {
                self.heard = now;
            }
            let datagram = Datagram {
                counted: false,
                tag: load.tag,
                flow: self.flow as u16,
                number: self.number,
                sent: Stamp::of(now),
            };
            datagram.put(desk.room.out.message(batched));
            self.outstanding.sent(self.number, now);
            desk.record_lateness(due, now);
            self.number += 1;
            batched += 1;
        }
        let mut sent = 0;
        while sent < batched {
            match desk
                .room
                .out
                .send(&*self.socket, sent, batched, desk.blocking)
            {
                Ok(some) => sent += some,
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    // What is not sent now never is: to the client it is lost like any other.
                    Trouble::Blocked => break,
                    Trouble::Broken(error) => return Err(error),
                },
            }
        }
        let out = &desk.flow(self.flow).out;
        out.messages.add(sent as u64);
        out.bytes.add(sent as u64 * u64::from(load.options.request));
        Ok(sent == batched)
    }
}

impl Machine for UdpRequester {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        for _ in 0..TURN {
            if self.outstanding.len() > 0
                && let Err(error) = self.receive(desk)
            {
                return Next::failed(explain(error));
            }
            let now = desk.load.now();
            self.expire(desk, now);
            if let Err(error) = self.ask(desk, now) {
                return Next::failed(explain(error));
            }
            if self.outstanding.len() == 0 {
                if self.finishing {
                    return Next::Over(End::Orderly);
                }
                let interest = Interest {
                    read: !desk.blocking,
                    write: false,
                };
                return Next::Wait(interest, self.schedule.due(0));
            }
            if now.saturating_sub(self.heard) > self.patience {
                return Next::failed(io::ErrorKind::TimedOut.into());
            }
            if desk.load.flows.is_cut() {
                return Next::Over(End::Released);
            }
            if !desk.blocking {
                let due = self.schedule.due(self.outstanding.len());
                let until = [self.outstanding.next_expiry(), due]
                    .into_iter()
                    .flatten()
                    .min();
                return Next::Wait(Interest::READ, until);
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

fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::ConnectionRefused {
        let words = "nobody listens there any more (ICMP port unreachable)";
        return io::Error::new(error.kind(), words);
    }
    error
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                while next < delays.len() && outstanding.len() < depth && outstanding.has_room() {
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
