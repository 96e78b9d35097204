//! When requests of a rate are due: a Poisson process, as of many users who know nothing of each other.

use std::sync::Arc;

use crate::counter::Counter;
use crate::storage::content::mix;

/// The requests of one flow, one after another.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// Mean of the gaps, nanoseconds.
    mean: f64,
    state: u64,
    /// When the next request is due; `None`: the schedule has not begun.
    next: Option<f64>,
    told: Arc<Due>,
}

/// What a snapshot knows of a flow's [`Arrivals`]. Nanoseconds by [`crate::shared::Shared::now`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Due {
    /// Requests that the flow has taken.
    taken: Counter,
    /// When the next one is due; 0: the schedule has not begun.
    next: Counter,
}

impl Due {
    /// Requests due by `now`, with gaps of that mean. Exact where those due were taken; of the others only the first is
    /// known, and the mean stands for the rest.
    pub(crate) fn by(&self, now: u64, mean: f64) -> f64 {
        let (taken, next) = (self.taken.get() as f64, self.next.get());
        match now.checked_sub(next) {
            Some(late) if next > 0 => taken + 1.0 + late as f64 / mean,
            _ => taken,
        }
    }
}

impl Arrivals {
    /// So many requests per second on average. Every `seed` has gaps of its own.
    pub(crate) fn new(per_second: f64, seed: u64, told: Arc<Due>) -> Self {
        Self {
            mean: 1e9 / per_second,
            state: mix(seed),
            next: None,
            told,
        }
    }

    /// An exponentially distributed gap, nanoseconds, by inversion of a number above 0 and up to 1.
    fn gap(&mut self) -> f64 {
        self.state = self.state.wrapping_add(1);
        let uniform = ((mix(self.state) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln() * self.mean
    }

    fn set(&mut self, next: f64) {
        self.next = Some(next);
        self.told.next.publish((next as u64).max(1));
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

    /// Takes the next request if it is due at `now`, and says when it was.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        self.begin(now);
        let due = self.next();
        if due > now {
            return None;
        }
        let gap = self.gap();
        self.set(self.next.unwrap_or(0.0) + gap);
        self.told.taken.add(1);
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
            let told = Arc::new(Due::default());
            let mut arrivals = Arrivals::new(per_second, seed, Arc::clone(&told));
            let mean = 1e9 / per_second;
            prop_assert!(told.by(999, mean) < 0.5);
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
                prop_assert!((told.by(now - 1, mean) - f64::from(taken)).abs() < 0.5);
            }
            let late = told.by(arrivals.next() + (10.0 * mean) as u64, mean) - f64::from(taken);
            prop_assert!(late > 10.0, "{late}");
        }
    }
}
