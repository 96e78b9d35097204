//! Hodges and Lehmann's estimates with the intervals of the exact rank tests: "Estimates of
//! location based on rank tests", Ann. Math. Statist. 34 (1963) 598.

use serde::Serialize;

use crate::exact::{doubled_midranks, droppable, rank_sum, signed_rank, two_sided};
use crate::interval::{Interval, phi_inverse};

/// Number of pairs, and of values in both samples together, above which the normal approximation of
/// the rank distribution replaces the exact one.
const EXACT_PAIRS: usize = 200;
const EXACT_SAMPLES: usize = 80;

/// A location estimate and the interval of the rank test that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LocationEstimate {
    /// The median of the pairwise averages, or of the pairwise differences.
    pub estimate: f64,
    /// Absent where there are too few values for any interval at that level.
    pub interval: Option<Interval>,
}

/// Median of the Walsh averages of `values`, with the interval of the signed-rank test at
/// `1 - alpha` or better: it assumes symmetry about the centre, and no normality.
pub fn hodges_lehmann(values: &[f64], alpha: f64) -> Option<LocationEstimate> {
    let n = values.len();
    let drop = if n <= EXACT_PAIRS {
        droppable(&signed_rank(n), alpha / 2.0)
    } else {
        let n = n as f64;
        let (mean, variance) = (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        (mean + phi_inverse(alpha / 2.0) * variance.sqrt()).floor() as usize
    };
    centre(&Walsh(sorted(values)), drop)
}

/// Median of the differences `to - from`, with the interval of the rank-sum test at `1 - alpha` or
/// better: it assumes that the two differ by a shift.
pub fn shift(from: &[f64], to: &[f64], alpha: f64) -> Option<LocationEstimate> {
    let (n, m) = (from.len(), to.len());
    let drop = if n + m <= EXACT_SAMPLES {
        droppable(&rank_sums(&(1..=n + m).collect::<Vec<_>>(), n), alpha / 2.0)
    } else {
        let (n, m) = (n as f64, m as f64);
        let sd = (n * m * (n + m + 1.0) / 12.0).sqrt();
        (n * m / 2.0 + phi_inverse(alpha / 2.0) * sd).floor() as usize
    };
    let differences = Differences {
        from: sorted(from),
        to: sorted(to),
    };
    centre(&differences, drop)
}

/// Two-sided p of the rank-sum test of Wilcoxon, Mann and Whitney that the two do not differ.
///
/// Exact, ties included (the permutation distribution of the midranks), up to 80 values; beyond,
/// the normal approximation with the variance corrected for ties. `None` where one is empty.
pub fn mann_whitney(from: &[f64], to: &[f64]) -> Option<f64> {
    let n = from.len();
    if n == 0 || to.is_empty() {
        return None;
    }
    let pooled = [from, to].concat();
    let ranks = doubled_midranks(&pooled);
    let sum: usize = ranks[..n].iter().sum();
    if pooled.len() <= EXACT_SAMPLES {
        let least = least_sum(&ranks, n);
        return Some(two_sided(&rank_sums(&ranks, n), sum - least));
    }
    let (size, n, m) = (pooled.len() as f64, n as f64, to.len() as f64);
    let mean = n * (size + 1.0);
    let spread: f64 = ranks
        .iter()
        .map(|&rank| (rank as f64 - (size + 1.0)).powi(2))
        .sum();
    let sd = (n * m / (size * (size - 1.0)) * spread).sqrt();
    let z = ((sum as f64 - mean).abs() - 1.0).max(0.0) / sd;
    Some(if sd > 0.0 {
        2.0 * crate::interval::phi_upper(z)
    } else {
        1.0
    })
}

fn least_sum(ranks: &[usize], take: usize) -> usize {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted[..take].iter().sum()
}

/// Distribution of the sum of `take` ranks, indexed from its smallest possible value.
fn rank_sums(ranks: &[usize], take: usize) -> Vec<f64> {
    let mut sums = rank_sum(ranks, take);
    sums.drain(..least_sum(ranks, take));
    sums
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Values derived from every pair of values, counted without listing them: the averages of 100,000
/// rounds are 5 thousand million.
trait OfPairs {
    /// Number of derived values.
    fn count(&self) -> usize;
    /// The smallest and the largest derived value. Panics without one.
    fn ends(&self) -> (f64, f64);
    /// Number of derived values that are at most `most`.
    fn up_to(&self, most: f64) -> usize;
}

/// Walsh averages of ascending values: of each value with itself and every later one.
struct Walsh(Vec<f64>);

impl OfPairs for Walsh {
    fn count(&self) -> usize {
        self.0.len() * (self.0.len() + 1) / 2
    }

    fn ends(&self) -> (f64, f64) {
        (self.0[0], self.0[self.0.len() - 1])
    }

    fn up_to(&self, most: f64) -> usize {
        let (mut count, mut end) = (0, self.0.len());
        for (i, a) in self.0.iter().enumerate() {
            while end > i && f64::midpoint(*a, self.0[end - 1]) > most {
                end -= 1;
            }
            if end <= i {
                break;
            }
            count += end - i;
        }
        count
    }
}

/// The differences `to - from`; both vectors are ascending.
struct Differences {
    from: Vec<f64>,
    to: Vec<f64>,
}

impl OfPairs for Differences {
    fn count(&self) -> usize {
        self.from.len() * self.to.len()
    }

    fn ends(&self) -> (f64, f64) {
        let (from, to) = (&self.from, &self.to);
        (to[0] - from[from.len() - 1], to[to.len() - 1] - from[0])
    }

    fn up_to(&self, most: f64) -> usize {
        let (mut count, mut begin) = (0, 0);
        for b in &self.to {
            while begin < self.from.len() && b - self.from[begin] > most {
                begin += 1;
            }
            count += self.from.len() - begin;
        }
        count
    }
}

/// The value with `before` values before it in ascending order, by bisection over the bit patterns
/// of floats: at most 64 calls of [`OfPairs::up_to`].
fn nth(of: &impl OfPairs, before: usize) -> f64 {
    let (low, high) = of.ends();
    let (mut low, mut high) = (rank(low), rank(high));
    while low < high {
        let middle = low + (high - low) / 2;
        if of.up_to(ranked(middle)) > before {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    ranked(low)
}

/// Maps a float to an integer of the same order; both zeros map to one.
fn rank(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn ranked(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 {
        rank ^ 1 << 63
    } else {
        !rank
    })
}

fn centre(values: &impl OfPairs, drop: usize) -> Option<LocationEstimate> {
    let n = values.count();
    let last = n.checked_sub(1)?;
    let middle = nth(values, last / 2);
    Some(LocationEstimate {
        estimate: if n.is_multiple_of(2) {
            f64::midpoint(middle, nth(values, n / 2))
        } else {
            middle
        },
        interval: (drop > 0 && drop <= n / 2 + 1).then(|| Interval {
            low: nth(values, drop - 1),
            high: nth(values, n - drop),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn five_below_five_is_two_of_252() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        let p = mann_whitney(&low, &high).expect("values");
        assert!((p - 2.0 / 252.0).abs() < 1e-12, "{p}");
    }

    #[test]
    fn equal_samples_do_not_differ() {
        assert_eq!(mann_whitney(&[1.0; 4], &[1.0; 6]), Some(1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    proptest! {
        #[test]
        fn pairs_that_are_only_counted_come_to_what_they_come_to_sorted(
            values in proptest::collection::vec(-3i8..4, 1..30), to in proptest::collection::vec(-2.0f64..2.0, 1..20),
        ) {
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value) * 0.1).collect();
            let mut walsh: Vec<f64> = Vec::new();
            for (i, a) in values.iter().enumerate() {
                walsh.extend(values[i..].iter().map(|b| f64::midpoint(*a, *b)));
            }
            let mut differences: Vec<f64> = to.iter().flat_map(|b| values.iter().map(move |a| b - a)).collect();
            walsh.sort_unstable_by(f64::total_cmp);
            differences.sort_unstable_by(f64::total_cmp);
            let of = Walsh(sorted(&values));
            for (at, value) in walsh.iter().enumerate() {
                prop_assert!((nth(&of, at) - value).abs() <= 0.0);
            }
            let of = Differences { from: sorted(&values), to: sorted(&to) };
            for (at, value) in differences.iter().enumerate() {
                prop_assert!((nth(&of, at) - value).abs() <= 0.0);
            }
        }
    }

    #[test]
    fn too_few_values_have_a_centre_and_no_interval() {
        let five = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05).expect("values");
        assert_eq!((five.estimate, five.interval), (3.0, None));
        let six = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.05).expect("values");
        assert_eq!(
            six.interval,
            Some(Interval {
                low: 1.0,
                high: 6.0
            })
        );
    }

    #[test]
    fn the_approximation_for_many_is_near_the_exact_one() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i * i % 211)).collect();
        let mut more = values.clone();
        more.push(100.0);
        let (exact, near) = (
            hodges_lehmann(&values, 0.05)
                .and_then(|c| c.interval)
                .expect("many"),
            hodges_lehmann(&more, 0.05)
                .and_then(|c| c.interval)
                .expect("many"),
        );
        assert!((exact.low - near.low).abs() < 1.5 && (exact.high - near.high).abs() < 1.5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_order_does_not_matter_and_a_shift_shifts(
            values in proptest::collection::vec(-1.0f64..1.0, 6..25), by in -3.0f64..3.0,
        ) {
            let a = hodges_lehmann(&values, 0.05).expect("values");
            let mut moved: Vec<f64> = values.iter().map(|v| v + by).collect();
            moved.reverse();
            let b = hodges_lehmann(&moved, 0.05).expect("values");
            prop_assert!((a.estimate + by - b.estimate).abs() < 1e-9);
            let (a, b) = (a.interval.expect("six"), b.interval.expect("six"));
            prop_assert!((a.low + by - b.low).abs() < 1e-9 && (a.high + by - b.high).abs() < 1e-9);
        }

        #[test]
        fn swapping_the_samples_keeps_p_and_mirrors_the_shift(
            from in proptest::collection::vec(0i8..12, 4..12), to in proptest::collection::vec(0i8..12, 4..12),
        ) {
            let (from, to): (Vec<f64>, Vec<f64>) = (
                from.into_iter().map(f64::from).collect(),
                to.into_iter().map(f64::from).collect(),
            );
            let (p, q) = (mann_whitney(&from, &to).expect("some"), mann_whitney(&to, &from).expect("some"));
            prop_assert!((p - q).abs() < 1e-9);
            let (a, b) = (shift(&from, &to, 0.05).expect("some"), shift(&to, &from, 0.05).expect("some"));
            prop_assert!((a.estimate + b.estimate).abs() < 1e-12);
            prop_assert_eq!(a.interval.map(|i| (i.low, i.high)), b.interval.map(|i| (-i.high, -i.low)));
        }
    }
}
