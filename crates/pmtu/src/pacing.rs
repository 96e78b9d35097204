//! Pacing of probes: a check must not overload the path.

use std::time::Duration;

/// Limits on the pace and on the whole of a survey.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Pace at the beginning in bytes of IP packets per second, above 0; it doubles while answers
    /// come. Low enough for a path that carries little.
    pub first_bytes_per_second: f64,
    /// Upper bound on the pace in datagrams per second, above 0.
    pub datagrams_per_second: f64,
    /// Upper bound on the pace in bytes of IP packets per second, above 0.
    pub bytes_per_second: f64,
    /// Number of datagrams after which a survey ends, undecided for the flows that are still open.
    pub max_datagrams: u32,
    /// Time after which a survey ends likewise, in addition to [`ROUND_TRIPS`] times the wait for an answer.
    pub max_time: Duration,
}

/// Round trips that a survey may take in addition to [`RateLimit::max_time`]: a search takes about
/// five rounds, and so does a comparison of flows that differ.
pub const ROUND_TRIPS: u32 = 12;
/// Upper bound on the time that [`ROUND_TRIPS`] add to [`RateLimit::max_time`].
pub const LONGEST_EXTENSION: Duration = Duration::from_mins(1);

impl Default for RateLimit {
    /// From 100 kB to 40 MB per second, 5,000 datagrams per second, 100,000 datagrams and 20 s in all.
    fn default() -> Self {
        Self {
            first_bytes_per_second: 100e3,
            datagrams_per_second: 5_000.0,
            bytes_per_second: 40e6,
            max_datagrams: 100_000,
            max_time: Duration::from_secs(20),
        }
    }
}

/// Time that a late pacer may catch up at once: timers are no finer than a millisecond.
const CATCH_UP: Duration = Duration::from_millis(2);

/// Decides when the next datagram may leave. A datagram is charged after it is sent, so that its
/// size need not be known before.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    pace: RateLimit,
    bytes_per_second: f64,
    free_at: Duration,
    /// The last charge, in case it is refunded.
    last: Duration,
    sent: u32,
    began: Option<Duration>,
    slowed: f64,
}

impl Pacer {
    pub(crate) fn new(pace: RateLimit) -> Self {
        Self {
            bytes_per_second: pace.first_bytes_per_second.min(pace.bytes_per_second),
            pace,
            free_at: Duration::ZERO,
            last: Duration::ZERO,
            sent: 0,
            began: None,
            slowed: 1.0,
        }
    }

    /// When the next datagram may leave.
    pub(crate) fn free_at(&self) -> Duration {
        self.free_at
    }

    /// The current pace, bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.bytes_per_second
    }

    /// The pace at the beginning, bytes per second.
    pub(crate) fn first_rate(&self) -> f64 {
        self.pace
            .first_bytes_per_second
            .min(self.pace.bytes_per_second)
    }

    /// Sets the pace in bytes per second, up to the limit. The remaining wait of the last datagram
    /// is shortened accordingly.
    pub(crate) fn set_rate(&mut self, bytes_per_second: f64, now: Duration) {
        let rate = bytes_per_second.min(self.pace.bytes_per_second);
        let due = self.free_at.saturating_sub(now);
        let due = due.mul_f64((self.bytes_per_second / rate).min(1.0));
        self.free_at = self.free_at.min(now.saturating_add(due));
        self.bytes_per_second = rate;
    }

    /// Charges a datagram of `size` bytes that leaves at `now`.
    pub(crate) fn charge(&mut self, size: u32, now: Duration) {
        self.began.get_or_insert(now);
        let each = (1.0 / self.pace.datagrams_per_second)
            .max(f64::from(size) / self.bytes_per_second)
            * self.slowed;
        self.last = Duration::try_from_secs_f64(each).unwrap_or(Duration::MAX);
        self.free_at = self
            .free_at
            .max(now.saturating_sub(CATCH_UP))
            .saturating_add(self.last);
        self.sent += 1;
    }

    /// Refunds the last datagram, which did not leave after all.
    pub(crate) fn refund(&mut self) {
        self.free_at = self.free_at.saturating_sub(std::mem::take(&mut self.last));
        self.sent = self.sent.saturating_sub(1);
    }

    /// Sends at a quarter of the pace from now on, down to a 64th of it.
    pub(crate) fn slow_down(&mut self) {
        self.slowed = (self.slowed * 4.0).min(64.0);
    }

    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// Whether the limit on datagrams or time is reached, where an answer takes `wait` at most.
    pub(crate) fn is_exhausted(&self, now: Duration, wait: Duration) -> bool {
        self.sent >= self.pace.max_datagrams || self.ends_at(wait).is_some_and(|end| now >= end)
    }

    /// When the time limit is reached; `None` before the first datagram.
    pub(crate) fn ends_at(&self, wait: Duration) -> Option<Duration> {
        let beside = (wait * ROUND_TRIPS).min(LONGEST_EXTENSION);
        Some(
            self.began?
                .saturating_add(self.pace.max_time)
                .saturating_add(beside),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// At the highest pace from the beginning.
    fn fast() -> RateLimit {
        RateLimit {
            first_bytes_per_second: 40e6,
            ..RateLimit::default()
        }
    }

    proptest! {
        #[test]
        fn no_second_holds_more_than_the_pace_allows(
            sizes in prop::collection::vec(64u32..9217, 200..2000),
            late in 0u64..5000,
        ) {
            let mut pacer = Pacer::new(fast());
            let mut sent: Vec<(Duration, u32)> = Vec::new();
            let mut now = Duration::ZERO;
            for size in sizes {
                // The driver wakes up late now and then.
                now = now.max(pacer.free_at()) + Duration::from_micros(late * u64::from(size % 7 == 0));
                pacer.charge(size, now);
                sent.push((now, size));
            }
            let window = Duration::from_millis(100);
            let mut from = 0;
            let mut bytes = 0u64;
            for (index, &(at, size)) in sent.iter().enumerate() {
                bytes += u64::from(size);
                while sent[from].0 + window <= at {
                    bytes -= u64::from(sent[from].1);
                    from += 1;
                }
                // A tenth of a second's worth, what may be caught up with, and one more.
                prop_assert!(index - from < 500 + 10 + 2, "{} datagrams", index - from);
                prop_assert!(bytes <= 4_000_000 + 80_000 + 2 * 9216, "{bytes} bytes");
            }
        }
    }

    #[test]
    fn what_did_not_leave_costs_nothing() {
        let mut pacer = Pacer::new(RateLimit::default());
        pacer.charge(64, Duration::from_secs(1));
        let free = pacer.free_at();
        pacer.charge(9000, Duration::from_secs(1));
        pacer.refund();
        assert_eq!((pacer.free_at(), pacer.sent()), (free, 1));
    }

    #[test]
    fn what_was_charged_is_paid_at_the_new_pace() {
        let mut pacer = Pacer::new(RateLimit::default());
        pacer.charge(10_000, Duration::ZERO);
        assert_eq!(pacer.free_at(), Duration::from_millis(100));
        pacer.set_rate(200e3, Duration::from_millis(20));
        assert_eq!(pacer.free_at(), Duration::from_millis(60));
        pacer.set_rate(1e12, Duration::from_millis(60));
        assert!((pacer.rate() - 40e6).abs() < 1.0);
    }
}
