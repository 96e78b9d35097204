//! When requests of a rate are due: a Poisson process, as independent users make it.

use std::sync::Arc;

use crate::counter::Counter;
use crate::storage::content::mix;

/// The arrival schedule of one flow.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// Mean gap between two requests, nanoseconds.
    mean: f64,
    /// State of the random numbers for the gaps.
    state: u64,
    /// When the next request is due, nanoseconds by [`crate::shared::Shared::now`]; `None` before the schedule has
    /// begun.
    next: Option<f64>,
    /// The part of the schedule that snapshots read.
    counters: Arc<ArrivalCounters>,
}

/// The part of a flow's [`Arrivals`] that snapshots read. Times are nanoseconds by [`crate::shared::Shared::now`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ArrivalCounters {
    /// Requests that the flow has taken from the schedule.
    taken: Counter,
    /// When the next request is due; 0 before the schedule has begun.
    next: Counter,
}

impl ArrivalCounters {
    /// Requests due by `now`, at a mean gap of `mean` nanoseconds. Exact while the flow takes requests as they become
    /// due; of a backlog only the first due time is known, and the mean gap stands for the others.
    pub(crate) fn by(&self, now: u64, mean: f64) -> f64 {
        let (taken, next) = (self.taken.get() as f64, self.next.get());
        match now.checked_sub(next) {
            Some(late) if next > 0 => taken + 1.0 + late as f64 / mean,
            _ => taken,
        }
    }
}

impl Arrivals {
    /// A schedule of `per_second` requests per second on average, published in `counters`. Each `seed` has gaps of its
    /// own.
    pub(crate) fn new(per_second: f64, seed: u64, counters: Arc<ArrivalCounters>) -> Self {
        Self {
            mean: 1e9 / per_second,
            state: mix(seed),
            next: None,
            counters,
        }
    }

    /// The next exponentially distributed gap, nanoseconds: inverse transform of a uniform number in (0, 1].
    fn gap(&mut self) -> f64 {
        self.state = self.state.wrapping_add(1);
        let uniform = ((mix(self.state) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln() * self.mean
    }

    fn set(&mut self, next: f64) {
        self.next = Some(next);
        self.counters.next.publish((next as u64).max(1));
    }

    /// Starts the schedule at `start`, if it has not started.
    pub(crate) fn begin(&mut self, start: u64) {
        if self.next.is_none() {
            let gap = self.gap();
            self.set(start as f64 + gap);
        }
    }

    /// When the next request is due; 0 before the schedule has begun.
    pub(crate) fn next(&self) -> u64 {
        self.next.unwrap_or(0.0).ceil() as u64
    }

    /// Takes the next request if it is due at `now`, and returns when it became due.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        self.begin(now);
        let due = self.next();
        if due > now {
            return None;
        }
        let gap = self.gap();
        self.set(self.next.unwrap_or(0.0) + gap);
        self.counters.taken.add(1);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gaps(seed: u64, per_second: f64, count: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(per_second, seed, Arc::default());
        (0..count).map(|_| arrivals.gap()).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (mean, squares.sum::<f64>() / count)
    }

    #[test]
    fn gaps_are_exponential_and_know_nothing_of_each_other() {
        // Of 200,000 the mean is off by 0.22 % (one standard deviation), the variance by 0.63 %.
        let gaps = gaps(7, 2_000.0, 200_000);
        let (mean, variance) = moments(&gaps);
        assert!((mean / 500_000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / mean.powi(2) - 1.0).abs() < 0.03, "{variance}");
        for times in [0.1, 1.0, 3.0] {
            let longer = gaps.iter().filter(|gap| **gap > times * 500_000.0).count();
            let share = longer as f64 / gaps.len() as f64;
            assert!((share - f64::exp(-times)).abs() < 0.005, "{times}: {share}");
        }
        let products = gaps.windows(2).map(|two| (two[0] - mean) * (two[1] - mean));
        let correlation = products.sum::<f64>() / gaps.len() as f64 / variance;
        assert!(correlation.abs() < 0.01, "{correlation}");
    }

    #[test]
    fn counts_within_a_time_vary_as_much_as_they_are() {
        let mut arrivals = Arrivals::new(1e6, 3, Arc::default());
        arrivals.begin(1_000);
        let counts: Vec<f64> = (1..=5_000)
            .map(|step| {
                let end = 1_000 + step * 20_000;
                std::iter::from_fn(|| arrivals.take(end)).count() as f64
            })
            .collect();
        let (mean, variance) = moments(&counts);
        assert!((mean - 20.0).abs() < 0.3, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn a_seed_has_gaps_of_its_own_and_the_same_again() {
        assert_eq!(gaps(7, 10.0, 100), gaps(7, 10.0, 100));
        assert_ne!(gaps(7, 10.0, 100), gaps(8, 10.0, 100));
    }

    proptest! {
        #[test]
        fn a_flow_that_takes_what_is_due_has_no_backlog_and_one_that_stops_has_one(
            per_second in 1.0..1e7f64, seed: u64, steps in prop::collection::vec(1u64..1_000_000, 1..50),
        ) {
            let counters = Arc::new(ArrivalCounters::default());
            let mut arrivals = Arrivals::new(per_second, seed, Arc::clone(&counters));
            let mean = 1e9 / per_second;
            prop_assert!(counters.by(999, mean) < 0.5);
            let (mut now, mut taken, mut last) = (1_000, 0, 0);
            arrivals.begin(now);
            for step in steps {
                now += step;
                while let Some(due) = arrivals.take(now) {
                    prop_assert!(last <= due && due <= now);
                    (last, taken) = (due, taken + 1);
                }
                prop_assert!(arrivals.next() > now);
                // Within the rounding of a nanosecond.
                prop_assert!((counters.by(now - 1, mean) - f64::from(taken)).abs() < 0.5);
            }
            let late = counters.by(arrivals.next() + (10.0 * mean) as u64, mean) - f64::from(taken);
            prop_assert!(late > 10.0, "{late}");
        }
    }
}
