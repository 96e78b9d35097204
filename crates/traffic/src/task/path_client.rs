//! A job of storage at a path: reads and writes of blocks, several outstanding, on a thread that waits for them.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use wirecost_nbd::protocol::command;
use wirecost_nbd::request::Request;
use wirecost_sys::epoll::Interest;
use wirecost_sys::file_io::{FileIo, FileOperation};

use super::request_schedule::RequestSchedule;
use super::{Context, Progress, Task};
use crate::flow::Outcome;
use crate::shared::Shared;
use crate::storage::access::Access;
use crate::storage::content::{Writer, seed};
use crate::storage::path::{OpenPath, in_words, write_block};
use crate::storage::read_back::ReadBack;
use crate::timeouts::{PEER_TIMEOUT, POLL_INTERVAL};
use wirecost_model::path_access::PathKind;

pub(crate) struct PathClient {
    flow: u32,
    schedule: RequestSchedule,
    access: Access,
    /// Bytes of an I/O.
    size: u32,
    seed: u64,
    io: FileIo,
    slots: Box<[Slot]>,
    free: Vec<usize>,
    /// Slots of I/Os that the next call submits to the kernel.
    queued: Vec<usize>,
    /// When an I/O last completed, or one was queued with no other outstanding; nanoseconds by [`Shared::now`].
    last_activity: u64,
    /// No more I/Os are queued.
    finishing: bool,
    read_back: ReadBack,
    /// Number of writes after which a flush follows; 0: never.
    flush_every: u32,
    /// Writes queued since the last flush was queued.
    unflushed: u32,
}

/// An I/O that is outstanding.
#[derive(Debug, Clone, Copy)]
struct Slot {
    request: Request,
    /// Bytes that were read or written so far.
    moved: usize,
    /// When the I/O was due, nanoseconds by [`Shared::now`].
    due: u64,
    /// When the I/O was submitted to the kernel.
    sent: u64,
}

impl PathClient {
    /// # Errors
    /// No memory; neither a ring nor a context of io_setup(2).
    pub(crate) fn new(shared: &Shared, open: &OpenPath, flow: u32) -> io::Result<Self> {
        let load = &shared.options.load;
        let storage = load.storage.unwrap_or(wirecost_model::load::Storage::USUAL);
        let (size, seed) = (load.request, seed(&shared.options));
        let depth = load.depth as usize;
        let (io, refused) = FileIo::new(&open.file, depth, size as usize)?;
        match refused {
            None => {
                let thread = flow as usize % shared.threads.len();
                shared.threads[thread]
                    .has_ring
                    .store(true, std::sync::atomic::Ordering::Relaxed);
            }
            Some(refused) => {
                let _ = open.no_ring.set(refused.to_string());
            }
        }
        let request = Request {
            flags: 0,
            command: command::READ,
            cookie: 0,
            offset: 0,
            length: size,
        };
        let slot = Slot {
            request,
            moved: 0,
            due: 0,
            sent: 0,
        };
        Ok(Self {
            flow,
            schedule: RequestSchedule::new(shared, flow),
            access: Access::new(&storage, size, open.bytes, flow, load.streams, seed),
            size,
            seed,
            io,
            slots: vec![slot; depth].into(),
            free: (0..depth).rev().collect(),
            queued: Vec::with_capacity(depth),
            last_activity: 0,
            finishing: false,
            read_back: ReadBack::new(&shared.options, flow, open.kind == PathKind::OwnFile),
            flush_every: storage.flush_every,
            unflushed: 0,
        })
    }

    fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues an I/O; `false` where as many are outstanding as may be. The times are when it was due, and now.
    fn ask(
        &mut self,
        context: &Context<'_>,
        command: u16,
        offset: u64,
        [due, now]: [u64; 2],
    ) -> io::Result<bool> {
        if self.outstanding() == 0 {
            self.last_activity = now;
        }
        let Some(index) = self.free.pop() else {
            return Ok(false);
        };
        let slot = &mut self.slots[index];
        slot.request.command = command;
        slot.request.offset = offset;
        (slot.moved, slot.due, slot.sent) = (0, due, now);
        if command == command::WRITE {
            let block = self.io.buffer(index);
            write_block(
                block,
                &context.shared.message,
                self.seed,
                Writer::Client,
                offset,
            );
        }
        self.start(index)?;
        self.queued.push(index);
        Ok(true)
    }

    /// Queues what is left of a slot's I/O.
    fn start(&mut self, index: usize) -> io::Result<()> {
        let Slot { request, moved, .. } = self.slots[index];
        let operation = match request.command {
            command::READ => FileOperation::Read,
            command::WRITE => FileOperation::Write,
            _ => FileOperation::Flush,
        };
        let to = if operation == FileOperation::Flush {
            moved
        } else {
            self.size as usize
        };
        let offset = request.offset + moved as u64;
        self.io.start(operation, index, [moved, to], offset)
    }

    fn queue(&mut self, context: &Context<'_>, now: u64) -> io::Result<()> {
        self.finishing |= context.shared.flows.stopping();
        self.schedule.begin(context.shared.began());
        while !self.finishing {
            if self.flush_every > 0 && self.unflushed >= self.flush_every {
                if !self.ask(context, command::FLUSH, 0, [now, now])? {
                    return Ok(());
                }
                self.unflushed = 0;
                continue;
            }
            let Some(due) = self.schedule.next(now, self.outstanding()) else {
                return Ok(());
            };
            if context.shared.take_budget(1) == 0 {
                self.finishing = true;
                return Ok(());
            }
            let (offset, reads) = self.access.next();
            let command = if reads { command::READ } else { command::WRITE };
            if !self.ask(context, command, offset, [due, now])? {
                return Ok(());
            }
            self.unflushed += u32::from(!reads);
        }
        Ok(())
    }

    /// Notes the queued I/Os as submitted at `now`.
    fn note_sent(&mut self, context: &Context<'_>, now: u64) {
        let tx = &context.flow(self.flow).tx;
        for index in self.queued.drain(..) {
            let slot = &mut self.slots[index];
            slot.sent = now;
            if slot.request.command == command::FLUSH {
                continue;
            }
            context.record_lateness(slot.due, now);
            tx.messages.add(1);
            if slot.request.command == command::WRITE {
                tx.bytes.add(self.size.into());
            }
        }
    }

    /// Takes completed I/Os, and queues the rest of partial ones. Returns how many are complete, flushes included.
    fn reap(&mut self, context: &Context<'_>) -> io::Result<usize> {
        let mut count = 0;
        let mut now = None;
        while let Some((index, result)) = self.io.next_completion() {
            let now = *now.get_or_insert_with(|| context.shared.now());
            self.last_activity = now;
            let slot = &mut self.slots[index];
            let request = slot.request;
            let moved = result.map_err(|error| failed(&request, self.size, &error))?;
            if request.command != command::FLUSH {
                slot.moved += moved;
                if moved == 0 {
                    let kind = if request.command == command::WRITE {
                        io::ErrorKind::WriteZero
                    } else {
                        io::ErrorKind::UnexpectedEof
                    };
                    return Err(failed(&request, self.size, &kind.into()));
                }
                if slot.moved < self.size as usize {
                    self.start(index)?;
                    continue;
                }
            }
            self.free.push(index);
            count += 1;
            if request.command == command::FLUSH {
                context.record_flush(slot.sent, now);
                continue;
            }
            context.record(slot.sent, now);
            self.read_back.done(&request);
            self.schedule.done(now);
            let rx = &context.flow(self.flow).rx;
            rx.messages.add(1);
            if request.command == command::READ {
                rx.bytes.add(self.size.into());
            }
        }
        Ok(count)
    }

    /// Longest time to wait for a completion.
    fn patience(&self, context: &Context<'_>) -> Duration {
        if context.shared.options.load.waiting == crate::options::WaitMode::Spin {
            return Duration::ZERO;
        }
        let due = if self.finishing {
            None
        } else {
            self.schedule.due(self.outstanding())
        };
        let left = due.map(|due| Duration::from_nanos(due.saturating_sub(context.shared.now())));
        left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL))
    }

    fn step(&mut self, context: &Context<'_>) -> io::Result<Progress> {
        self.reap(context)?;
        let now = context.shared.now();
        self.queue(context, now)?;
        if self.outstanding() == 0 {
            if self.finishing {
                let flow = context.flow(self.flow);
                let _ = flow.read_back.set(std::mem::take(&mut self.read_back));
                return Ok(Progress::Over(Outcome::Orderly));
            }
            return Ok(Progress::Wait(Interest::NONE, self.schedule.due(0)));
        }
        let now = context.shared.now();
        self.note_sent(context, now);
        let patience = self.patience(context);
        self.io.wait(patience)?;
        context.thread.ring_waits.add(1);
        if self.reap(context)? > 0 {
            return Ok(Progress::Again);
        }
        let silent = context.shared.now().saturating_sub(self.last_activity);
        if silent > PEER_TIMEOUT.as_nanos() as u64 {
            let words = format!(
                "none of {} outstanding I/Os was over within {} s: a mount whose server is gone, or a device that does \
                 not answer",
                self.outstanding(),
                PEER_TIMEOUT.as_secs()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        Ok(Progress::READ)
    }
}

/// The kernel's error, with the I/O that failed.
fn failed(request: &Request, size: u32, error: &io::Error) -> io::Error {
    let doing = match request.command {
        command::READ => format!("reading {size} bytes at offset {}", request.offset),
        command::WRITE => format!("writing {size} bytes at offset {}", request.offset),
        _ => "flushing what was written".to_owned(),
    };
    in_words(&doing, error)
}

impl Task for PathClient {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        self.step(context).unwrap_or_else(Progress::failed)
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        None
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}

/// The tasks, one for each job.
pub(crate) fn all(shared: &Arc<Shared>, open: &OpenPath) -> io::Result<Vec<Box<dyn Task>>> {
    let jobs = 0..shared.options.load.streams;
    jobs.map(|flow| {
        let job = PathClient::new(shared, open, flow)?;
        Ok(Box::new(job) as Box<dyn Task>)
    })
    .collect()
}
