//! Many tasks on one thread with epoll(7).

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use wirecost_sys::epoll::{Epoll, Events, Interest};

use super::ended;
use super::timers::Timers;
use crate::flow::{Outcome, same};
use crate::shared::Shared;
use crate::task::{Context, Progress, Task};

/// The token of the thread's own waker.
const WAKE: u64 = u64::MAX;

/// A task and its registration.
struct Slot {
    task: Box<dyn Task>,
    /// Interest that is registered with epoll, and the number of the descriptor ([`Task::descriptor`]).
    registered: Option<(Interest, u32)>,
    queued: bool,
}

struct EpollLoop {
    epoll: Epoll,
    slots: Vec<Option<Slot>>,
    /// Indices of the tasks to poll.
    ready: VecDeque<usize>,
    timers: Timers,
    alive: usize,
}

/// Runs many tasks, each when it can continue. `spins`: polls the epoll set without sleeping.
pub(super) fn run_epoll(
    tasks: Vec<Box<dyn Task>>,
    context: &mut Context<'_>,
    thread: usize,
    spins: bool,
) {
    let shared = context.shared;
    let count = tasks.len();
    let wake = shared.flows.wake(thread);
    let epoll = Epoll::new().and_then(|epoll| {
        epoll.add(wake, Interest::READ, WAKE)?;
        Ok(epoll)
    });
    let epoll = match epoll {
        Ok(epoll) => epoll,
        Err(error) => {
            for task in &tasks {
                ended(shared, &**task, Outcome::Failed(same(&error)));
            }
            return;
        }
    };
    let slot = |task| {
        Some(Slot {
            task,
            registered: None,
            queued: true,
        })
    };
    let mut all = EpollLoop {
        epoll,
        slots: tasks.into_iter().map(slot).collect(),
        ready: (0..count).collect(),
        timers: Timers::new(count),
        alive: count,
    };
    let mut events = Events::with_capacity(count + 1);
    while all.alive > 0 {
        for _ in 0..all.ready.len() {
            if let Some(index) = all.ready.pop_front() {
                all.poll(index, context);
            }
        }
        let timeout = if spins || !all.ready.is_empty() {
            Some(Duration::ZERO)
        } else {
            all.timers.left(shared.now())
        };
        if all.alive == 0 {
            return;
        }
        let waited = all.epoll.wait(&mut events, timeout);
        if let Err(error) = waited {
            return all.give_up(shared, &error);
        }
        if spins {
            context.thread.polls.add(1);
            context
                .thread
                .idle_polls
                .add(u64::from(events.tokens().next().is_none()));
        }
        for token in events.tokens() {
            if token == WAKE {
                wake.lower();
                (0..count).for_each(|index| all.queue(index));
            } else {
                all.queue(token as usize);
            }
        }
        let now = shared.now();
        while let Some(index) = all.timers.next_due(now) {
            all.queue(index);
        }
    }
}

impl EpollLoop {
    fn queue(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push_back(index);
        }
    }

    fn poll(&mut self, index: usize, context: &mut Context<'_>) {
        let Some(slot) = self.slots[index].as_mut() else {
            return;
        };
        slot.queued = false;
        let shared = context.shared;
        let end = match slot.task.poll(context) {
            Progress::Again => {
                slot.queued = true;
                return self.ready.push_back(index);
            }
            Progress::Over(end) => end,
            Progress::Wait(..) if shared.flows.is_aborted() => Outcome::Released,
            Progress::Wait(interest, until) => {
                self.timers.set(index, until);
                match slot.register(&self.epoll, interest, index as u64) {
                    Ok(()) => return,
                    Err(error) => Outcome::Failed(error),
                }
            }
        };
        if let Some(slot) = self.slots[index].take() {
            slot.unregister(&self.epoll);
            ended(shared, &*slot.task, end);
            self.alive -= 1;
        }
    }

    fn give_up(&mut self, shared: &Shared, error: &io::Error) {
        for slot in self.slots.iter_mut().filter_map(Option::take) {
            ended(shared, &*slot.task, Outcome::Failed(same(error)));
        }
        self.alive = 0;
    }
}

impl Slot {
    fn register(&mut self, epoll: &Epoll, interest: Interest, token: u64) -> io::Result<()> {
        let Some((fd, generation)) = self.task.descriptor() else {
            return Ok(());
        };
        match self.registered {
            Some(before) if before == (interest, generation) => return Ok(()),
            Some((_, before)) if before == generation => epoll.modify(&fd, interest, token)?,
            // Closing the former descriptor has removed it from the set.
            _ => epoll.add(&fd, interest, token)?,
        }
        self.registered = Some((interest, generation));
        Ok(())
    }

    /// Removes the descriptor from the epoll set: the socket may stay open in its flow.
    fn unregister(&self, epoll: &Epoll) {
        if let (Some((fd, generation)), Some((_, registered))) =
            (self.task.descriptor(), self.registered)
            && generation == registered
        {
            let _ = epoll.remove(&fd);
        }
    }
}
