//! Many connections on one thread with a ring: one system call for all of their sends and receives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

use wirecost_sys::ring::{Done, Ring};

use super::ended;
use super::timers::Timers;
use crate::flow::{End, same};
use crate::load::Load;
use crate::machine::{Desk, Machine, Trouble};
use crate::options::{Options, Several, Workload};

/// Bytes of a request or response up to which that is so: beyond it is copying that counts.
const SMALL: usize = 16 << 10;

/// Bytes that a connection has in a ring to receive into; 0 where no ring would carry the load.
pub(crate) fn buffer(options: &Options) -> usize {
    let largest = options.request.max(options.response) as usize;
    if options.workload != Workload::TcpRr || largest > SMALL {
        return 0;
    }
    largest.saturating_mul(options.depth as usize).min(SMALL)
}

/// A ring for a thread with these machines, where that is the better way and there can be one.
pub(super) fn for_machines(
    machines: &mut [Box<dyn Machine>],
    load: &Load,
    seat: usize,
) -> Option<Ring> {
    let options = &load.options;
    let each = buffer(options);
    // What is due by a clock would be held up by what is due beside it: all of it leaves in one call.
    let is_timed = options.rate.is_some() || !options.think_time.is_zero();
    let is_better = match options.several {
        // Threads with several connections each; then all threads, though one may have only one.
        Several::Best => options.streams as usize > load.seats.len() && !is_timed,
        Several::Ring => true,
        Several::Epoll => false,
    };
    let suits = is_better
        && each > 0
        && machines
            .iter_mut()
            .all(|machine| machine.exchange().is_some());
    if !suits {
        return None;
    }
    let sockets: Vec<BorrowedFd<'_>> = machines
        .iter()
        .filter_map(|machine| Some(machine.descriptor()?.0))
        .collect();
    let wake = load.flows.wake(seat).as_fd();
    match Ring::new(&sockets, wake, each, &load.message) {
        Ok(ring) => {
            load.seats[seat].has_ring.store(true, Relaxed);
            Some(ring)
        }
        Err(error) => {
            tracing::debug!("no io_uring, epoll instead: {error}");
            None
        }
    }
}

struct Ringing<'a> {
    ring: Ring,
    /// By their places among the ring's sockets.
    machines: Vec<Option<Box<dyn Machine>>>,
    timers: Timers,
    alive: usize,
    load: &'a Load,
}

/// Drives machines that exchange messages, each when it can go on.
pub(super) fn ringing(
    machines: Vec<Box<dyn Machine>>,
    ring: Ring,
    desk: &mut Desk<'_>,
    seat: usize,
) {
    let load = desk.load;
    let count = machines.len();
    let mut all = Ringing {
        ring,
        machines: machines.into_iter().map(Some).collect(),
        timers: Timers::new(count),
        alive: count,
        load,
    };
    if let Err(error) = all.run(desk, seat) {
        for machine in all.machines.iter_mut().filter_map(Option::take) {
            ended(load, &*machine, End::Failed(same(&error)));
        }
    }
}

impl Ringing<'_> {
    fn run(&mut self, desk: &mut Desk<'_>, seat: usize) -> io::Result<()> {
        let load = self.load;
        let wake = load.flows.wake(seat);
        self.each_goes_on(desk, load.now())?;
        while self.alive > 0 {
            self.ring.wait(self.timers.left(load.now()))?;
            desk.seat.rings.add(1);
            // One time for all that came together and for what is asked upon it: the kernel read the former before,
            // and is handed the latter right after.
            let now = load.now();
            let mut woken = false;
            while let Some(done) = self.ring.next_done() {
                woken |= matches!(done, Done::Woken);
                self.take(done, desk, now)?;
            }
            if woken {
                wake.lower();
                self.ring.arm_wake()?;
                self.each_goes_on(desk, now)?;
            }
            while let Some(index) = self.timers.next_due(now) {
                self.go_on(index, desk, now)?;
            }
        }
        Ok(())
    }

    /// Lets a machine know what became of what it wanted.
    fn take(&mut self, done: Done, desk: &Desk<'_>, now: u64) -> io::Result<()> {
        let (Done::Received(index, _) | Done::Sent(index, _)) = done else {
            return Ok(());
        };
        let machine = self.machines[index].as_mut();
        let Some(exchange) = machine.and_then(|machine| machine.exchange()) else {
            return Ok(());
        };
        let taken = match done {
            Done::Received(_, Ok(bytes)) => exchange.received(desk, bytes, now),
            Done::Sent(_, Ok(bytes)) => {
                exchange.sent(desk, bytes);
                Ok(())
            }
            Done::Received(_, Err(error)) | Done::Sent(_, Err(error)) => match error.into() {
                Trouble::Interrupted | Trouble::Blocked => Ok(()),
                Trouble::Broken(error) => Err(End::Failed(error)),
            },
            Done::Woken => Ok(()),
        };
        match taken {
            Ok(()) => self.go_on(index, desk, now),
            Err(end) => self.over(index, end),
        }
    }

    fn each_goes_on(&mut self, desk: &Desk<'_>, now: u64) -> io::Result<()> {
        (0..self.machines.len()).try_for_each(|index| self.go_on(index, desk, now))
    }

    /// Has the ring do what a machine wants now and the ring is not at already.
    fn go_on(&mut self, index: usize, desk: &Desk<'_>, now: u64) -> io::Result<()> {
        let machine = self.machines[index].as_mut();
        let Some(exchange) = machine.and_then(|machine| machine.exchange()) else {
            return Ok(());
        };
        let wants = match exchange.wants(desk, now) {
            Ok(_) if self.load.flows.is_cut() => return self.over(index, End::Released),
            Ok(wants) => wants,
            Err(end) => return self.over(index, end),
        };
        self.timers.set(index, wants.until);
        if wants.send > 0 && !self.ring.is_sending(index) {
            self.ring.send(index, wants.send)?;
        }
        if wants.receive > 0 && !self.ring.is_receiving(index) {
            self.ring.receive(index, wants.receive)?;
        }
        Ok(())
    }

    fn over(&mut self, index: usize, end: End) -> io::Result<()> {
        self.timers.set(index, None);
        if let Some(machine) = self.machines[index].take() {
            // What is still under way comes back to nobody.
            let taken_back = self.ring.cancel(index);
            ended(self.load, &*machine, end);
            self.alive -= 1;
            return taken_back;
        }
        Ok(())
    }
}
