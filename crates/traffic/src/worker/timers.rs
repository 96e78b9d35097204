//! The time at which each task of a thread is to be polled at the latest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Deadlines of tasks, by index; nanoseconds on the clock of [`crate::shared::Shared::now`].
pub(super) struct Timers {
    entries: BinaryHeap<Reverse<(u64, usize)>>,
    tasks: Box<[Timer]>,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    /// When the task is to be polled at the latest; `None`: no deadline.
    due: Option<u64>,
    /// The task's earliest entry in the heap. Most polls move `due` to a later time, and an entry that is too early is
    /// cheaper than a new one for each transaction.
    entry: Option<u64>,
}

impl Timers {
    /// `count` tasks without a deadline.
    pub(super) fn new(count: usize) -> Self {
        Self {
            entries: BinaryHeap::with_capacity(2 * count),
            tasks: vec![Timer::default(); count].into(),
        }
    }

    /// Sets the deadline of a task; `None`: it has none.
    pub(super) fn set(&mut self, index: usize, due: Option<u64>) {
        let timer = &mut self.tasks[index];
        timer.due = due;
        if let Some(due) = due
            // One entry is enough as long as it is not later than `due`.
            && timer.entry.is_none_or(|entry| due < entry)
        {
            timer.entry = Some(due);
            self.entries.push(Reverse((due, index)));
        }
    }

    /// Time until the earliest entry in the heap, at or before the next deadline; `None`: no entry.
    pub(super) fn left(&self, now: u64) -> Option<Duration> {
        let Reverse((due, _)) = self.entries.peek()?;
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }

    /// Takes the next task that is due at `now`.
    pub(super) fn next_due(&mut self, now: u64) -> Option<usize> {
        while let Some(Reverse((entry, index))) = self.entries.peek().copied() {
            if entry > now {
                return None;
            }
            self.entries.pop();
            let timer = &mut self.tasks[index];
            if timer.entry == Some(entry) {
                timer.entry = None;
            }
            match timer.due {
                Some(due) if due <= now => return Some(index),
                Some(due) if timer.entry.is_none() => {
                    timer.entry = Some(due);
                    self.entries.push(Reverse((due, index)));
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_due_is_told_once_and_whoever_moved_back_when_that_is_due() {
        let mut timers = Timers::new(3);
        assert_eq!((timers.left(0), timers.next_due(100)), (None, None));
        timers.set(0, Some(50));
        timers.set(1, Some(20));
        timers.set(1, Some(80));
        timers.set(2, Some(60));
        timers.set(2, None);
        assert_eq!(timers.left(10), Some(Duration::from_nanos(10)));
        assert_eq!(timers.next_due(30), None);
        assert_eq!(timers.next_due(50), Some(0));
        assert_eq!(timers.next_due(79), None);
        assert_eq!(timers.left(79), Some(Duration::from_nanos(1)));
        assert_eq!(timers.next_due(80), Some(1));
        assert_eq!(timers.next_due(80), None);
        timers.set(2, Some(90));
        timers.set(2, Some(85));
        assert_eq!(timers.next_due(85), Some(2));
    }
}
