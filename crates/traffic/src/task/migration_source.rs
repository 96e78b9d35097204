//! A migration's source: one connection of a machine.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::shared_memory::Part;
use wirecost_sys::socket::{receive, tcp_info};

use super::{Context, IoFailure, Progress, Task};
use crate::flow::Outcome;
use crate::migration::pages::{MAX_PAGES, PageRange, bytes_of, is_zero};
use crate::migration::record::{
    HEAD_BYTES, Kind, MAX_RANGES, REPLY_BYTES, Reply, decode_reply, encode,
};
use crate::migration::source::{Source, Stage};
use crate::shared::Shared;
use crate::timeouts::PEER_TIMEOUT;

/// Records before other connections of the thread are polled.
const BUDGET: u32 = 4;

pub(crate) struct MigrationSource {
    socket: Arc<Socket>,
    flow: u32,
    machine: usize,
    channel: u32,
    doing: Doing,
    /// What it has seen of the machine.
    stage: Stage,
    list: Vec<PageRange>,
    /// Where in the list it is.
    at: usize,
    record: Record,
    /// Pages sent in this round, and those that were zero.
    sent: [u64; 2],
    /// The load was stopped before the machine had moved.
    stopped: bool,
    /// When the peer last took or acknowledged something, and how much it had acknowledged.
    heard: u64,
    acked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It waits for the machine.
    Waiting,
    Sending,
    /// It is the last of a round, and finds out what comes next.
    Advancing,
    /// It sends that this was all.
    Ending,
    /// It waits until that is confirmed; so many bytes of the reply have come.
    Confirming([u8; REPLY_BYTES], usize),
}

/// What is being sent.
struct Record {
    head: [u8; HEAD_BYTES],
    /// Of the memory, after the head.
    data: Vec<Range<usize>>,
    /// Its ranges, while it is made.
    ranges: Vec<(PageRange, bool)>,
    sent: usize,
    /// Of head and data.
    bytes: usize,
}

impl Record {
    fn of(&mut self, kind: Kind) {
        encode(kind, &self.ranges, &mut self.head);
        self.data.clear();
        let full = self.ranges.iter().filter(|(_, zero)| !zero);
        self.data.extend(full.map(|(range, _)| bytes_of(*range)));
        self.sent = 0;
        self.bytes = HEAD_BYTES + self.data.iter().map(Range::len).sum::<usize>();
    }

    fn is_sent(&self) -> bool {
        self.sent == self.bytes
    }

    /// What is left of it.
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let head = (self.sent < HEAD_BYTES).then(|| Part::Bytes(&self.head[self.sent..]));
        let mut skip = self.sent.saturating_sub(HEAD_BYTES);
        let data = self.data.iter().filter_map(move |range| {
            let skipped = skip.min(range.len());
            skip -= skipped;
            let left = range.start + skipped..range.end;
            (!left.is_empty()).then_some(Part::Memory(left))
        });
        head.into_iter().chain(data)
    }
}

impl MigrationSource {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let channels = shared.options.load.connections() / shared.options.load.streams;
        Self {
            socket,
            flow,
            machine: (flow / channels) as usize,
            channel: flow % channels,
            doing: Doing::Waiting,
            stage: Stage::Waiting,
            list: Vec::new(),
            at: 0,
            record: Record {
                head: [0; HEAD_BYTES],
                data: Vec::with_capacity(MAX_RANGES),
                ranges: Vec::with_capacity(MAX_RANGES),
                sent: HEAD_BYTES,
                bytes: HEAD_BYTES,
            },
            sent: [0; 2],
            stopped: false,
            heard: 0,
            acked: 0,
        }
    }

    /// Makes a record of the next pages of the list; `false` where there are none.
    fn next_record(&mut self, machine: &Source) -> bool {
        self.record.ranges.clear();
        let mut pages = 0;
        while let Some(range) = self.list.get_mut(self.at) {
            let first = range.first;
            let zero = is_zero(&machine.memory, first);
            if pages == MAX_PAGES {
                break;
            }
            let more = match self.record.ranges.last_mut() {
                Some((last, kind)) if *kind == zero && last.first + last.count == first => {
                    last.count += 1;
                    true
                }
                _ => false,
            };
            if !more {
                if self.record.ranges.len() == MAX_RANGES {
                    break;
                }
                self.record
                    .ranges
                    .push((PageRange { first, count: 1 }, zero));
            }
            pages += 1;
            self.sent[usize::from(zero)] += 1;
            range.first += 1;
            range.count -= 1;
            if range.count == 0 {
                self.at += 1;
            }
        }
        if pages > 0 {
            self.record.of(Kind::Pages);
        }
        pages > 0
    }

    /// Sends what is left of the record; `false` where the socket takes no more.
    fn send(&mut self, context: &Context<'_>, machine: &Source) -> io::Result<bool> {
        while !self.record.is_sent() {
            match machine.memory.send(&*self.socket, self.record.parts()) {
                Ok(sent) => {
                    let data = |at: usize| at.saturating_sub(HEAD_BYTES) as u64;
                    let moved = data(self.record.sent + sent) - data(self.record.sent);
                    self.record.sent += sent;
                    machine.count_wire(sent);
                    let tx = &context.flow(self.flow).tx;
                    tx.bytes.add(moved);
                    self.heard = context.shared.now();
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(false),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        Ok(true)
    }

    /// Does the next thing. `None`: there is more to do.
    fn step(&mut self, context: &Context<'_>, machine: &Source) -> io::Result<Option<Progress>> {
        let shared = context.shared;
        match self.doing {
            Doing::Waiting => return self.wait(shared, machine),
            Doing::Sending => {
                if !self.send(context, machine)? {
                    return self.blocked(shared, Interest::WRITE);
                }
                if shared.flows.stopping() {
                    self.stop();
                    return Ok(None);
                }
                if self.next_record(machine) {
                    return Ok(None);
                }
                let [pages, zero_pages] = std::mem::take(&mut self.sent);
                let tx = &context.flow(self.flow).tx;
                tx.messages.add(pages + zero_pages);
                if let Stage::Last(_) = self.stage {
                    machine.count_pages(pages, zero_pages);
                    self.finish(Kind::End);
                } else if machine.finished(pages, zero_pages) {
                    self.doing = Doing::Advancing;
                } else {
                    self.doing = Doing::Waiting;
                }
            }
            Doing::Advancing => {
                if shared.flows.stopping() {
                    self.stop();
                    return Ok(None);
                }
                let now = Instant::now();
                if let Some(until) = machine.advance(&shared.flows, now)? {
                    let wait = until.saturating_duration_since(now).as_nanos() as u64;
                    let until = shared.now() + wait;
                    return Ok(Some(Progress::Wait(Interest::NONE, Some(until))));
                }
                self.doing = Doing::Waiting;
                shared.flows.notify();
            }
            Doing::Ending => {
                if !self.send(context, machine)? {
                    return self.blocked(shared, Interest::WRITE);
                }
                self.doing = Doing::Confirming([0; REPLY_BYTES], 0);
            }
            Doing::Confirming(mut reply, mut filled) => {
                match receive(&*self.socket, &mut reply[filled..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(read) => filled += read,
                    Err(error) => match IoFailure::from(error) {
                        IoFailure::Interrupted => {}
                        IoFailure::Blocked => return self.blocked(shared, Interest::READ),
                        IoFailure::Broken(error) => return Err(error),
                    },
                }
                self.doing = Doing::Confirming(reply, filled);
                if filled == REPLY_BYTES {
                    if decode_reply(&reply)? != Reply::Done {
                        let words = "the destination confirmed what it was not asked for";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
                    }
                    if !self.stopped && machine.confirmed(&shared.sources, Instant::now()) {
                        // Others may wait for their turn.
                        shared.flows.notify();
                    }
                    if self.stopped || !machine.migration.find_limit {
                        return Ok(Some(Progress::Over(Outcome::Orderly)));
                    }
                    self.doing = Doing::Waiting;
                }
            }
        }
        Ok(None)
    }

    fn finish(&mut self, kind: Kind) {
        self.record.ranges.clear();
        self.record.of(kind);
        self.doing = Doing::Ending;
    }

    /// Leaves the machine where it is.
    fn stop(&mut self) {
        self.stopped = true;
        self.finish(Kind::GiveUp);
    }

    fn wait(&mut self, shared: &Shared, machine: &Source) -> io::Result<Option<Progress>> {
        let stage = machine.stage();
        if stage != self.stage {
            self.stage = stage;
            self.heard = shared.now();
            self.at = 0;
            self.list.clear();
            match stage {
                Stage::Waiting => {}
                Stage::Over => return Ok(Some(Progress::Over(Outcome::Orderly))),
                Stage::Copying(_) | Stage::Last(_) => {
                    machine.take(self.channel, &mut self.list);
                    self.doing = Doing::Sending;
                }
                Stage::GivenUp => self.finish(Kind::GiveUp),
            }
            return Ok(None);
        }
        if shared.flows.stopping() {
            self.stop();
            return Ok(None);
        }
        if stage == Stage::Waiting
            && self.channel == 0
            && machine.order(&shared.sources, &shared.flows, Instant::now())?
        {
            shared.flows.notify();
            return Ok(None);
        }
        Ok(Some(Progress::PARK))
    }

    /// The peer has to do something. It has so long as it acknowledges.
    fn blocked(&mut self, shared: &Shared, interest: Interest) -> io::Result<Option<Progress>> {
        let now = shared.now();
        let patience = PEER_TIMEOUT.as_nanos() as u64;
        if now.saturating_sub(self.heard) > patience {
            let acked = tcp_info(&*self.socket)?.bytes_acked;
            if acked == self.acked {
                return Err(io::ErrorKind::TimedOut.into());
            }
            (self.acked, self.heard) = (acked, now);
        }
        let until = self.heard + patience + 1;
        Ok(Some(Progress::Wait(interest, Some(until))))
    }
}

impl Task for MigrationSource {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let Some(machine) = context.shared.sources.machines.get(self.machine) else {
            return Progress::failed(io::ErrorKind::NotFound.into());
        };
        for _ in 0..BUDGET {
            match self.step(context, machine) {
                Ok(None) => {}
                Ok(Some(progress)) => return progress,
                Err(error) => return Progress::failed(error),
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
