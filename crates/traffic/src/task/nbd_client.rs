//! Storage client: reads and writes of blocks, several outstanding on a connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_nbd::arrived::ArrivedData;
use wirecost_nbd::client::Negotiated;
use wirecost_nbd::protocol::command;
use wirecost_nbd::reply::{Event, Outstanding, ReplyReader};
use wirecost_nbd::request::{REQUEST_BYTES, Request};
use wirecost_sys::socket::{receive, send_vectored};

use super::request_loop::{self, Idle, RequestClient};
use super::request_schedule::RequestSchedule;
use super::{Context, IoFailure, Progress, Task};
use crate::flow::Outcome;
use crate::shared::Shared;
use crate::storage::access::Access;
use crate::storage::content::{STAMP_BYTES, Writer, rest, seed, stamp};
use crate::storage::protocol;
use crate::storage::read_back::ReadBack;
use crate::timeouts::PEER_TIMEOUT;

/// Upper bound on the requests that one call sends, each with a header and data.
const SENT_AT_ONCE: usize = 32;

pub(crate) struct NbdClient {
    socket: Arc<Socket>,
    flow: u32,
    schedule: RequestSchedule,
    access: Access,
    /// Bytes of an I/O.
    size: u32,
    seed: u64,
    reader: ReplyReader,
    slots: Slots,
    /// Slots of requests that are not completely written, in order.
    unsent: VecDeque<u32>,
    /// Bytes of the first request in `unsent` that were written.
    begun: usize,
    /// When the server last sent something, or a request was queued with no other outstanding; nanoseconds by
    /// [`Shared::now`].
    last_activity: u64,
    /// No more requests are queued.
    finishing: bool,
    read_back: ReadBack,
    /// Number of writes after which a flush follows; 0: never.
    flush_every: u32,
    /// Writes queued since the last flush was queued.
    unflushed: u32,
}

/// Outstanding requests.
struct Slots {
    all: Box<[Slot]>,
    free: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Slot {
    request: Request,
    /// What has arrived of a read's data.
    arrived: ArrivedData,
    outstanding: bool,
    /// When the request was due, nanoseconds by [`Shared::now`].
    due: u64,
    /// When the first byte of the request was written; before that, when it was queued.
    sent: u64,
    /// The encoded request, and behind it the stamp of a write.
    head: [u8; REQUEST_BYTES + STAMP_BYTES],
}

impl Slots {
    fn outstanding(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

impl Outstanding for Slots {
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut ArrivedData)> {
        // The lower 32 bits are the slot; the upper ones differ whenever the slot is used again.
        let slot = self.all.get_mut(cookie as u32 as usize)?;
        (slot.outstanding && slot.request.cookie == cookie)
            .then_some((slot.request, &mut slot.arrived))
    }
}

impl Slot {
    /// Bytes of the head that are sent, and bytes of data that follow.
    fn sizes(&self) -> (usize, usize) {
        if self.request.command == command::WRITE {
            (self.head.len(), self.request.length as usize - STAMP_BYTES)
        } else {
            (REQUEST_BYTES, 0)
        }
    }
}

impl NbdClient {
    /// A client on a connection whose NBD handshake is complete.
    pub(crate) fn new(
        shared: &Shared,
        socket: Arc<Socket>,
        flow: u32,
        negotiated: Negotiated,
    ) -> Self {
        let load = &shared.options.load;
        let storage = load.storage.unwrap_or(wirecost_model::load::Storage::USUAL);
        let (size, seed) = (load.request, seed(&shared.options));
        let slot = Slot {
            request: Request {
                flags: 0,
                command: command::READ,
                cookie: 0,
                offset: 0,
                length: size,
            },
            arrived: ArrivedData::default(),
            outstanding: false,
            due: 0,
            sent: 0,
            head: [0; REQUEST_BYTES + STAMP_BYTES],
        };
        Self {
            socket,
            flow,
            schedule: RequestSchedule::new(shared, flow),
            access: Access::new(
                &storage,
                size,
                negotiated.export.size,
                flow,
                load.streams,
                seed,
            ),
            size,
            seed,
            reader: ReplyReader::new(negotiated.structured),
            slots: Slots {
                all: vec![slot; load.depth as usize].into(),
                free: (0..load.depth).rev().collect(),
            },
            unsent: VecDeque::with_capacity(load.depth as usize),
            begun: 0,
            last_activity: 0,
            finishing: false,
            read_back: ReadBack::new(&shared.options, flow, shared.options.export.is_none()),
            flush_every: storage.flush_every,
            unflushed: 0,
        }
    }

    /// Notes that a call that began at `now` wrote `sent` bytes of requests.
    fn sent(&mut self, context: &Context<'_>, mut sent: usize, now: u64) {
        let flow = context.flow(self.flow);
        while sent > 0
            && let Some(index) = self.unsent.front()
        {
            let slot = &mut self.slots.all[*index as usize];
            let (head, data) = slot.sizes();
            if self.begun == 0 {
                slot.sent = now;
                if slot.request.command != command::FLUSH {
                    context.record_lateness(slot.due, now);
                }
            }
            let taken = sent.min(head + data - self.begun);
            let payload = |at: usize| at.saturating_sub(REQUEST_BYTES) as u64;
            let moved = payload(self.begun + taken) - payload(self.begun);
            flow.tx.bytes.add(moved);
            self.begun += taken;
            sent -= taken;
            if self.begun == head + data {
                self.begun = 0;
                if slot.request.command != command::FLUSH {
                    flow.tx.messages.add(1);
                }
                self.unsent.pop_front();
            }
        }
    }

    /// Queues a request; `false` where as many are outstanding as may be. The times are when it was due, and now.
    fn ask(&mut self, command: u16, offset: u64, length: u32, [due, now]: [u64; 2]) -> bool {
        if self.slots.outstanding() == 0 {
            self.last_activity = now;
        }
        let Some(index) = self.slots.free.pop() else {
            return false;
        };
        let slot = &mut self.slots.all[index as usize];
        let used_before = (slot.request.cookie >> 32) + 1;
        slot.request = Request {
            flags: 0,
            command,
            cookie: used_before << 32 | u64::from(index),
            offset,
            length,
        };
        slot.head[..REQUEST_BYTES].copy_from_slice(&slot.request.encode());
        if command == command::WRITE {
            let stamp = stamp(self.seed, Writer::Client, offset);
            slot.head[REQUEST_BYTES..].copy_from_slice(&stamp);
        }
        slot.arrived.clear();
        (slot.outstanding, slot.due, slot.sent) = (true, due, now);
        self.unsent.push_back(index);
        true
    }

    /// Ends the flow, but not the connection: the closing reads back a sample of the I/Os.
    fn finish(&mut self, context: &Context<'_>) -> Outcome {
        let flow = context.flow(self.flow);
        let _ = flow.read_back.set(std::mem::take(&mut self.read_back));
        Outcome::Orderly
    }
}

impl RequestClient for NbdClient {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn outstanding(&self) -> usize {
        self.slots.outstanding()
    }

    fn queue(&mut self, context: &Context<'_>, now: u64) {
        self.finishing |= context.shared.flows.stopping();
        self.schedule.begin(context.shared.began());
        while !self.finishing {
            let outstanding = self.slots.outstanding();
            if self.flush_every > 0 && self.unflushed >= self.flush_every {
                if !self.ask(command::FLUSH, 0, 0, [now, now]) {
                    return;
                }
                self.unflushed = 0;
                continue;
            }
            let Some(due) = self.schedule.next(now, outstanding) else {
                return;
            };
            if context.shared.take_budget(1) == 0 {
                self.finishing = true;
                return;
            }
            let (offset, reads) = self.access.next();
            let command = if reads { command::READ } else { command::WRITE };
            if !self.ask(command, offset, self.size, [due, now]) {
                return;
            }
            self.unflushed += u32::from(!reads);
        }
    }

    fn send(&mut self, context: &Context<'_>, mut now: u64) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            let body = &context.shared.message;
            let mut parts = [IoSlice::new(&[]); 2 * SENT_AT_ONCE];
            let mut skip = self.begun;
            let mut wanted = 0;
            let slots = self
                .unsent
                .iter()
                .map(|index| &self.slots.all[*index as usize]);
            for (pair, slot) in parts.chunks_exact_mut(2).zip(slots) {
                let (head, data) = slot.sizes();
                let data = if data > 0 {
                    rest(body, slot.request.offset, data + STAMP_BYTES)
                } else {
                    &[]
                };
                let head = &slot.head[..head];
                let in_head = skip.min(head.len());
                pair[0] = IoSlice::new(&head[in_head..]);
                pair[1] = IoSlice::new(&data[skip - in_head..]);
                wanted += pair[0].len() + pair[1].len();
                skip = 0;
            }
            let count = 2 * self.unsent.len().min(SENT_AT_ONCE);
            match send_vectored(&*self.socket, &parts[..count]) {
                Ok(sent) => {
                    self.sent(context, sent, now);
                    if sent < wanted && !context.blocking {
                        return Ok(false);
                    }
                }
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(false),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
            now = context.shared.now();
        }
        Ok(true)
    }

    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let room = context.buffers.read.len();
        let read = match receive(&*self.socket, &mut context.buffers.read) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) => match IoFailure::from(error) {
                IoFailure::Interrupted => return Ok(true),
                IoFailure::Blocked => return Ok(false),
                IoFailure::Broken(error) => return Err(error),
            },
        };
        let context = &*context;
        let now = context.shared.now();
        self.last_activity = now;
        let rx = &context.flow(self.flow).rx;
        let mut input = &context.buffers.read[..read];
        while let Some(event) = self
            .reader
            .next(&mut input, &mut self.slots)
            .map_err(protocol)?
        {
            match event {
                Event::Data { length, .. } | Event::Zeroes { length, .. } => {
                    rx.bytes.add(length.into());
                }
                Event::Done { cookie } => {
                    let index = cookie as u32;
                    let slot = &mut self.slots.all[index as usize];
                    slot.outstanding = false;
                    self.slots.free.push(index);
                    if slot.request.command == command::FLUSH {
                        context.record_flush(slot.sent, now);
                        continue;
                    }
                    context.record(slot.sent, now);
                    self.read_back.done(&slot.request);
                    self.schedule.done(now);
                    rx.messages.add(1);
                }
            }
        }
        Ok(read == room)
    }

    fn timed_out(&self, now: u64) -> bool {
        now.saturating_sub(self.last_activity) > PEER_TIMEOUT.as_nanos() as u64
    }

    fn idle(&mut self, context: &Context<'_>) -> Idle {
        if self.finishing {
            Idle::Over(self.finish(context))
        } else {
            Idle::Until(self.schedule.due(0))
        }
    }

    fn until(&self) -> Option<u64> {
        let silence = self.last_activity + PEER_TIMEOUT.as_nanos() as u64 + 1;
        let due = if self.finishing {
            None
        } else {
            self.schedule.due(self.slots.outstanding())
        };
        Some(due.map_or(silence, |due| due.min(silence)))
    }
}

impl Task for NbdClient {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        request_loop::poll(self, context)
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}
