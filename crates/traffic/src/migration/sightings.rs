//! What an observer has seen of the machines of a load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::moved::{MachineMove, SeenGap};

use crate::options::Options;

/// How long an answer is waited for after the move.
const LAST_ANSWER: Duration = Duration::from_millis(300);

/// Each machine, by number.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    machines: Box<[OnceLock<SeenGap>]>,
    /// Whether an observer asks them.
    observed: AtomicBool,
}

impl Sightings {
    /// Of a load; none where its machines are not watched.
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

    /// An observer asks them from now on.
    pub(crate) fn begin(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// A machine was seen at its destination.
    pub(crate) fn set(&self, machine: u32, gap: SeenGap) {
        if let Some(seen) = self.machines.get(machine as usize) {
            let _ = seen.set(gap);
        }
    }

    /// A move, with what was seen of it. The first answer of the destination may still be under way when the move is over.
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
