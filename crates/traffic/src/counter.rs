//! Totals that one thread adds up and others read.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A counter with one writer and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Stores a new total. Only the counter's own thread may call it.
    pub(crate) fn publish(&self, total: u64) {
        self.0.store(total, Relaxed);
    }

    /// Adds to the total. Only the counter's own thread may call it: it is a load and a store.
    pub(crate) fn add(&self, more: u64) {
        self.publish(self.get() + more);
    }

    /// Adds to the total atomically, for counters with several writers.
    pub(crate) fn add_shared(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// The current total.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
