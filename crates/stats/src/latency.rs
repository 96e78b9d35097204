//! Latency percentiles from the rounds' histograms, merged and never averaged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::bootstrap::{quantile, resamples};
use crate::interval::{Interval, phi};

/// Number of resamples of the rounds.
const RESAMPLES: usize = 1000;

/// Rounds below which there is no interval: resamples of four rounds hold 35 different sets.
const LEAST_ROUNDS: usize = 5;

/// Values beyond a percentile below which it depends on a handful of requests.
const ENOUGH_BEYOND: f64 = 10.0;

/// Number of times each value was seen. Values are integers in the recorder's unit (nanoseconds, say) and resolution.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    counts: BTreeMap<u64, u64>,
}

impl Histogram {
    /// Counts `value` a further `count` times.
    pub fn add(&mut self, value: u64, count: u64) {
        if count > 0 {
            *self.counts.entry(value).or_default() += count;
        }
    }

    /// Total number of values counted.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (&value, &count) in &other.counts {
            self.add(value, count);
        }
    }

    /// The smallest value that at least a share of `p` (0 to 1) of the values do not exceed: the
    /// nearest-rank percentile, a value that was seen. `None` of an empty histogram.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let counts = self.counts.iter().map(|(&value, &count)| (value, count));
        nearest_rank(counts, self.count(), p)
    }
}

impl FromIterator<(u64, u64)> for Histogram {
    /// From pairs of a value and its count.
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(buckets: T) -> Self {
        let mut histogram = Self::default();
        for (value, count) in buckets {
            histogram.add(value, count);
        }
        histogram
    }
}

fn nearest_rank(counts: impl Iterator<Item = (u64, u64)>, total: u64, p: f64) -> Option<u64> {
    let rank = ((p * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut gone = 0;
    for (value, count) in counts {
        gone += count;
        if gone >= rank {
            return Some(value);
        }
    }
    None
}

/// A percentile of all rounds together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentile {
    /// The percentile as a share, 0 to 1.
    pub p: f64,
    /// Value of the percentile, in the histograms' unit.
    pub value: u64,
    /// The 95 % interval from resampled rounds; absent below five rounds with values.
    pub interval: Option<Interval>,
    /// Total number of values.
    pub count: u64,
    /// Whether fewer than ten values lie beyond the percentile: it then depends on a few requests.
    pub sparse: bool,
}

/// Percentiles of the rounds' merged histogram, with intervals from resampling whole rounds: values
/// within a round are not independent, rounds are.
///
/// The bootstrap's percentile interval is expanded for few rounds (Hesterberg, "What teachers should
/// know about the bootstrap", Am. Stat. 69 (2015) 371, section 4.4): its plain form is too narrow by
/// the factor between t and normal quantiles and that of `n` and `n - 1`.
pub fn percentiles(rounds: &[Histogram], wanted: &[f64], seed: u64) -> Vec<Percentile> {
    let pool = Pool::of(rounds.iter());
    let intervals = pool.resampled(&pool, seed, wanted, |value, _| value as f64);
    wanted
        .iter()
        .zip(intervals)
        .filter_map(|(&p, interval)| {
            let value = pool.percentile(&pool.once(), p)?;
            let count = pool.totals.iter().sum::<u64>();
            Some(Percentile {
                p,
                value,
                interval,
                count,
                sparse: (1.0 - p).min(p) * (count as f64) < ENOUGH_BEYOND,
            })
        })
        .collect()
}

/// Ratio of a percentile of `to` to that of `from`, with its 95 % interval. Rounds of both are
/// resampled together, as pairs; surplus rounds of either are left out. `None` where a side has no
/// value or `from`'s percentile is zero.
pub fn percentile_ratio(
    from: &[Histogram],
    to: &[Histogram],
    p: f64,
    seed: u64,
) -> Option<(f64, Option<Interval>)> {
    let both: Vec<_> = from
        .iter()
        .zip(to)
        .filter(|(a, b)| a.count() > 0 && b.count() > 0)
        .collect();
    let from = Pool::of(both.iter().map(|(a, _)| *a));
    let to = Pool::of(both.iter().map(|(_, b)| *b));
    let ratio = |to: u64, from: u64| to as f64 / from as f64;
    let value = ratio(
        to.percentile(&to.once(), p)?,
        from.percentile(&from.once(), p).filter(|&v| v > 0)?,
    );
    let interval = to.resampled(&from, seed, &[p], ratio).pop().flatten();
    Some((value, interval.filter(|i| i.high.is_finite())))
}

/// Counts of all rounds by value, so that a resample is a weighted sum of columns.
struct Pool {
    values: Vec<u64>,
    /// Counts by value, then by round.
    counts: Vec<Vec<u64>>,
    /// Total count by round.
    totals: Vec<u64>,
}

impl Pool {
    fn of<'a>(rounds: impl Iterator<Item = &'a Histogram>) -> Self {
        let rounds: Vec<&Histogram> = rounds.filter(|round| round.count() > 0).collect();
        let mut merged = Histogram::default();
        for round in &rounds {
            merged.merge(round);
        }
        let values: Vec<u64> = merged.counts.into_keys().collect();
        let column = |value: &u64| {
            let counts = rounds.iter();
            counts
                .map(|round| round.counts.get(value).copied().unwrap_or(0))
                .collect()
        };
        Self {
            counts: values.iter().map(column).collect(),
            totals: rounds.iter().map(|round| round.count()).collect(),
            values,
        }
    }

    /// Weights that take every round once.
    fn once(&self) -> Vec<u64> {
        vec![1; self.totals.len()]
    }

    /// The percentile with each round weighted by `weights`.
    fn percentile(&self, weights: &[u64], p: f64) -> Option<u64> {
        let sum = |counts: &[u64]| counts.iter().zip(weights).map(|(a, b)| a * b).sum::<u64>();
        let buckets = self.values.iter().zip(&self.counts);
        nearest_rank(
            buckets.map(|(&value, counts)| (value, sum(counts))),
            sum(&self.totals),
            p,
        )
    }

    /// Bootstrap intervals of `figure(percentile of self, percentile of other)` for each of
    /// `wanted`; `None` below five rounds.
    fn resampled(
        &self,
        other: &Self,
        seed: u64,
        wanted: &[f64],
        figure: impl Fn(u64, u64) -> f64,
    ) -> Vec<Option<Interval>> {
        let n = self.totals.len();
        if n < LEAST_ROUNDS {
            return vec![None; wanted.len()];
        }
        let weights: Vec<Vec<u64>> = resamples(n, RESAMPLES, seed)
            .map(|drawn| {
                let mut weights = vec![0; n];
                for round in drawn {
                    weights[round] += 1;
                }
                weights
            })
            .collect();
        let freedom = (n - 1) as f64;
        let tail = StudentsT::new(0.0, 1.0, freedom).map_or(0.025, |t| {
            phi(t.inverse_cdf(0.025) * (n as f64 / freedom).sqrt())
        });
        wanted
            .iter()
            .map(|&p| {
                let mut figures: Vec<f64> = weights
                    .iter()
                    .filter_map(|weights| {
                        Some(figure(
                            self.percentile(weights, p)?,
                            other.percentile(weights, p)?,
                        ))
                    })
                    .collect();
                figures.sort_unstable_by(f64::total_cmp);
                (!figures.is_empty()).then(|| Interval {
                    low: quantile(&figures, tail),
                    high: quantile(&figures, 1.0 - tail),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        values.iter().map(|&value| (value, 1)).collect()
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let one = histogram(&[10, 20, 30, 40]);
        for (p, value) in [(0.0, 10), (0.25, 10), (0.5, 20), (0.51, 30), (1.0, 40)] {
            assert_eq!(one.percentile(p), Some(value), "{p}");
        }
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn merged_percentiles_are_not_averages() {
        let rounds = [histogram(&[1; 99]), histogram(&[100; 1])];
        let found = percentiles(&rounds, &[0.99, 0.999], 1);
        assert_eq!((found[0].value, found[1].value), (1, 100));
        assert!(found[0].sparse && found[0].interval.is_none());
    }

    #[test]
    fn a_percentile_twice_as_late_has_a_ratio_of_two() {
        let rounds: Vec<Histogram> = (0..8u64)
            .map(|r| (1000..2000).map(|v| (v + r, 1)).collect())
            .collect();
        let doubled: Vec<Histogram> = (0..8u64)
            .map(|r| (1000..2000).map(|v| ((v + r) * 2, 1)).collect())
            .collect();
        let (ratio, interval) = percentile_ratio(&rounds, &doubled, 0.99, 1).expect("values");
        assert!((ratio - 2.0).abs() < 1e-12);
        let interval = interval.expect("rounds enough");
        assert!(interval.holds(2.0) && interval.high < 2.01);
        assert_eq!(percentile_ratio(&rounds, &[], 0.5, 1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_order_of_rounds_does_not_move_a_percentile_and_higher_ones_are_no_lower(
            rounds in proptest::collection::vec(proptest::collection::vec(1u64..500, 1..40), 5..9),
            seed: u64,
        ) {
            let rounds: Vec<Histogram> = rounds.iter().map(|r| histogram(r)).collect();
            let mut turned = rounds.clone();
            turned.reverse();
            let (a, b) = (percentiles(&rounds, &[0.5, 0.99], seed), percentiles(&turned, &[0.5, 0.99], seed));
            prop_assert_eq!(a[0].value, b[0].value);
            prop_assert!(a[0].value <= a[1].value);
            let interval = a[0].interval.expect("rounds");
            prop_assert!(interval.low <= interval.high);
        }
    }
}
