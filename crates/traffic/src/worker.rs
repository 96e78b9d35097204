//! A thread of a load and the ways in which it drives its machines: blocking with one, waiting for many, spinning.

mod ring;
mod timers;
mod together;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) use self::ring::buffer as ring_buffer;
use self::ring::ringing;
use self::together::together;
use crate::error::TrafficError;
use crate::flow::{End, same};
use crate::load::Load;
use crate::machine::{Desk, LOOK, Machine, Next, Room};
use crate::options::Waiting;

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
        let mut machines = std::mem::take(&mut self.machines);
        // Made here too: it belongs to the thread that uses it.
        let ring = match self.drive {
            Drive::Waiting => ring::for_machines(&mut machines, &load, self.seat),
            Drive::Blocking | Drive::Spinning => None,
        };
        if waits_for_start {
            let flows = &load.flows;
            flows.wait_until(None, || flows.started() || flows.stopping());
        }
        let mut desk = Desk {
            load: &load,
            seat,
            room: &mut self.room,
            blocking: self.drive == Drive::Blocking,
        };
        match (self.drive, ring) {
            (_, Some(ring)) => ringing(machines, ring, &mut desk, self.seat),
            (Drive::Blocking, None) => {
                for machine in machines {
                    alone(machine, &mut desk);
                }
            }
            (Drive::Spinning, None) if machines.len() <= ASKED_IN_TURN => {
                spinning(machines, &mut desk);
            }
            (Drive::Spinning, None) => together(machines, &mut desk, self.seat, true),
            (Drive::Waiting, None) => together(machines, &mut desk, self.seat, false),
        }
        if let Ok(times) = wirecost_sys::thread::times(seat.tid.load(Relaxed)) {
            let _ = seat.left.set(times);
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
