//! Many connections on one thread with io_uring: one system call for all of their sends and receives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

use wirecost_sys::ring::{Completion, Ring};

use super::ended;
use super::timers::Timers;
use crate::flow::{Outcome, same};
use crate::options::Multiplexing;
use crate::shared::Shared;
use crate::task::{Context, IoFailure, Task};

/// A ring for a thread with these tasks; `None` where epoll is better, or the kernel has no io_uring.
pub(super) fn for_tasks(
    tasks: &mut [Box<dyn Task>],
    shared: &Shared,
    thread: usize,
) -> Option<Ring> {
    let options = &shared.options;
    let each = shared.buffer_sizes.ring;
    // A ring would delay timed requests: everything that is due leaves in one call.
    let is_timed = options.load.is_timed();
    let is_better = match options.multiplexing {
        // Better where threads have several connections each; then for all threads, even one with a single
        // connection.
        Multiplexing::Auto => {
            options.load.connections() as usize > shared.threads.len() && !is_timed
        }
        Multiplexing::Ring => true,
        Multiplexing::Epoll => false,
    };
    let suits = is_better && each > 0 && tasks.iter_mut().all(|task| task.ring_io().is_some());
    if !suits {
        return None;
    }
    let sockets: Vec<BorrowedFd<'_>> = tasks
        .iter()
        .filter_map(|task| Some(task.descriptor()?.0))
        .collect();
    let wake = shared.flows.wake(thread).as_fd();
    match Ring::new(&sockets, wake, each, &shared.message) {
        Ok(ring) => {
            shared.threads[thread].has_ring.store(true, Relaxed);
            Some(ring)
        }
        Err(error) => {
            tracing::debug!("no io_uring, epoll instead: {error}");
            None
        }
    }
}

struct RingLoop<'a> {
    ring: Ring,
    /// Tasks, by the index of their socket in the ring.
    tasks: Vec<Option<Box<dyn Task>>>,
    timers: Timers,
    alive: usize,
    shared: &'a Shared,
}

/// Runs tasks that support rings, each when it can continue.
pub(super) fn run_ring(
    tasks: Vec<Box<dyn Task>>,
    ring: Ring,
    context: &mut Context<'_>,
    thread: usize,
) {
    let shared = context.shared;
    let count = tasks.len();
    let mut all = RingLoop {
        ring,
        tasks: tasks.into_iter().map(Some).collect(),
        timers: Timers::new(count),
        alive: count,
        shared,
    };
    if let Err(error) = all.run(context, thread) {
        for task in all.tasks.iter_mut().filter_map(Option::take) {
            ended(shared, &*task, Outcome::Failed(same(&error)));
        }
    }
}

impl RingLoop<'_> {
    fn run(&mut self, context: &mut Context<'_>, thread: usize) -> io::Result<()> {
        let shared = self.shared;
        let wake = shared.flows.wake(thread);
        self.each_goes_on(context, shared.now())?;
        while self.alive > 0 {
            self.ring.wait(self.timers.left(shared.now()))?;
            context.thread.ring_waits.add(1);
            // One timestamp for these completions and for what is submitted upon them: the kernel received the former
            // just before, and gets the latter right after.
            let now = shared.now();
            let mut woken = false;
            while let Some(done) = self.ring.next_completion() {
                woken |= matches!(done, Completion::Woken);
                self.take(done, context, now)?;
            }
            if woken {
                wake.lower();
                self.ring.arm_wake()?;
                self.each_goes_on(context, now)?;
            }
            while let Some(index) = self.timers.next_due(now) {
                self.go_on(index, context, now)?;
            }
        }
        Ok(())
    }

    /// Passes a completion to its task.
    fn take(&mut self, done: Completion, context: &Context<'_>, now: u64) -> io::Result<()> {
        let (Completion::Received(index, _) | Completion::Sent(index, _)) = done else {
            return Ok(());
        };
        let task = self.tasks[index].as_mut();
        let Some(ring_io) = task.and_then(|task| task.ring_io()) else {
            return Ok(());
        };
        let taken = match done {
            Completion::Received(_, Ok(bytes)) => ring_io.received(context, bytes, now),
            Completion::Sent(_, Ok(bytes)) => {
                ring_io.sent(context, bytes);
                Ok(())
            }
            Completion::Received(_, Err(error)) | Completion::Sent(_, Err(error)) => {
                match error.into() {
                    IoFailure::Interrupted | IoFailure::Blocked => Ok(()),
                    IoFailure::Broken(error) => Err(Outcome::Failed(error)),
                }
            }
            Completion::Woken => Ok(()),
        };
        match taken {
            Ok(()) => self.go_on(index, context, now),
            Err(end) => self.over(index, end),
        }
    }

    fn each_goes_on(&mut self, context: &Context<'_>, now: u64) -> io::Result<()> {
        (0..self.tasks.len()).try_for_each(|index| self.go_on(index, context, now))
    }

    /// Submits the send and the receive that a task wants, unless they are under way already.
    fn go_on(&mut self, index: usize, context: &Context<'_>, now: u64) -> io::Result<()> {
        let task = self.tasks[index].as_mut();
        let Some(ring_io) = task.and_then(|task| task.ring_io()) else {
            return Ok(());
        };
        let next_io = match ring_io.next_io(context, now) {
            Ok(_) if self.shared.flows.is_aborted() => return self.over(index, Outcome::Released),
            Ok(next_io) => next_io,
            Err(end) => return self.over(index, end),
        };
        self.timers.set(index, next_io.until);
        if next_io.send > 0 && !self.ring.is_sending(index) {
            self.ring.send(index, next_io.send)?;
        }
        if next_io.receive > 0 && !self.ring.is_receiving(index) {
            self.ring.receive(index, next_io.receive)?;
        }
        Ok(())
    }

    fn over(&mut self, index: usize, end: Outcome) -> io::Result<()> {
        self.timers.set(index, None);
        if let Some(task) = self.tasks[index].take() {
            // Later completions for this task are ignored.
            let taken_back = self.ring.cancel(index);
            ended(self.shared, &*task, end);
            self.alive -= 1;
            return taken_back;
        }
        Ok(())
    }
}
