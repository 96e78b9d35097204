//! What an observer has seen of the machines of a load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::machine_move::{MachineMove, ObservedGap};

use crate::options::Options;

/// How long the destination's first answer is waited for after the move: a busy machine may keep the observer from a core
/// for that long. Only where no answer comes it is waited for to its end.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// The gap of each machine, by number.
#[derive(Debug, Default)]
pub(crate) struct MachineGaps {
    machines: Box<[MachineGap]>,
    /// Whether an observer asks the machines.
    observed: AtomicBool,
}

/// What has been seen of a machine.
#[derive(Debug, Default)]
struct MachineGap {
    gap: OnceLock<ObservedGap>,
    /// When the machine's move was first known to be over.
    over: OnceLock<Instant>,
}

impl MachineGap {
    /// Until when the destination's first answer is waited for, where the move is over at `now`.
    fn deadline(&self, now: Instant) -> Instant {
        *self.over.get_or_init(|| now) + LAST_ANSWER
    }
}

impl MachineGaps {
    /// Nothing seen yet of the machines of a load; no machines where the load does not watch them.
    pub(crate) fn of_load(options: &Options) -> Self {
        let watched = options.load.migration.is_some_and(|one| one.watch);
        let machines = if watched { options.load.streams } else { 0 };
        Self {
            machines: (0..machines).map(|_| MachineGap::default()).collect(),
            observed: AtomicBool::new(false),
        }
    }

    /// How many machines are watched.
    pub(crate) fn machines(&self) -> usize {
        self.machines.len()
    }

    /// Notes that an observer asks the machines from now on.
    pub(crate) fn begin(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// Records the gap of a machine that was seen at its destination.
    pub(crate) fn set(&self, machine: u32, gap: ObservedGap) {
        if let Some(seen) = self.machines.get(machine as usize) {
            let _ = seen.gap.set(gap);
        }
    }

    /// Adds to moves that are over what was seen of them. Waits up to [`LAST_ANSWER`], for all of them together and
    /// once only: the first answer of a destination may still be under way when the move is over.
    pub(crate) fn complete(&self, mut moves: Vec<MachineMove>) -> Vec<MachineMove> {
        let now = Instant::now();
        let observed = self.observed.load(Ordering::Relaxed);
        for moved in &mut moves {
            let Some(gap) = self.machines.get(moved.machine as usize) else {
                continue;
            };
            if observed && moved.outcome.is_there() {
                let deadline = gap.deadline(now);
                while gap.gap.get().is_none() && Instant::now() < deadline {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            moved.seen = gap.gap.get().copied();
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_machine_is_waited_for_once_however_often_it_is_asked_for() {
        let (gap, now) = (MachineGap::default(), Instant::now());
        for later in [0, 1, 60] {
            let asked = now + Duration::from_secs(later);
            assert_eq!(gap.deadline(asked), now + LAST_ANSWER);
        }
    }
}
