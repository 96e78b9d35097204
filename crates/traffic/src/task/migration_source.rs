//! A migration's source: one connection of a machine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{receive, tcp_info};

use super::move_record::MoveRecord;
use super::{Context, IoFailure, Progress, Task};
use crate::flow::Outcome;
use crate::migration::pages::PageRange;
use crate::migration::push::Push;
use crate::migration::record::{Kind, REPLY_BYTES, Reply, decode_reply};
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
    record: MoveRecord,
    /// With post-copy, what is left once the machine goes on at its destination.
    push: Option<Push>,
    /// What has come of a reply.
    reply: ([u8; REPLY_BYTES], usize),
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
    /// The machine goes on at its destination: it sends what is missing there.
    Pushing,
    /// It is the last of a round, and finds out what comes next.
    Advancing,
    /// It sends that this was all.
    Ending,
    /// It waits until that is confirmed.
    Confirming,
}

/// Unsent bytes of a connection once the machine goes on: what it waits for is behind no more than these.
const UNSENT: u32 = 64 << 10;

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
            record: MoveRecord::sent(),
            push: None,
            reply: ([0; REPLY_BYTES], 0),
            sent: [0; 2],
            stopped: false,
            heard: 0,
            acked: 0,
        }
    }

    /// Makes a record of the next pages of the list; `false` where there are none.
    fn next_record(&mut self, machine: &Source) -> bool {
        let counts = self.record.fill(machine, &mut self.list, &mut self.at);
        for (sent, more) in self.sent.iter_mut().zip(counts) {
            *sent += more;
        }
        counts != [0; 2]
    }

    /// Makes the next record once the machine goes on; `false` where there is nothing more.
    fn next_pushed(&mut self, machine: &Source) -> bool {
        let Some(push) = &mut self.push else {
            return false;
        };
        match push.next(&mut self.list) {
            Kind::Missing => self.record.tell(Kind::Missing, &self.list),
            Kind::Switch => self.record.switch(machine.writes()),
            Kind::Pages => {
                self.at = 0;
                return self.next_record(machine);
            }
            _ => return false,
        }
        true
    }

    /// What the destination says; `None`: nothing complete.
    fn hear(&mut self) -> io::Result<Option<Reply>> {
        let (reply, filled) = &mut self.reply;
        while *filled < REPLY_BYTES {
            match receive(&*self.socket, &mut reply[*filled..]) {
                Ok(0) => {
                    let words = "the destination ended the connection within a move";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words));
                }
                Ok(read) => *filled += read,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(None),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        *filled = 0;
        decode_reply(reply).map(Some)
    }

    /// Takes what the destination says; how many pages the machine waited for, once everything is confirmed.
    fn confirmation(&mut self, machine: &Source) -> io::Result<Option<u64>> {
        while let Some(reply) = self.hear()? {
            match (reply, &mut self.push) {
                (Reply::Done(fetched), _) if self.doing == Doing::Confirming => {
                    return Ok(Some(fetched));
                }
                (Reply::Runs, Some(_)) => machine.handover.set_runs(Instant::now()),
                (Reply::Fetch(page), Some(push)) => push.ask(page),
                _ => {
                    let words = "the destination confirmed what it was not asked for";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, words));
                }
            }
        }
        Ok(None)
    }

    /// Sends what is left of the record; `false` where the socket takes no more.
    fn send(&mut self, context: &Context<'_>, machine: &Source) -> io::Result<bool> {
        while !self.record.is_sent() {
            match machine.memory.send(&*self.socket, self.record.parts()) {
                Ok(sent) => {
                    let moved = self.record.advance(sent);
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
                let [pages, zero_pages] = self.count(context);
                if let Stage::Last(_) = self.stage {
                    machine.count_pages(pages, zero_pages);
                    self.finish(Kind::End);
                } else if machine.finished(pages, zero_pages) {
                    self.doing = Doing::Advancing;
                } else {
                    self.doing = Doing::Waiting;
                }
            }
            Doing::Pushing => {
                self.confirmation(machine)?;
                if !self.send(context, machine)? {
                    let both = Interest {
                        read: true,
                        write: true,
                    };
                    return self.blocked(shared, both);
                }
                if shared.flows.stopping() {
                    self.stop();
                    return Ok(None);
                }
                if self.next_pushed(machine) {
                    return Ok(None);
                }
                let [pages, zero_pages] = self.count(context);
                machine.count_pages(pages, zero_pages);
                self.finish(Kind::End);
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
                self.doing = Doing::Confirming;
            }
            Doing::Confirming => {
                let Some(fetched) = self.confirmation(machine)? else {
                    return self.blocked(shared, Interest::READ);
                };
                machine.handover.add_fetched(fetched);
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
        Ok(None)
    }

    /// Counts what was sent of the round that is over.
    fn count(&mut self, context: &Context<'_>) -> [u64; 2] {
        let [pages, zero_pages] = std::mem::take(&mut self.sent);
        let tx = &context.flow(self.flow).tx;
        tx.messages.add(pages + zero_pages);
        [pages, zero_pages]
    }

    fn finish(&mut self, kind: Kind) {
        self.record.say(kind);
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
                Stage::Handing => {
                    machine.take(self.channel, &mut self.list);
                    let pages = machine.migration.pages() as u32;
                    self.push = Some(Push::new(&self.list, pages));
                    self.socket.set_tcp_notsent_lowat(UNSENT)?;
                    self.doing = Doing::Pushing;
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
