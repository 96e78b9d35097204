//! How long to wait for an answer: the estimator of RFC 6298, section 2, on top of the slowest recent answer.

use std::time::Duration;

/// Number of answers in a generation. The slowest answer of the current and of the previous generation counts.
const GENERATION: u32 = 16;
/// Upper bound of the wait for an answer: that of the first one, on a path of 3 s with full queues.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// After [`MIN_FASTER_ANSWERS`] answers that took less than 1/[`FASTER_FACTOR`] of the slowest one, to probes sent
/// after that one arrived, all older answers are forgotten.
const MIN_FASTER_ANSWERS: u32 = 4;
const FASTER_FACTOR: u32 = 4;

/// Estimate of round trips. RFC 6298 alone follows the mean, and on a path with much jitter many
/// answers are slower than it allows. Here an answer that misses the wait counts as lost, it is not
/// only sent again.
///
/// Probes in flight while a neighbour is resolved (ARP, duplicate address detection) or a host
/// stands still are answered late. That is no property of the path: probes that leave afterwards
/// are answered as before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rtt {
    all: Estimate,
    /// Estimate from the probes that left after the slowest answer arrived.
    recent: Estimate,
    /// When the slowest answer arrived.
    slowest_at: Duration,
    least: Duration,
    /// When the last of the answered probes left, and how long its answer took.
    latest: (Duration, Duration),
}

#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    /// `SRTT` and `RTTVAR` of RFC 6298.
    smoothed: Option<(Duration, Duration)>,
    /// Slowest answer of the current generation and of the previous one.
    slowest: [Duration; 2],
    count: u32,
}

impl Estimate {
    fn add(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((mean, varies)) => (
                mean * 7 / 8 + rtt / 8,
                varies * 3 / 4 + mean.abs_diff(rtt) / 4,
            ),
        });
        self.slowest[0] = self.slowest[0].max(rtt);
        self.count += 1;
        if self.count.is_multiple_of(GENERATION) {
            self.slowest = [Duration::ZERO, self.slowest[0]];
        }
    }

    fn slowest(&self) -> Duration {
        self.slowest[0].max(self.slowest[1])
    }
}

impl Rtt {
    /// Adds the round trip of a probe that was sent at `sent` and answered at `now`. Every probe
    /// has its own id, so the answer is unambiguous.
    pub(crate) fn measured(&mut self, sent: Duration, now: Duration) {
        let rtt = now.saturating_sub(sent);
        self.least = if self.is_known() {
            self.least.min(rtt)
        } else {
            rtt
        };
        if sent >= self.latest.0 {
            self.latest = (sent, rtt);
        }
        if rtt >= self.all.slowest() {
            (self.recent, self.slowest_at) = (Estimate::default(), now);
        }
        self.all.add(rtt);
        if sent >= self.slowest_at {
            self.recent.add(rtt);
        }
        let is_faster = self.recent.slowest() * FASTER_FACTOR < self.all.slowest();
        if self.recent.count >= MIN_FASTER_ANSWERS && is_faster {
            (self.all, self.recent) = (self.recent, Estimate::default());
            self.slowest_at = now;
        }
    }

    /// Whether anything was answered.
    pub(crate) fn is_known(&self) -> bool {
        self.all.smoothed.is_some()
    }

    /// How long to wait for an answer from now on: at least `granularity` more than the slowest
    /// recent one. `None` before the first measurement.
    pub(crate) fn wait(&self, granularity: Duration) -> Option<Duration> {
        let (mean, varies) = self.all.smoothed?;
        let slowest = self.all.slowest().max(mean);
        Some((slowest + granularity.max(varies * 4)).min(MAX_WAIT))
    }

    /// Round trip of the probe that left last.
    pub(crate) fn latest(&self) -> Duration {
        self.latest.1
    }

    /// How much longer than the answer to a later probe an earlier one's may take, at least `granularity`: a quarter of
    /// the shortest round trip, as for TCP (RFC 8985, section 6.2), and twice the range of those that were measured.
    pub(crate) fn reordering(&self, granularity: Duration) -> Duration {
        let range = self.all.slowest().saturating_sub(self.least);
        granularity.max(self.least / 4).max(range * 2)
    }

    /// The shortest round trip: the path without queues.
    pub(crate) fn least(&self) -> Duration {
        self.least
    }

    /// `RTTVAR`: the variation of round trips.
    pub(crate) fn varies(&self) -> Duration {
        self.all
            .smoothed
            .map_or(Duration::ZERO, |(_, varies)| varies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// One after the other.
    fn after(samples: impl IntoIterator<Item = u32>) -> Rtt {
        let mut rtt = Rtt::default();
        let mut now = Duration::ZERO;
        for sample in samples {
            rtt.measured(now, now + MS * sample);
            now += MS * sample;
        }
        rtt
    }

    #[test]
    fn the_first_answer_sets_it_as_rfc_6298_does() {
        assert_eq!(Rtt::default().wait(MS), None);
        assert_eq!(after([100]).wait(MS), Some(MS * 300));
    }

    #[test]
    fn a_steady_path_is_waited_for_little_longer_than_it_takes() {
        for steady in [1, 300, 3000] {
            let wait = after([steady; 40]).wait(MS * 10).expect("known");
            assert!(wait >= MS * (steady + 10), "{steady}: {wait:?}");
            assert!(wait <= MS * (steady + 11), "{steady}: {wait:?}");
        }
    }

    #[test]
    fn of_a_path_with_jitter_the_slowest_is_waited_for() {
        let rtt = after((0..64).map(|at| 10 + at % 8 * 20));
        assert!(rtt.wait(MS).expect("known") > MS * 150);
        assert!(rtt.reordering(MS) > MS * 150);
    }

    /// Sixty probes leave within 60 ms and wait for a neighbour: all are answered when that is found, a second later.
    #[test]
    fn what_waited_for_a_neighbour_is_forgotten_after_four_answers() {
        let mut rtt = Rtt::default();
        for sent in 0..60 {
            rtt.measured(MS * sent, MS * 1000);
        }
        assert!(rtt.wait(MS * 10).expect("known") > MS * 900);
        // Whoever hears the last of them need not wait for those before.
        assert!(rtt.reordering(MS * 10) < MS * 300);
        for sent in 1000..1004 {
            rtt.measured(MS * sent, MS * (sent + 1));
        }
        let wait = rtt.wait(MS * 10).expect("known");
        assert!(wait < MS * 20, "{wait:?}");
        assert_eq!(rtt.least(), MS);
    }

    /// The other end does not run for 0.4 s while forty answers are due, in the middle of a search.
    #[test]
    fn a_host_that_did_not_run_for_a_while_is_no_slow_path() {
        let mut rtt = after([1; 40]);
        for sent in 100..140 {
            rtt.measured(MS * sent, MS * 500);
        }
        assert!(rtt.wait(MS * 10).expect("known") > MS * 350);
        for sent in 500..504 {
            rtt.measured(MS * sent, MS * (sent + 1));
        }
        assert!(rtt.wait(MS * 10).expect("known") < MS * 20);
    }

    #[test]
    fn a_path_that_became_slow_stays_slow() {
        let rtt = after([1; 40].into_iter().chain([300; 8]));
        assert!(rtt.wait(MS * 10).expect("known") > MS * 300);
    }
}
