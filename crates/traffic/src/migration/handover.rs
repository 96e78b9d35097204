//! Post-copy at the source, once the machine has resumed at its destination: when that was, and what its memory must
//! be there.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use wirecost_model::load::Migration;
use wirecost_sys::shared_memory::SharedMemory;

use super::guest::{Guest, Pattern};

/// Time that a machine may have written for beyond what has passed at the source: the destination has another clock.
const SLACK: Duration = Duration::from_secs(1);

/// What the source knows of a machine that has resumed at its destination.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// When the source heard that the machine runs at the destination.
    runs: OnceLock<Instant>,
    /// Pages that the machine waited for, all connections.
    fetched: AtomicU64,
    /// Number of writes when the destination stopped the machine: the memory at the source was brought to this state.
    /// `None`: it was not yet.
    replayed: Mutex<Option<u64>>,
}

impl Handover {
    /// Notes that the machine runs at the destination. Only the first call counts.
    pub(crate) fn set_runs(&self, now: Instant) {
        let _ = self.runs.set(now);
    }

    /// When the source heard that the machine runs at the destination.
    pub(crate) fn runs(&self) -> Option<Instant> {
        self.runs.get().copied()
    }

    /// Adds the pages of one connection that the machine waited for.
    pub(crate) fn add_fetched(&self, pages: u64) {
        self.fetched.fetch_add(pages, Ordering::Relaxed);
    }

    /// Pages that the machine waited for, all connections.
    pub(crate) fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Repeats in the memory here the writes that the machine made at the destination, up to number `writes`, once.
    /// Pages that it did not write to since are the same at both ends.
    ///
    /// # Errors
    /// `InvalidData`: the machine cannot have made so many writes, or its connections do not agree.
    pub(crate) fn replay(
        &self,
        writes: u64,
        guest: &Guest,
        memory: &SharedMemory,
        migration: &Migration,
        seed: u64,
    ) -> io::Result<()> {
        let mut replayed = self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = guest.writes();
        let since = guest.stopped_at().map_or(Duration::ZERO, |at| at.elapsed());
        let possible = migration.writes_per_second() * (since + SLACK).as_secs_f64();
        let agrees = replayed.is_none_or(|known| known == writes);
        if writes < before || (writes - before) as f64 > possible || !agrees {
            let words = format!(
                "the destination says that the machine has written {writes} times, of which {before} were here {:.3} s \
                 ago, at {:.0} a second",
                since.as_secs_f64(),
                migration.writes_per_second()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        if replayed.replace(writes).is_none() {
            let pattern = Pattern::of(migration, seed);
            for number in before..writes {
                pattern.write(memory, number);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn writes_are_made_again_once_and_no_more_than_the_machine_can_have_made() {
        let migration = Migration {
            memory: 1 << 20,
            dirty_rate: 32 << 20,
            ..Migration::USUAL
        };
        let memory = || Arc::new(SharedMemory::new(1 << 20).expect("memory"));
        let (here, there) = (memory(), memory());
        let guest = Guest::new();
        guest.start(&here, migration, 3, 0).expect("a thread");
        while guest.writes() < 20 {
            std::thread::yield_now();
        }
        let before = guest.halt();
        let pattern = Pattern::of(&migration, 3);
        for number in 0..before + 7 {
            pattern.write(&there, number);
        }
        let handover = Handover::default();
        let replay = |writes| handover.replay(writes, &guest, &here, &migration, 3);
        for wrong in [before - 1, before + 1_000_000] {
            let error = replay(wrong).expect_err("refused").to_string();
            assert!(error.contains(&format!("written {wrong} times")), "{error}");
        }
        replay(before + 7).expect("made");
        replay(before + 7).expect("made already");
        assert!(replay(before + 8).is_err(), "connections differ");
        for (one, other) in here.words().iter().zip(there.words()) {
            assert_eq!(one.load(Relaxed), other.load(Relaxed));
        }
    }
}
