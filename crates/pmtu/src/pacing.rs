//! How fast probes leave: a check must not be the load that breaks the path.

use std::time::Duration;

/// How fast, and how much in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Datagrams per second, above 0.
    pub datagrams_per_second: f64,
    /// Bytes of IP packets per second, above 0.
    pub bytes_per_second: f64,
    /// Datagrams after which a survey ends without an answer for what is still open.
    pub max_datagrams: u32,
    /// Time after which it does.
    pub max_time: Duration,
}

impl Default for Pace {
    /// 5,000 datagrams and 40 MB per second, 100,000 datagrams and 20 s in all.
    fn default() -> Self {
        Self {
            datagrams_per_second: 5_000.0,
            bytes_per_second: 40e6,
            max_datagrams: 100_000,
            max_time: Duration::from_secs(20),
        }
    }
}

/// What a pacer that was late may catch up with at once: timers are no finer than a millisecond.
const CATCH_UP: Duration = Duration::from_millis(2);

/// Says when the next datagram may leave. It pays afterwards, so that a datagram's size need not be known before.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    pace: Pace,
    free_at: Duration,
    /// What the last charge was, to give it back.
    last: Duration,
    sent: u32,
    began: Option<Duration>,
    slowed: f64,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
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

    pub(crate) fn is_free(&self, now: Duration) -> bool {
        now >= self.free_at
    }

    /// A datagram of `size` bytes leaves at `now`.
    pub(crate) fn charge(&mut self, size: u32, now: Duration) {
        self.began.get_or_insert(now);
        let each = (1.0 / self.pace.datagrams_per_second)
            .max(f64::from(size) / self.pace.bytes_per_second)
            * self.slowed;
        self.last = Duration::try_from_secs_f64(each).unwrap_or(Duration::MAX);
        self.free_at = self
            .free_at
            .max(now.saturating_sub(CATCH_UP))
            .saturating_add(self.last);
        self.sent += 1;
    }

    /// The last datagram did not leave after all.
    pub(crate) fn refund(&mut self) {
        self.free_at = self.free_at.saturating_sub(std::mem::take(&mut self.last));
        self.sent = self.sent.saturating_sub(1);
    }

    /// Sends at a quarter of the pace from now on, down to a 64th.
    pub(crate) fn slow_down(&mut self) {
        self.slowed = (self.slowed * 4.0).min(64.0);
    }

    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// Whether what is allowed in all is used up.
    pub(crate) fn is_exhausted(&self, now: Duration) -> bool {
        let out_of_time = self
            .began
            .is_some_and(|began| now.saturating_sub(began) >= self.pace.max_time);
        self.sent >= self.pace.max_datagrams || out_of_time
    }

    /// When the time that is allowed ends.
    pub(crate) fn ends_at(&self) -> Option<Duration> {
        Some(self.began?.saturating_add(self.pace.max_time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_second_holds_more_than_the_pace_allows(
            sizes in prop::collection::vec(64u32..9217, 200..2000),
            late in 0u64..5000,
        ) {
            let mut pacer = Pacer::new(Pace::default());
            let mut sent: Vec<(Duration, u32)> = Vec::new();
            let mut now = Duration::ZERO;
            for size in sizes {
                // The driver wakes up late now and then.
                now = now.max(pacer.free_at()) + Duration::from_micros(late * u64::from(size % 7 == 0));
                prop_assert!(pacer.is_free(now));
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
        let mut pacer = Pacer::new(Pace::default());
        pacer.charge(64, Duration::from_secs(1));
        let free = pacer.free_at();
        pacer.charge(9000, Duration::from_secs(1));
        pacer.refund();
        assert_eq!((pacer.free_at(), pacer.sent()), (free, 1));
    }
}
