//! Many machines on one thread with epoll.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use wirecost_sys::epoll::{Epoll, Events, Interest};

use super::ended;
use super::timers::Timers;
use crate::flow::{End, same};
use crate::load::Load;
use crate::machine::{Desk, Machine, Next};

/// The token of the thread's own wake.
const WAKE: u64 = u64::MAX;

/// A machine among others.
struct Slot {
    machine: Box<dyn Machine>,
    /// What the kernel was told to wait for, on which descriptor.
    registered: Option<(Interest, u32)>,
    queued: bool,
}

struct Together {
    epoll: Epoll,
    slots: Vec<Option<Slot>>,
    /// Whose turn it is.
    ready: VecDeque<usize>,
    timers: Timers,
    alive: usize,
}

/// Drives many machines, each when it can go on.
pub(super) fn together(
    machines: Vec<Box<dyn Machine>>,
    desk: &mut Desk<'_>,
    seat: usize,
    spins: bool,
) {
    let load = desk.load;
    let count = machines.len();
    let wake = load.flows.wake(seat);
    let epoll = Epoll::new().and_then(|epoll| {
        epoll.add(wake, Interest::READ, WAKE)?;
        Ok(epoll)
    });
    let epoll = match epoll {
        Ok(epoll) => epoll,
        Err(error) => {
            for machine in &machines {
                ended(load, &**machine, End::Failed(same(&error)));
            }
            return;
        }
    };
    let slot = |machine| {
        Some(Slot {
            machine,
            registered: None,
            queued: true,
        })
    };
    let mut all = Together {
        epoll,
        slots: machines.into_iter().map(slot).collect(),
        ready: (0..count).collect(),
        timers: Timers::new(count),
        alive: count,
    };
    let mut events = Events::with_capacity(count + 1);
    while all.alive > 0 {
        for _ in 0..all.ready.len() {
            if let Some(index) = all.ready.pop_front() {
                all.turn(index, desk);
            }
        }
        let timeout = if spins || !all.ready.is_empty() {
            Some(Duration::ZERO)
        } else {
            all.timers.left(load.now())
        };
        if all.alive == 0 {
            return;
        }
        let waited = all.epoll.wait(&mut events, timeout);
        if let Err(error) = waited {
            return all.give_up(load, &error);
        }
        if spins {
            desk.seat.looks.add(1);
            desk.seat
                .idle
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
        let now = load.now();
        while let Some(index) = all.timers.next_due(now) {
            all.queue(index);
        }
    }
}

impl Together {
    fn queue(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push_back(index);
        }
    }

    fn turn(&mut self, index: usize, desk: &mut Desk<'_>) {
        let Some(slot) = self.slots[index].as_mut() else {
            return;
        };
        slot.queued = false;
        let load = desk.load;
        let end = match slot.machine.turn(desk) {
            Next::Again => {
                slot.queued = true;
                return self.ready.push_back(index);
            }
            Next::Over(end) => end,
            Next::Wait(..) if load.flows.is_cut() => End::Released,
            Next::Wait(interest, until) => {
                self.timers.set(index, until);
                match slot.register(&self.epoll, interest, index as u64) {
                    Ok(()) => return,
                    Err(error) => End::Failed(error),
                }
            }
        };
        if let Some(slot) = self.slots[index].take() {
            slot.unregister(&self.epoll);
            ended(load, &*slot.machine, end);
            self.alive -= 1;
        }
    }

    fn give_up(&mut self, load: &Load, error: &io::Error) {
        for slot in self.slots.iter_mut().filter_map(Option::take) {
            ended(load, &*slot.machine, End::Failed(same(error)));
        }
        self.alive = 0;
    }
}

impl Slot {
    fn register(&mut self, epoll: &Epoll, interest: Interest, token: u64) -> io::Result<()> {
        let Some((fd, generation)) = self.machine.descriptor() else {
            return Ok(());
        };
        match self.registered {
            Some(before) if before == (interest, generation) => return Ok(()),
            Some((_, before)) if before == generation => epoll.modify(&fd, interest, token)?,
            // A descriptor that is gone was taken out with its closing.
            _ => epoll.add(&fd, interest, token)?,
        }
        self.registered = Some((interest, generation));
        Ok(())
    }

    /// The socket may live on in its flow.
    fn unregister(&self, epoll: &Epoll) {
        if let (Some((fd, generation)), Some((_, registered))) =
            (self.machine.descriptor(), self.registered)
            && generation == registered
        {
            let _ = epoll.remove(&fd);
        }
    }
}
