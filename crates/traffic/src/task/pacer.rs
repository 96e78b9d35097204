//! When messages are due at a rate, however late earlier ones were sent.

use std::time::Duration;

/// The longest stall that a forgiving schedule makes up for.
const LARGEST_DEBT: Duration = Duration::from_millis(10);

/// A schedule of messages at a constant rate.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    /// Nanoseconds between two messages.
    interval: f64,
    /// Nanoseconds from the start to the first message.
    phase: f64,
    /// When the first message was due, nanoseconds; `None` before the schedule has begun.
    origin: Option<u64>,
    /// Messages sent or skipped.
    done: u64,
    /// Whether messages held up by more than [`LARGEST_DEBT`] are skipped.
    forgives: bool,
    /// Messages sent together.
    burst: u64,
}

impl Pacer {
    /// A schedule of `per_second` messages per second. `forgives`: messages held up for more than [`LARGEST_DEBT`]
    /// are skipped, since a burst that makes up for them would be another load.
    ///
    /// Flow `index` of `all` starts at its share of an interval: flows that start together send bursts, which
    /// overflow a receiver's buffer.
    pub(crate) fn new(per_second: f64, forgives: bool, index: u32, all: u32) -> Self {
        Self::in_bursts(per_second, 1, forgives, index, all)
    }

    /// As [`Self::new`], in bursts of `burst` messages: a burst is due with its last message.
    pub(crate) fn in_bursts(
        per_second: f64,
        burst: u64,
        forgives: bool,
        index: u32,
        all: u32,
    ) -> Self {
        let interval = 1e9 / per_second;
        let burst = burst.max(1);
        Self {
            interval,
            phase: interval * burst as f64 * f64::from(index) / f64::from(all.max(1)),
            origin: None,
            done: 0,
            forgives,
            burst,
        }
    }

    /// Starts the schedule at `start`, if it has not started.
    pub(crate) fn begin(&mut self, start: u64) {
        self.origin.get_or_insert(start + self.phase as u64);
    }

    /// Messages due at `now`, in complete bursts.
    pub(crate) fn due(&mut self, now: u64) -> u64 {
        let due = self.due_one_by_one(now);
        due - due % self.burst
    }

    fn due_one_by_one(&mut self, now: u64) -> u64 {
        self.begin(now);
        let origin = self.origin.unwrap_or(now);
        let Some(since) = now.checked_sub(origin) else {
            return 0;
        };
        let all = (since as f64 / self.interval) as u64 + 1;
        let due = all.saturating_sub(self.done);
        let debt = (LARGEST_DEBT.as_nanos() as f64 / self.interval) as u64 + 1;
        if self.forgives && due > debt {
            self.done = all - debt;
            return debt;
        }
        due
    }

    /// When the next burst is due.
    pub(crate) fn next(&self) -> u64 {
        let last = self.done + self.burst - 1;
        self.origin.unwrap_or(0) + (last as f64 * self.interval).ceil() as u64
    }

    /// Notes messages as sent.
    pub(crate) fn sent(&mut self, count: u64) {
        self.done += count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whoever_sends_what_is_due_keeps_the_rate(per_second in 1.0..1e7f64, steps in prop::collection::vec(1u64..5_000_000, 1..100)) {
            let mut pace = Pacer::new(per_second, true, 0, 1);
            let (mut now, mut sent) = (1_000, 0);
            for step in steps {
                let due = pace.due(now);
                pace.sent(due);
                sent += due;
                prop_assert_eq!(pace.due(now), 0);
                prop_assert!(pace.next() > now);
                now += step;
            }
            let fair = (now - 1_000) as f64 / 1e9 * per_second + 1.0;
            prop_assert!(sent as f64 <= fair + 1e-6 * fair);
        }

        #[test]
        fn bursts_leave_whole_when_their_last_message_is_due(
            per_second in 1e3..1e6f64, burst in 1u64..200, steps in prop::collection::vec(1u64..5_000_000, 1..100),
        ) {
            // No more than a stalled sender may make up for.
            let burst = burst.min((per_second / 1_000.0) as u64);
            let mut pace = Pacer::in_bursts(per_second, burst, true, 0, 1);
            let (mut now, mut sent) = (1_000, 0);
            pace.begin(now);
            for step in steps {
                let due = pace.due(now);
                prop_assert_eq!(due % burst, 0);
                pace.sent(due);
                sent += due;
                let next = pace.next();
                prop_assert!(next > now);
                prop_assert_eq!(pace.clone().due(next + 1), burst);
                now += step;
            }
            let fair = (now - 1_000) as f64 / 1e9 * per_second + 1.0;
            prop_assert!(sent as f64 <= fair + 1e-6 * fair);
        }

        #[test]
        fn at_the_time_that_it_names_there_is_one_due(per_second in 1.0..1e7f64, sends in 1u64..1_000) {
            let mut pace = Pacer::new(per_second, false, 0, 1);
            pace.due(5);
            pace.sent(sends);
            let next = pace.next();
            // Within the rounding of a nanosecond.
            prop_assert!(pace.due(next + 1) >= 1);
        }
    }

    #[test]
    fn flows_take_turns_within_an_interval() {
        let due_at = |index| {
            let mut pace = Pacer::new(1.0, false, index, 4);
            let at_start = pace.due(7);
            assert_eq!(at_start, u64::from(index == 0));
            pace.next() - 7
        };
        let quarter = 250_000_000;
        assert_eq!(
            [0, 1, 2, 3].map(due_at),
            [0, quarter, 2 * quarter, 3 * quarter]
        );
    }

    #[test]
    fn a_stall_is_made_up_for_in_part_or_in_full() {
        let second = 1_000_000_000;
        let mut forgiving = Pacer::new(1_000.0, true, 0, 1);
        assert_eq!(forgiving.due(0), 1);
        assert_eq!(forgiving.due(second), 11);
        let mut other = Pacer::new(1_000.0, false, 0, 1);
        assert_eq!(other.due(0), 1);
        assert_eq!(other.due(second), 1_001);
        assert_eq!(other.next(), 0);
    }
}
