//! Latencies: one writer counts into a histogram while anybody may read it, without a lock and without an allocation.
//!
//! The buckets are those of an HDR histogram with three significant digits, so that a snapshot converts into one
//! without loss. Counts only grow: what a window held is the difference of two snapshots, bucket by bucket.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;

/// 2 * 10^3 rounded up to a power of two: the sub-buckets that three significant digits need.
const SUB_BUCKET_BITS: u32 = 11;
const HALF: u64 = 1 << (SUB_BUCKET_BITS - 1);
/// Latencies are below 2^37 ns, 137 s; every time-out is far shorter.
const VALUE_BITS: u32 = 37;
const MAX_NS: u64 = (1 << VALUE_BITS) - 1;
const BUCKETS: usize = ((VALUE_BITS - SUB_BUCKET_BITS + 2) as usize) << (SUB_BUCKET_BITS - 1);

/// The bucket of a latency in nanoseconds.
fn bucket_of(ns: u64) -> usize {
    let ns = ns.min(MAX_NS);
    let exponent = u64::BITS - (ns | (2 * HALF - 1)).leading_zeros() - SUB_BUCKET_BITS;
    // The upper half of each power of two's sub-buckets; the first power has both halves.
    ((u64::from(exponent) << (SUB_BUCKET_BITS - 1)) + (ns >> exponent)) as usize
}

/// The smallest latency in a bucket, nanoseconds.
fn lowest_in(bucket: u64) -> u64 {
    if bucket < 2 * HALF {
        bucket
    } else {
        let exponent = bucket / HALF - 1;
        (bucket % HALF + HALF) << exponent
    }
}

/// Where one thread counts.
pub(crate) struct LatencyBook(Box<[AtomicU64]>);

impl std::fmt::Debug for LatencyBook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.snapshot().fmt(formatter)
    }
}

impl LatencyBook {
    /// An empty one, every page of it there.
    pub(crate) fn new() -> Self {
        let book: Box<[AtomicU64]> = (0..BUCKETS).map(|_| AtomicU64::new(1)).collect();
        for bucket in &book {
            bucket.store(0, Relaxed);
        }
        Self(book)
    }

    /// Counts one latency. One thread only: it is a load and a store, not an addition.
    pub(crate) fn record(&self, ns: u64) {
        let bucket = &self.0[bucket_of(ns)];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
    }

    /// Everything so far.
    pub(crate) fn snapshot(&self) -> Latency {
        let counts = (0..)
            .zip(&self.0)
            .map(|(bucket, count)| (bucket, count.load(Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        Latency { counts }
    }
}

/// How many transactions had which latency, to three significant digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency {
    /// Bucket and count, ascending, no count of zero.
    counts: Vec<(u32, u64)>,
}

impl Latency {
    /// From buckets as [`Self::buckets`] gives them, in any order; those that no histogram has are left out.
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

    /// Bucket numbers and counts, ascending: what travels and what is recorded.
    pub fn buckets(&self) -> &[(u32, u64)] {
        &self.counts
    }

    /// Transactions.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Adds another's counts: of another thread, guest or round.
    pub fn merge(&mut self, other: &Self) {
        self.counts = combine(&self.counts, &other.counts, u64::saturating_add);
    }

    /// What was counted since an earlier snapshot of the same book.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            counts: combine(&self.counts, &before.counts, u64::saturating_sub),
        }
    }

    /// The latency that so many percent of the transactions did not exceed; `None` where there are none.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let histogram = self.histogram();
        (!histogram.is_empty())
            .then(|| Duration::from_nanos(histogram.value_at_quantile(percent / 100.0)))
    }

    /// The largest latency; `None` where there are none.
    pub fn max(&self) -> Option<Duration> {
        self.percentile(100.0)
    }

    /// The share, 0 to 1, that took at most `bound`; `None` where there are none.
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

    /// As an HDR histogram of nanoseconds, three significant digits.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, MAX_NS, 3)
            .unwrap_or_else(|_| unreachable!("constant bounds that the crate allows"));
        for (bucket, count) in &self.counts {
            histogram.saturating_record_n(lowest_in(u64::from(*bucket)), *count);
        }
        histogram
    }
}

/// Two ascending lists as one; what comes out as zero is left out.
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

    fn book(values: &[u64]) -> LatencyBook {
        let book = LatencyBook::new();
        for value in values {
            book.record(*value);
        }
        book
    }

    proptest! {
        #[test]
        fn the_buckets_are_those_of_an_hdr_histogram(values in prop::collection::vec(0..=MAX_NS, 1..50)) {
            let mut expected = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3).unwrap();
            for value in &values {
                expected.record(*value).unwrap();
            }
            prop_assert_eq!(book(&values).snapshot().histogram(), expected);
        }

        #[test]
        fn a_bucket_is_never_off_by_more_than_a_thousandth(value in 0..=MAX_NS) {
            let low = lowest_in(bucket_of(value) as u64);
            prop_assert!(low <= value && (value - low) as f64 <= value as f64 / 1000.0);
        }

        #[test]
        fn merged_histograms_are_that_of_all_values(
            one in prop::collection::vec(0..=MAX_NS, 0..50), other in prop::collection::vec(0..=MAX_NS, 0..50),
        ) {
            let mut merged = book(&one).snapshot();
            merged.merge(&book(&other).snapshot());
            let all: Vec<u64> = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(&merged, &book(&all).snapshot());
            prop_assert_eq!(merged.count(), all.len() as u64);
            prop_assert_eq!(&Latency::from_buckets(merged.buckets().iter().rev().copied()), &merged);
        }

        #[test]
        fn a_window_holds_what_came_between_its_ends(
            before in prop::collection::vec(0..=MAX_NS, 0..50), within in prop::collection::vec(0..=MAX_NS, 0..50),
        ) {
            let book = book(&before);
            let start = book.snapshot();
            for value in &within {
                book.record(*value);
            }
            prop_assert_eq!(book.snapshot().since(&start), super::tests::book(&within).snapshot());
        }
    }

    #[test]
    fn what_is_above_every_bucket_is_in_the_last_one() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(book(&[u64::MAX]).snapshot().count(), 1);
        assert_eq!(
            Latency::from_buckets([(u32::MAX, 1), (3, 0)]),
            Latency::default()
        );
    }

    #[test]
    fn percentiles_and_shares_of_a_hundred_values() {
        let latency = book(&(1..=100).collect::<Vec<_>>()).snapshot();
        assert_eq!(latency.percentile(50.0), Some(Duration::from_nanos(50)));
        assert_eq!(latency.percentile(99.0), Some(Duration::from_nanos(99)));
        assert_eq!(latency.max(), Some(Duration::from_nanos(100)));
        assert_eq!(latency.share_within(Duration::from_nanos(25)), Some(0.25));
        assert_eq!(latency.share_within(Duration::from_secs(1)), Some(1.0));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Latency::default().percentile(99.0), None);
        assert_eq!(Latency::default().share_within(Duration::MAX), None);
    }
}
