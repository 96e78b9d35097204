//! Latency histograms: agents send them, records hold them, percentiles come from them.
//!
//! The buckets are those of an HDR histogram of nanoseconds with three significant digits, up to 2^37 ns. Counts of
//! threads, guests and rounds add up; a window's counts are the difference of two snapshots, bucket by bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Logarithm of the sub-buckets that three significant digits need: 2 * 10^3 rounded up to a power of two.
const SUB_BUCKET_BITS: u32 = 11;
const HALF: u64 = 1 << (SUB_BUCKET_BITS - 1);
/// Bits of the largest latency: 2^37 ns is 137 s, far longer than every time-out.
const VALUE_BITS: u32 = 37;

/// The largest latency that a bucket of its own distinguishes, nanoseconds; larger ones count as this one.
pub const MAX_NS: u64 = (1 << VALUE_BITS) - 1;
/// Number of buckets.
pub const BUCKETS: usize = ((VALUE_BITS - SUB_BUCKET_BITS + 2) as usize) << (SUB_BUCKET_BITS - 1);

/// The bucket of a latency in nanoseconds.
pub const fn bucket_of(ns: u64) -> usize {
    let ns = if ns > MAX_NS { MAX_NS } else { ns };
    let exponent = u64::BITS - (ns | (2 * HALF - 1)).leading_zeros() - SUB_BUCKET_BITS;
    // Each power of two has the upper half of its sub-buckets only; the first has both halves.
    (((exponent as u64) << (SUB_BUCKET_BITS - 1)) + (ns >> exponent)) as usize
}

/// The smallest latency in a bucket, nanoseconds.
pub const fn lowest_in(bucket: u32) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * HALF {
        bucket
    } else {
        let exponent = bucket / HALF - 1;
        (bucket % HALF + HALF) << exponent
    }
}

/// The largest latency in a bucket, nanoseconds. Percentiles report it, so that they never understate.
pub const fn highest_in(bucket: u32) -> u64 {
    if bucket as usize + 1 >= BUCKETS {
        MAX_NS
    } else {
        lowest_in(bucket + 1) - 1
    }
}

/// Number of transactions by latency, to three significant digits. In records a list of pairs of bucket and count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latency {
    /// Pairs of bucket and count, ascending by bucket, without counts of zero.
    counts: Vec<(u32, u64)>,
}

impl Latency {
    /// Adds up buckets and counts in any order; buckets from [`BUCKETS`] on are left out.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (u32, u64)>) -> Self {
        let mut counts = BTreeMap::new();
        for (bucket, count) in buckets {
            if (bucket as usize) < BUCKETS && count > 0 {
                *counts.entry(bucket).or_insert(0u64) += count;
            }
        }
        Self {
            counts: counts.into_iter().collect(),
        }
    }

    /// Pairs of bucket and count, ascending by bucket.
    pub fn buckets(&self) -> &[(u32, u64)] {
        &self.counts
    }

    /// Whether it holds no transaction.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Number of transactions.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Adds the counts of another thread, guest or round.
    pub fn merge(&mut self, other: &Self) {
        self.counts = combine(&self.counts, &other.counts, u64::saturating_add);
    }

    /// The counts since the earlier snapshot `before` of the same threads.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            counts: combine(&self.counts, &before.counts, u64::saturating_sub),
        }
    }

    /// The latency that `percent` of the transactions, 0 to 100, did not exceed, by nearest rank; `None` without
    /// transactions.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let rank = self.rank(percent);
        let mut gone = 0;
        let bucket = self.counts.iter().find_map(|(bucket, count)| {
            gone += count;
            (gone >= rank).then_some(*bucket)
        });
        // A rank beyond all counts is that of the last bucket.
        let bucket = bucket.or(self.counts.last().map(|(bucket, _)| *bucket))?;
        Some(Duration::from_nanos(highest_in(bucket)))
    }

    /// The number of transactions beyond the one at `percent`.
    pub fn beyond(&self, percent: f64) -> u64 {
        self.count().saturating_sub(self.rank(percent))
    }

    /// Place of the transaction at `percent`, from 1. 99.9 is no binary number: a place that is above a whole number
    /// only by that is the whole number.
    fn rank(&self, percent: f64) -> u64 {
        let exact = percent / 100.0 * self.count() as f64;
        ((exact * (1.0 - 1e-12)).ceil() as u64).max(1)
    }

    /// The largest latency; `None` without transactions.
    pub fn max(&self) -> Option<Duration> {
        self.percentile(100.0)
    }

    /// The share of the transactions that took at most `bound`, 0 to 1; `None` without transactions.
    pub fn share_within(&self, bound: Duration) -> Option<f64> {
        let bound = bucket_of(u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX));
        let within: u64 = self
            .counts
            .iter()
            .take_while(|(bucket, _)| *bucket as usize <= bound)
            .map(|(_, count)| count)
            .sum();
        let all = self.count();
        (all > 0).then(|| within as f64 / all as f64)
    }
}

/// Combines two ascending lists bucket by bucket; counts that come out as zero are left out.
fn combine(one: &[(u32, u64)], other: &[(u32, u64)], with: fn(u64, u64) -> u64) -> Vec<(u32, u64)> {
    let mut combined = Vec::with_capacity(one.len().max(other.len()));
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let bucket = match (left.peek(), right.peek()) {
            (None, None) => return combined,
            (Some((bucket, _)), None) | (None, Some((bucket, _))) => *bucket,
            (Some((a, _)), Some((b, _))) => *a.min(b),
        };
        let take = |from: &mut std::iter::Peekable<std::slice::Iter<'_, (u32, u64)>>| {
            from.next_if(|(at, _)| *at == bucket)
                .map_or(0, |(_, count)| *count)
        };
        let count = with(take(&mut left), take(&mut right));
        if count > 0 {
            combined.push((bucket, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Latency {
        Latency::from_buckets(values.iter().map(|value| (bucket_of(*value) as u32, 1)))
    }

    proptest! {
        #[test]
        fn a_bucket_is_never_off_by_more_than_a_thousandth(value in 0..=MAX_NS) {
            let bucket = bucket_of(value) as u32;
            let (low, high) = (lowest_in(bucket), highest_in(bucket));
            prop_assert!(low <= value && value <= high);
            prop_assert!((high - low) as f64 <= value as f64 / 1000.0);
        }

        #[test]
        fn merged_counts_are_those_of_all_values(
            one in prop::collection::vec(0..=MAX_NS, 0..50), other in prop::collection::vec(0..=MAX_NS, 0..50),
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let all: Vec<u64> = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(&merged, &of(&all));
            prop_assert_eq!(merged.count(), all.len() as u64);
            prop_assert_eq!(merged.since(&of(&one)), of(&other));
            let reversed = merged.buckets().iter().rev().copied();
            prop_assert_eq!(&Latency::from_buckets(reversed), &merged);
        }

        #[test]
        fn a_percentile_is_a_value_that_was_seen_to_three_digits(
            mut values in prop::collection::vec(0..=MAX_NS, 1..50), percent in 0.0f64..=100.0,
        ) {
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
            let got = of(&values).percentile(percent).expect("values").as_nanos() as u64;
            prop_assert_eq!(bucket_of(got), bucket_of(values[rank - 1]));
        }
    }

    #[test]
    fn percentiles_and_shares_of_a_hundred_values() {
        let latency = of(&(1..=100).collect::<Vec<_>>());
        assert_eq!(latency.percentile(50.0), Some(Duration::from_nanos(50)));
        assert_eq!(latency.percentile(99.0), Some(Duration::from_nanos(99)));
        assert_eq!(latency.max(), Some(Duration::from_nanos(100)));
        assert_eq!(latency.share_within(Duration::from_nanos(25)), Some(0.25));
        assert_eq!(latency.share_within(Duration::from_secs(1)), Some(1.0));
    }

    #[test]
    fn ten_transactions_lie_beyond_a_percentile_of_a_round_number_of_them() {
        for (percent, count) in [(99.0, 1000), (99.9, 10_000), (99.99, 100_000)] {
            let of = |slow| Latency::from_buckets([(1, count - slow), (5, slow)]);
            assert_eq!(of(10).beyond(percent), 10, "{percent}");
            let at = |slow| of(slow).percentile(percent);
            assert_eq!(at(10), Some(Duration::from_nanos(1)), "{percent}");
            assert_eq!(at(11), Some(Duration::from_nanos(5)), "{percent}");
            let one_less = Latency::from_buckets([(1, count - 1)]);
            assert_eq!(one_less.beyond(percent), 9, "{percent}");
        }
        assert_eq!(Latency::default().beyond(99.0), 0);
    }

    #[test]
    fn nothing_has_no_percentile_and_what_is_above_every_bucket_is_in_the_last_one() {
        assert_eq!(Latency::default().percentile(99.0), None);
        assert_eq!(Latency::default().share_within(Duration::MAX), None);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(of(&[u64::MAX]).max(), Some(Duration::from_nanos(MAX_NS)));
        let unknown = Latency::from_buckets([(u32::MAX, 1), (3, 0)]);
        assert_eq!(unknown, Latency::default());
    }
}
