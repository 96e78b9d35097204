//! How long an answer takes: the estimator of RFC 6298, section 2, above the slowest of the last answers.

use std::time::Duration;

/// Answers after which the slowest of them is forgotten; those of one generation before still count.
const GENERATION: u32 = 16;
/// No answer is waited for longer than this: the first one, and a path of 3 s whose queues are full.
const LONGEST: Duration = Duration::from_secs(10);

/// What round trips were measured. RFC 6298 alone follows the mean, and a path with much jitter has many answers that
/// are slower than that; what is not answered in time is taken for lost here, and not only sent again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rtt {
    /// `SRTT` and `RTTVAR`.
    smoothed: Option<(Duration, Duration)>,
    least: Duration,
    /// The slowest of the generation under way and of the one before.
    slowest: [Duration; 2],
    count: u32,
}

impl Rtt {
    /// A round trip was measured. Every probe has an id of its own, so that it is known which one is answered.
    pub(crate) fn measured(&mut self, rtt: Duration) {
        let Some((mean, varies)) = self.smoothed else {
            *self = Self {
                smoothed: Some((rtt, rtt / 2)),
                least: rtt,
                slowest: [rtt; 2],
                count: 1,
            };
            return;
        };
        self.smoothed = Some((
            mean * 7 / 8 + rtt / 8,
            varies * 3 / 4 + mean.abs_diff(rtt) / 4,
        ));
        self.least = self.least.min(rtt);
        self.slowest[0] = self.slowest[0].max(rtt);
        self.count += 1;
        if self.count.is_multiple_of(GENERATION) {
            let [this, _] = self.slowest;
            // The first answers waited for a neighbour to be found, perhaps.
            if this * 2 < mean {
                self.smoothed = Some((this, this / 2));
            }
            self.slowest = [Duration::ZERO, this];
        }
    }

    /// Whether anything was answered.
    pub(crate) fn is_known(&self) -> bool {
        self.smoothed.is_some()
    }

    /// How long an answer may take from now on; at least `granularity` more than the slowest of the last ones. `None`:
    /// none was measured.
    pub(crate) fn wait(&self, granularity: Duration) -> Option<Duration> {
        let (mean, varies) = self.smoothed?;
        let slowest = self.slowest[0].max(self.slowest[1]).max(mean);
        Some((slowest + granularity.max(varies * 4)).min(LONGEST))
    }

    /// The shortest round trip: that of the path without queues.
    pub(crate) fn least(&self) -> Duration {
        self.least
    }

    /// By how much round trips vary.
    pub(crate) fn varies(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(_, varies)| varies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(samples: impl IntoIterator<Item = u32>) -> Rtt {
        let mut rtt = Rtt::default();
        samples
            .into_iter()
            .for_each(|sample| rtt.measured(MS * sample));
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
    }

    #[test]
    fn what_took_a_second_once_is_forgotten_after_some_answers() {
        let rtt = after([1000].into_iter().chain([1; 48]));
        let wait = rtt.wait(MS * 10).expect("known");
        assert!(wait < MS * 30, "{wait:?}");
        assert_eq!(rtt.least(), MS);
    }
}
