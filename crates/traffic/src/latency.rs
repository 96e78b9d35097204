//! A latency histogram with one writer and any number of readers, without locks or allocations.
//!
//! Its buckets are the record's ([`wirecost_model::latency`]). Counts only grow: a window has the difference of two
//! snapshots, bucket by bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wirecost_model::latency::{BUCKETS, Latency, bucket_of};

/// Buckets per bit of `used`.
const BLOCK: usize = 64;
const BLOCKS: usize = BUCKETS.div_ceil(BLOCK);

/// The histogram of one thread.
pub(crate) struct LatencyRecorder {
    counts: Box<[AtomicU64]>,
    /// A bit for each block with a count: most have none, and a thousand histograms are 235 MB to read.
    used: [AtomicU64; BLOCKS.div_ceil(64)],
}

impl std::fmt::Debug for LatencyRecorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.snapshot().fmt(formatter)
    }
}

impl LatencyRecorder {
    /// An empty histogram, all of its pages resident.
    pub(crate) fn new() -> Self {
        let counts: Box<[AtomicU64]> = (0..BUCKETS).map(|_| AtomicU64::new(1)).collect();
        for bucket in &counts {
            bucket.store(0, Relaxed);
        }
        Self {
            counts,
            used: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Counts one latency, nanoseconds. Only the histogram's own thread may call it: it is loads and stores.
    pub(crate) fn record(&self, ns: u64) {
        let bucket = bucket_of(ns);
        let block = bucket / BLOCK;
        let (used, bit) = (&self.used[block / 64], 1 << (block % 64));
        let known = used.load(Relaxed);
        if known & bit == 0 {
            used.store(known | bit, Relaxed);
        }
        let count = &self.counts[bucket];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// The counts so far.
    pub(crate) fn snapshot(&self) -> Latency {
        let used = |block: &usize| self.used[block / 64].load(Relaxed) & (1 << (block % 64)) != 0;
        let blocks = (0..BLOCKS).filter(used);
        let buckets = blocks.flat_map(|block| block * BLOCK..BUCKETS.min((block + 1) * BLOCK));
        let count = |bucket: usize| (bucket as u32, self.counts[bucket].load(Relaxed));
        Latency::from_buckets(buckets.map(count))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::Histogram;
    use proptest::prelude::*;
    use wirecost_model::latency::{MAX_NS, lowest_in};

    use super::*;

    fn book(values: &[u64]) -> LatencyRecorder {
        let book = LatencyRecorder::new();
        for value in values {
            book.record(*value);
        }
        book
    }

    fn histogram(values: impl IntoIterator<Item = (u64, u64)>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, MAX_NS, 3).unwrap();
        for (value, count) in values {
            histogram.record_n(value, count).unwrap();
        }
        histogram
    }

    proptest! {
        #[test]
        fn the_buckets_are_those_of_an_hdr_histogram(values in prop::collection::vec(0..=MAX_NS, 1..50)) {
            let expected = histogram(values.iter().map(|value| (*value, 1)));
            let counted = book(&values).snapshot();
            let buckets = counted.buckets().iter().map(|(bucket, count)| (lowest_in(*bucket), *count));
            prop_assert_eq!(histogram(buckets), expected);
        }

        #[test]
        fn the_percentiles_are_those_of_an_hdr_histogram(
            values in prop::collection::vec(0..=MAX_NS, 1..50), percent in 0.0f64..=100.0,
        ) {
            let expected = histogram(values.iter().map(|value| (*value, 1)));
            // Past its rounding of the share, which is by a millionth at most.
            let exact = percent / 100.0 * values.len() as f64;
            prop_assume!((exact - exact.round()).abs() > 1e-3);
            let expected = expected.value_at_quantile(percent / 100.0).min(MAX_NS);
            let got = book(&values).snapshot().percentile(percent).unwrap();
            prop_assert_eq!(got, Duration::from_nanos(expected));
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
        assert_eq!(book(&[u64::MAX]).snapshot().count(), 1);
    }
}
