//! The thread that writes to a machine's memory, as the programs of a virtual machine do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use wirecost_model::load::{DirtyOrder, Migration};
use wirecost_sys::shared_memory::SharedMemory;

use super::pages::PAGE;
use crate::storage::content::mix;

/// Interval at which the thread makes the writes that are due.
const SLICE: Duration = Duration::from_millis(1);
/// Longest delay of the thread that is made up for.
const LATEST: Duration = Duration::from_millis(10);
/// Writes between two checks whether the thread is to stop.
const LOOK_EVERY: u64 = 32;

const RUN: u8 = 0;
const STOP: u8 = 1;
const END: u8 = 2;

/// What the thread and its owner share.
#[derive(Debug)]
struct State {
    /// [`RUN`], [`STOP`] or [`END`].
    order: AtomicU8,
    /// Percent by which the thread writes less often than the dirty rate says.
    throttle: AtomicU8,
    /// Number of writes, each to one page.
    writes: AtomicU64,
    /// When the thread stopped, nanoseconds since `epoch`; 0: it has not.
    stopped_at: AtomicU64,
    epoch: Instant,
}

/// A machine's thread. It ends when dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    state: Arc<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Guest {
    /// A guest whose thread has not been started.
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(State {
                order: AtomicU8::new(RUN),
                throttle: AtomicU8::new(0),
                writes: AtomicU64::new(0),
                stopped_at: AtomicU64::new(0),
                epoch: Instant::now(),
            }),
            thread: Mutex::new(None),
        }
    }

    /// Starts the thread, also once it has stopped. It continues with write number `after`.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn start(
        &self,
        memory: &Arc<SharedMemory>,
        migration: Migration,
        seed: u64,
        after: u64,
    ) -> io::Result<()> {
        if let Some(before) = self.handle().take() {
            // The thread was told to stop before.
            let _ = before.join();
        }
        self.state.writes.store(after, Ordering::Relaxed);
        self.state.stopped_at.store(0, Ordering::Release);
        self.state.order.store(RUN, Ordering::Release);
        let (state, memory) = (Arc::clone(&self.state), Arc::clone(memory));
        let thread = thread::Builder::new()
            .name("guest".to_owned())
            .stack_size(128 << 10)
            .spawn(move || run(&state, &memory, &migration, seed, after))?;
        *self.handle() = Some(thread);
        Ok(())
    }

    fn handle(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, order: u8) {
        self.state.order.store(order, Ordering::Release);
        if let Some(thread) = self.handle().as_ref().map(JoinHandle::thread) {
            Thread::unpark(thread);
        }
    }

    /// Tells the thread to stop writing; [`Self::stopped_at`] says when it has.
    pub(crate) fn stop(&self) {
        self.command(STOP);
    }

    /// When the thread stopped, after its last write; `None`: it has not.
    pub(crate) fn stopped_at(&self) -> Option<Instant> {
        let ns = self.state.stopped_at.load(Ordering::Acquire);
        (ns > 0).then(|| self.state.epoch + Duration::from_nanos(ns))
    }

    /// Stops the thread, waits for its end, and returns its number of writes. The thread must not be waiting for a
    /// page that never comes.
    pub(crate) fn halt(&self) -> u64 {
        self.stop();
        if let Some(thread) = self.handle().take() {
            let _ = thread.join();
        }
        self.writes()
    }

    /// Reduces the rate of writes by `percent`, 0..=100.
    pub(crate) fn throttle(&self, percent: u8) {
        self.state.throttle.store(percent, Ordering::Relaxed);
    }

    /// Number of writes so far, each to one page.
    pub(crate) fn writes(&self) -> u64 {
        self.state.writes.load(Ordering::Relaxed)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.command(END);
        if let Some(thread) = self.handle().take() {
            let _ = thread.join();
        }
    }
}

fn run(state: &State, memory: &SharedMemory, migration: &Migration, seed: u64, after: u64) {
    let per_second = migration.writes_per_second();
    let (mut due, mut last) = (0.0, Instant::now());
    let pattern = Pattern::of(migration, seed);
    let mut done = after;
    while state.order.load(Ordering::Acquire) == RUN {
        let now = Instant::now();
        let share = 1.0 - f64::from(state.throttle.load(Ordering::Relaxed)) / 100.0;
        due += per_second * share * (now - last).min(LATEST).as_secs_f64();
        last = now;
        for number in 0..due as u64 {
            if number % LOOK_EVERY == 0 && state.order.load(Ordering::Relaxed) != RUN {
                break;
            }
            pattern.write(memory, done);
            done += 1;
        }
        state.writes.store(done, Ordering::Relaxed);
        due = due.fract();
        thread::park_timeout((last + SLICE).saturating_duration_since(Instant::now()));
    }
    let ns = state.epoch.elapsed().as_nanos() as u64;
    state.stopped_at.store(ns.max(1), Ordering::Release);
}

/// Where and what a machine writes: both follow from the number of the write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    order: DirtyOrder,
    /// Pages that are written to, from the first page on.
    pages: u64,
    seed: u64,
}

impl Pattern {
    pub(crate) fn of(migration: &Migration, seed: u64) -> Self {
        Self {
            order: migration.dirty_order,
            pages: migration.written(),
            seed,
        }
    }

    /// Makes write `number`, counted from 0. Returns the index of the word.
    pub(crate) fn write(&self, memory: &SharedMemory, number: u64) -> usize {
        let page = match self.order {
            DirtyOrder::Sequential => number % self.pages,
            DirtyOrder::Random => mix(self.seed.wrapping_add(number)) % self.pages,
        };
        let word = page as usize * (PAGE / 8) + (number % (PAGE as u64 / 8)) as usize;
        // Never zero: a page of the working set must not become a zero page, which is sent without content.
        memory.words()[word].store((number + 1) << 1 | 1, Ordering::Relaxed);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_where_and_as_often_as_it_is_told_and_never_after_it_stopped() {
        for order in [DirtyOrder::Sequential, DirtyOrder::Random] {
            let migration = Migration {
                memory: 1 << 20,
                dirty_rate: 32 << 20,
                working_set: 50,
                dirty_order: order,
                ..Migration::USUAL
            };
            let memory = Arc::new(SharedMemory::new(1 << 20).expect("memory"));
            let guest = Guest::new();
            guest.start(&memory, migration, 3, 0).expect("a thread");
            while guest.writes() < 50 {
                thread::yield_now();
            }
            guest.stop();
            while guest.stopped_at().is_none() {
                thread::yield_now();
            }
            let writes = guest.writes();
            let sum = |words: &[AtomicU64]| {
                let words = words.iter();
                words.fold(0u64, |sum, word| {
                    sum.wrapping_add(word.load(Ordering::Relaxed))
                })
            };
            let half = memory.words().len() / 2;
            let before = sum(&memory.words()[..half]);
            assert!(before > 0);
            thread::sleep(Duration::from_millis(5));
            assert_eq!(sum(&memory.words()[..half]), before);
            assert_eq!(guest.writes(), writes);
            assert_eq!(sum(&memory.words()[half..]), 0, "beyond its working set");
        }
    }
}
