//! What an observer has seen of the machines of a load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::moved::{MachineMove, SeenGap};

use crate::options::Options;

/// How long the destination's first answer is waited for after the move.
const LAST_ANSWER: Duration = Duration::from_millis(300);

/// The gap of each machine, by number.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    machines: Box<[OnceLock<SeenGap>]>,
    /// Whether an observer asks the machines.
    observed: AtomicBool,
}

impl Sightings {
    /// Nothing seen yet of the machines of a load; no machines where the load does not watch them.
    pub(crate) fn of_load(options: &Options) -> Self {
        let watched = options.load.migration.is_some_and(|one| one.watch);
        let machines = if watched { options.load.streams } else { 0 };
        Self {
            machines: (0..machines).map(|_| OnceLock::new()).collect(),
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
    pub(crate) fn set(&self, machine: u32, gap: SeenGap) {
        if let Some(seen) = self.machines.get(machine as usize) {
            let _ = seen.set(gap);
        }
    }

    /// Adds to a move what was seen of it. Waits up to [`LAST_ANSWER`]: the first answer of the destination may still
    /// be under way when the move is over.
    pub(crate) fn complete(&self, moved: MachineMove) -> MachineMove {
        let Some(seen) = self.machines.get(moved.machine as usize) else {
            return moved;
        };
        if self.observed.load(Ordering::Relaxed) && moved.outcome.is_there() {
            let deadline = Instant::now() + LAST_ANSWER;
            while seen.get().is_none() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
        MachineMove {
            seen: seen.get().copied(),
            ..moved
        }
    }
}
