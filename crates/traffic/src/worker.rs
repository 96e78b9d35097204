//! A thread of a load and the ways in which it drives its machines: blocking with one, waiting for many, spinning.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wirecost_sys::epoll::{Epoll, Events, Interest};

use crate::error::TrafficError;
use crate::flow::{End, same};
use crate::load::Load;
use crate::machine::{Desk, LOOK, Machine, Next, Room};
use crate::options::Waiting;

/// The token of the thread's own wake.
const WAKE: u64 = u64::MAX;
/// Machines up to which a spinning thread asks each one instead of asking the kernel which.
const ASKED_IN_TURN: usize = 4;

/// How a thread drives its machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drive {
    /// One machine on a blocking socket.
    Blocking,
    /// Any number on sockets that do not block.
    Waiting,
    /// Likewise, without ever sleeping.
    Spinning,
}

impl Drive {
    /// The drive where each machine has a thread of its own, and may block there, or not. All threads of an end have
    /// the same: two halves of a connection are one socket to the kernel, which blocks for both or for neither.
    pub(crate) fn of(waiting: Waiting, own_threads: bool) -> Self {
        match waiting {
            Waiting::Spin => Self::Spinning,
            Waiting::Sleep if own_threads => Self::Blocking,
            Waiting::Sleep => Self::Waiting,
        }
    }
}

/// Starts a thread; a client's waits for the start.
pub(crate) fn spawn(
    load: &Arc<Load>,
    seat: usize,
    machines: Vec<Box<dyn Machine>>,
    drive: Drive,
    waits_for_start: bool,
) -> Result<JoinHandle<()>, TrafficError> {
    // Made here, on the thread that sets up, so that nobody who starts pays for it.
    let room = load.table.room(&load.options);
    let worker = Worker {
        load: Arc::clone(load),
        seat,
        machines,
        drive,
        room,
    };
    thread::Builder::new()
        .name(format!("load-{seat}"))
        // Machines keep their buffers elsewhere: 1024 threads are to fit into a small host.
        .stack_size(256 << 10)
        .spawn(move || worker.run(waits_for_start))
        .map_err(TrafficError::Thread)
}

struct Worker {
    load: Arc<Load>,
    seat: usize,
    machines: Vec<Box<dyn Machine>>,
    drive: Drive,
    room: Room,
}

impl Worker {
    fn run(mut self, waits_for_start: bool) {
        let load = Arc::clone(&self.load);
        let seat = &load.seats[self.seat];
        seat.tid.store(wirecost_sys::thread::current(), Relaxed);
        if load.options.rate.is_some() || !load.options.think_time.is_zero() {
            // Without it a paced message may leave up to 50 us late; nothing else depends on it.
            let _ = wirecost_sys::thread::exact_timers();
        }
        if waits_for_start {
            let flows = &load.flows;
            flows.wait_until(None, || flows.started() || flows.stopping());
        }
        let machines = std::mem::take(&mut self.machines);
        let mut desk = Desk {
            load: &load,
            seat,
            room: &mut self.room,
            blocking: self.drive == Drive::Blocking,
        };
        match self.drive {
            Drive::Blocking => {
                for machine in machines {
                    alone(machine, &mut desk);
                }
            }
            Drive::Spinning if machines.len() <= ASKED_IN_TURN => spinning(machines, &mut desk),
            Drive::Spinning => together(machines, &mut desk, self.seat, true),
            Drive::Waiting => together(machines, &mut desk, self.seat, false),
        }
    }
}

fn ended(load: &Load, machine: &dyn Machine, end: End) {
    // What ends after this end gave the flows up ends by that, however it looks.
    let end = if load.flows.is_cut() {
        End::Released
    } else {
        end
    };
    if let Some(index) = machine.flow() {
        load.flows.end(&load.flows.all()[index as usize], end);
    } else if let End::Failed(error) = end {
        // A thread's share of all flows broke: so did each of them.
        for (_, flow) in load.flows.here() {
            load.flows.end(flow, End::Failed(same(&error)));
        }
    }
}

/// Drives one machine whose socket does the waiting.
fn alone(mut machine: Box<dyn Machine>, desk: &mut Desk<'_>) {
    let load = desk.load;
    loop {
        match machine.turn(desk) {
            Next::Again => {}
            Next::Over(end) => return ended(load, &*machine, end),
            Next::Wait(interest, until) => {
                if load.flows.is_cut() {
                    return ended(load, &*machine, End::Released);
                }
                // Where there is a socket to wait for, it has waited already.
                if !(interest.read || interest.write) {
                    let left = until.map_or(LOOK, |until| {
                        Duration::from_nanos(until.saturating_sub(load.now()))
                    });
                    thread::sleep(left.min(LOOK));
                }
            }
        }
    }
}

/// Asks a few machines again and again.
fn spinning(mut machines: Vec<Box<dyn Machine>>, desk: &mut Desk<'_>) {
    let load = desk.load;
    while !machines.is_empty() {
        machines.retain_mut(|machine| {
            let next = machine.turn(desk);
            desk.seat.looks.add(1);
            match next {
                Next::Again => true,
                Next::Wait(..) => {
                    desk.seat.idle.add(1);
                    let cut = load.flows.is_cut();
                    if cut {
                        ended(load, &**machine, End::Released);
                    }
                    !cut
                }
                Next::Over(end) => {
                    ended(load, &**machine, end);
                    false
                }
            }
        });
        std::hint::spin_loop();
    }
}

/// A machine among others.
struct Slot {
    machine: Box<dyn Machine>,
    /// What the kernel was told to wait for, on which descriptor.
    registered: Option<(Interest, u32)>,
    /// When it wants a turn at the latest.
    due: Option<u64>,
    /// The soonest entry that the heap has for it; most turns move `due` back, and an entry that comes too soon is
    /// cheaper than one for each transaction.
    due_entry: Option<u64>,
    queued: bool,
}

struct Together {
    epoll: Epoll,
    slots: Vec<Option<Slot>>,
    /// Whose turn it is.
    ready: VecDeque<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    alive: usize,
}

/// Drives many machines, each when it can go on.
fn together(machines: Vec<Box<dyn Machine>>, desk: &mut Desk<'_>, seat: usize, spins: bool) {
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
            due: None,
            due_entry: None,
            queued: true,
        })
    };
    let mut all = Together {
        epoll,
        slots: machines.into_iter().map(slot).collect(),
        ready: (0..count).collect(),
        timers: BinaryHeap::with_capacity(2 * count),
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
            all.until_due(load.now())
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
        all.queue_due(load.now());
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
                slot.due = until;
                let told = slot.register(&self.epoll, interest, index as u64);
                if let Some(until) = until {
                    // One entry is enough as long as it comes no later than what is wanted.
                    let sooner = slot.due_entry.is_none_or(|entry| until < entry);
                    if sooner {
                        slot.due_entry = Some(until);
                        self.timers.push(Reverse((until, index)));
                    }
                }
                match told {
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

    /// Time until the next machine wants its turn.
    fn until_due(&mut self, now: u64) -> Option<Duration> {
        let Reverse((due, _)) = self.timers.peek()?;
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }

    fn queue_due(&mut self, now: u64) {
        while let Some(Reverse((entry, index))) = self.timers.peek().copied() {
            if entry > now {
                return;
            }
            self.timers.pop();
            let Some(slot) = self.slots[index].as_mut() else {
                continue;
            };
            if slot.due_entry == Some(entry) {
                slot.due_entry = None;
            }
            match slot.due {
                Some(due) if due <= now => self.queue(index),
                Some(due) if slot.due_entry.is_none() => {
                    slot.due_entry = Some(due);
                    self.timers.push(Reverse((due, index)));
                }
                _ => {}
            }
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
