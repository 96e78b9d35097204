//! When the next message is due: a schedule that does not depend on when the last one could be sent.

use std::time::Duration;

/// What a stalled sender may make up for, at most.
const LARGEST_DEBT: Duration = Duration::from_millis(10);

/// Messages at a steady rate.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// Nanoseconds between two messages.
    interval: f64,
    /// When the first one was due.
    origin: Option<u64>,
    /// Messages that were due and are accounted for.
    done: u64,
    /// Whether what a stall held back beyond [`LARGEST_DEBT`] is let go.
    forgives: bool,
}

impl Pace {
    /// So many messages a second. A stream forgives its stalls: a burst that makes up for them would be another
    /// load. A schedule of requests does not: each one's latency counts from when it was due.
    pub(crate) fn new(per_second: f64, forgives: bool) -> Self {
        Self {
            interval: 1e9 / per_second,
            origin: None,
            done: 0,
            forgives,
        }
    }

    /// How many messages are due at `now`.
    pub(crate) fn due(&mut self, now: u64) -> u64 {
        let origin = *self.origin.get_or_insert(now);
        let all = ((now - origin) as f64 / self.interval) as u64 + 1;
        let due = all.saturating_sub(self.done);
        let debt = (LARGEST_DEBT.as_nanos() as f64 / self.interval) as u64 + 1;
        if self.forgives && due > debt {
            self.done = all - debt;
            return debt;
        }
        due
    }

    /// When the first of those that are not accounted for is due.
    pub(crate) fn next(&self) -> u64 {
        self.origin.unwrap_or(0) + (self.done as f64 * self.interval).ceil() as u64
    }

    /// Accounts for messages that were sent.
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
            let mut pace = Pace::new(per_second, true);
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
        fn at_the_time_that_it_names_there_is_one_due(per_second in 1.0..1e7f64, sends in 1u64..1_000) {
            let mut pace = Pace::new(per_second, false);
            pace.due(5);
            pace.sent(sends);
            let next = pace.next();
            // Within the rounding of a nanosecond.
            prop_assert!(pace.due(next + 1) >= 1);
        }
    }

    #[test]
    fn a_stall_is_made_up_for_in_part_or_in_full() {
        let second = 1_000_000_000;
        let mut stream = Pace::new(1_000.0, true);
        assert_eq!(stream.due(0), 1);
        assert_eq!(stream.due(second), 11);
        let mut requests = Pace::new(1_000.0, false);
        assert_eq!(requests.due(0), 1);
        assert_eq!(requests.due(second), 1_001);
        assert_eq!(requests.next(), 0);
    }
}
