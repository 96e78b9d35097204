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
use crate::migration::post_copy_sender::PostCopySender;
use crate::migration::record::{Kind, REPLY_BYTES, Reply, decode_reply};
use crate::migration::source::{Source, Stage};
use crate::shared::Shared;
use crate::timeouts::PEER_TIMEOUT;

/// Steps of one connection before the others of its thread are polled.
const BUDGET: u32 = 4;

pub(crate) struct MigrationSource {
    socket: Arc<Socket>,
    flow: u32,
    machine: usize,
    channel: u32,
    state: SourceState,
    /// The stage of the machine that this connection has acted on.
    stage: Stage,
    /// Ranges of pages to send.
    list: Vec<PageRange>,
    /// Index of the next range in `list`.
    at: usize,
    record: MoveRecord,
    /// With post-copy, once the machine resumes at its destination: what is left to announce and to send.
    post_copy_sender: Option<PostCopySender>,
    /// An incomplete reply, and how many of its bytes have arrived.
    reply: ([u8; REPLY_BYTES], usize),
    /// Pages sent in this round: with their content, and as zero.
    sent: [u64; 2],
    /// The load was stopped before the machine had moved.
    stopped: bool,
    /// When the peer last took or acknowledged data, nanoseconds by [`Shared::now`].
    last_activity: u64,
    /// Bytes that the peer had acknowledged when it was last checked (`tcpi_bytes_acked`).
    acked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceState {
    /// Waits for the machine's next stage.
    Waiting,
    /// Sends the pages of its list.
    Sending,
    /// With post-copy: sends the pages that are missing at the destination, where the machine runs.
    Pushing,
    /// Was the last connection to finish the round, and decides what comes next.
    Advancing,
    /// Sends the record that ends the move or gives it up.
    Ending,
    /// Waits until the destination confirms that record.
    Confirming,
}

/// `TCP_NOTSENT_LOWAT` of a connection during post-copy, bytes: a page that the machine waits for is queued behind no
/// more unsent data than this.
const UNSENT: u32 = 64 << 10;

impl MigrationSource {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let channels = shared.options.load.connections() / shared.options.load.streams;
        Self {
            socket,
            flow,
            machine: (flow / channels) as usize,
            channel: flow % channels,
            state: SourceState::Waiting,
            stage: Stage::Waiting,
            list: Vec::new(),
            at: 0,
            record: MoveRecord::sent(),
            post_copy_sender: None,
            reply: ([0; REPLY_BYTES], 0),
            sent: [0; 2],
            stopped: false,
            last_activity: 0,
            acked: 0,
        }
    }

    /// Fills the record with the next pages of the list; `false` where none are left.
    fn next_record(&mut self, machine: &Source) -> bool {
        let counts = self.record.fill(machine, &mut self.list, &mut self.at);
        for (sent, more) in self.sent.iter_mut().zip(counts) {
            *sent += more;
        }
        counts != [0; 2]
    }

    /// Fills the next record of post-copy; `false` where nothing is left to send.
    fn next_pushed(&mut self, machine: &Source) -> bool {
        let Some(sender) = &mut self.post_copy_sender else {
            return false;
        };
        match sender.next(&mut self.list) {
            Kind::Missing => self.record.set_ranges(Kind::Missing, &self.list),
            Kind::Switch => self.record.switch(machine.writes()),
            Kind::Pages => {
                self.at = 0;
                return self.next_record(machine);
            }
            _ => return false,
        }
        true
    }

    /// The next reply of the destination; `None`: no complete one has arrived.
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

    /// Handles replies of the destination. Returns for how many pages the machine waited, once the end of the move is
    /// confirmed.
    fn confirmation(&mut self, machine: &Source) -> io::Result<Option<u64>> {
        while let Some(reply) = self.hear()? {
            match (reply, &mut self.post_copy_sender) {
                (Reply::Done(fetched), _) if self.state == SourceState::Confirming => {
                    return Ok(Some(fetched));
                }
                (Reply::Runs, Some(_)) => machine.handover.set_runs(Instant::now()),
                (Reply::Fetch(page), Some(sender)) => sender.ask(page),
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
                    self.last_activity = context.shared.now();
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

    /// Takes the next step. `None`: there is more to do.
    fn step(&mut self, context: &Context<'_>, machine: &Source) -> io::Result<Option<Progress>> {
        let shared = context.shared;
        match self.state {
            SourceState::Waiting => return self.wait(shared, machine),
            SourceState::Sending => {
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
                    self.state = SourceState::Advancing;
                } else {
                    self.state = SourceState::Waiting;
                }
            }
            SourceState::Pushing => {
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
            SourceState::Advancing => {
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
                self.state = SourceState::Waiting;
                shared.flows.notify();
            }
            SourceState::Ending => {
                if !self.send(context, machine)? {
                    return self.blocked(shared, Interest::WRITE);
                }
                self.state = SourceState::Confirming;
            }
            SourceState::Confirming => {
                let Some(fetched) = self.confirmation(machine)? else {
                    return self.blocked(shared, Interest::READ);
                };
                machine.handover.add_fetched(fetched);
                if !self.stopped && machine.confirmed(&shared.sources, Instant::now()) {
                    // Other machines may wait until this one has moved.
                    shared.flows.notify();
                }
                if self.stopped || !machine.migration.find_limit {
                    return Ok(Some(Progress::Over(Outcome::Orderly)));
                }
                self.state = SourceState::Waiting;
            }
        }
        Ok(None)
    }

    /// Adds the pages of a finished round to the flow's messages. Returns them: with their content, and as zero.
    fn count(&mut self, context: &Context<'_>) -> [u64; 2] {
        let [pages, zero_pages] = std::mem::take(&mut self.sent);
        let tx = &context.flow(self.flow).tx;
        tx.messages.add(pages + zero_pages);
        [pages, zero_pages]
    }

    fn finish(&mut self, kind: Kind) {
        self.record.set_empty(kind);
        self.state = SourceState::Ending;
    }

    /// Gives the move up: the machine stays at its source.
    fn stop(&mut self) {
        self.stopped = true;
        self.finish(Kind::GiveUp);
    }

    fn wait(&mut self, shared: &Shared, machine: &Source) -> io::Result<Option<Progress>> {
        let stage = machine.stage();
        if stage != self.stage {
            self.stage = stage;
            self.last_activity = shared.now();
            self.at = 0;
            self.list.clear();
            match stage {
                Stage::Waiting => {}
                Stage::Over => return Ok(Some(Progress::Over(Outcome::Orderly))),
                Stage::Copying(_) | Stage::Last(_) => {
                    machine.take(self.channel, &mut self.list);
                    self.state = SourceState::Sending;
                }
                Stage::PostCopy => {
                    machine.take(self.channel, &mut self.list);
                    let pages = machine.migration.pages() as u32;
                    self.post_copy_sender = Some(PostCopySender::new(&self.list, pages));
                    self.socket.set_tcp_notsent_lowat(UNSENT)?;
                    self.state = SourceState::Pushing;
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

    /// Waits for the peer. `TimedOut` where it neither took nor acknowledged data for [`PEER_TIMEOUT`].
    fn blocked(&mut self, shared: &Shared, interest: Interest) -> io::Result<Option<Progress>> {
        let now = shared.now();
        let patience = PEER_TIMEOUT.as_nanos() as u64;
        if now.saturating_sub(self.last_activity) > patience {
            let acked = tcp_info(&*self.socket)?.bytes_acked;
            if acked == self.acked {
                return Err(io::ErrorKind::TimedOut.into());
            }
            (self.acked, self.last_activity) = (acked, now);
        }
        let until = self.last_activity + patience + 1;
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
