//! One look at the rounds so far, and the state of a run.

use serde::Serialize;

use super::boundary::{IN_A_ROW, SEQUENTIAL_ALPHA, critical, information};
use super::{Stopping, StoppingCriterion};
use crate::interval::{Interval, moments, t_upper};
use crate::ratio::PairedRatio;

/// Why no more rounds are needed for an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The ratio is above the margin.
    Above,
    /// The ratio is below the margin.
    Below,
    /// The ratio is within the margin.
    Within,
    /// The reported interval is as narrow as asked.
    Narrow,
}

/// One effect after some rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Look {
    /// The ratio with the interval to report if the run stops at this look by its rule.
    pub ratio: PairedRatio,
    /// The anytime-valid interval: it also holds where a user stopped the run after seeing results. Its ends may be 0
    /// and infinity; absent below two pairs.
    pub lasting: Option<Interval>,
    /// Standard deviation of the log ratios; absent below two pairs.
    pub spread: Option<f64>,
    /// Information fraction: how much of the information that will be needed is there, 0 to 1.
    pub information: f64,
    /// The answer of this look alone.
    pub answer: Option<Answer>,
    /// Whether there was an answer in each of the last [`IN_A_ROW`] looks, and the least rounds
    /// asked for are reached.
    pub settled: bool,
}

impl Look {
    /// The reported interval; `None` below two pairs.
    pub fn interval(&self) -> Option<Interval> {
        self.ratio.interval()
    }
}

/// Looks at the log ratios of one effect, one per round in which both its cells were valid, in the
/// order in which they were taken. `ends_at` is [`StoppingCriterion::ends_at`].
///
/// The result depends on the arguments only: a run that is resumed, or read again from its record, gives the same.
pub fn look(logs: &[f64], criterion: &StoppingCriterion, ends_at: u32) -> Look {
    let now = LookStatistics::at(logs, criterion, ends_at);
    let settled = logs.len() >= criterion.min_rounds as usize
        && now.answer.is_some()
        && (1..IN_A_ROW).all(|back| {
            logs.len().checked_sub(back).is_some_and(|n| {
                LookStatistics::at(&logs[..n], criterion, ends_at)
                    .answer
                    .is_some()
            })
        });
    Look {
        ratio: PairedRatio::of_logs(logs, Stopping::Sequential),
        lasting: now.lasting.map(|interval| interval.map(f64::exp)),
        spread: now.spread,
        information: now.information,
        answer: now.answer,
        settled,
    }
}

/// The ratio of one effect with its lasting interval ([`Look::lasting`]); without an interval while that is infinite,
/// or below [`StoppingCriterion::MIN_ROUNDS`].
pub fn lasting_ratio(logs: &[f64], criterion: &StoppingCriterion, ends_at: u32) -> PairedRatio {
    let look = look(logs, criterion, ends_at);
    let enough = logs.len() >= StoppingCriterion::MIN_ROUNDS as usize;
    let lasting = look.lasting.filter(|ends| enough && ends.high.is_finite());
    PairedRatio {
        low: lasting.map(|ends| ends.low),
        high: lasting.map(|ends| ends.high),
        ..look.ratio
    }
}

/// The state of a run with several effects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SequentialState {
    /// One look per effect, in the order of the effects.
    pub looks: Vec<Look>,
    /// How many effects are settled.
    pub settled: usize,
    /// Whether the run may stop: there is an effect and all are settled.
    pub known: bool,
}

/// Looks at every effect asked for; the run goes on until all are settled.
pub fn standing<'a>(
    effects: impl IntoIterator<Item = &'a [f64]>,
    criterion: &StoppingCriterion,
    ends_at: u32,
) -> SequentialState {
    let looks: Vec<Look> = effects
        .into_iter()
        .map(|logs| look(logs, criterion, ends_at))
        .collect();
    let settled = looks.iter().filter(|look| look.settled).count();
    SequentialState {
        settled,
        known: settled == looks.len() && settled > 0,
        looks,
    }
}

/// One look on the log scale, without its history.
struct LookStatistics {
    lasting: Option<Interval>,
    spread: Option<f64>,
    information: f64,
    answer: Option<Answer>,
}

impl LookStatistics {
    fn at(logs: &[f64], criterion: &StoppingCriterion, ends_at: u32) -> Self {
        let Some((mean, Some(sd))) = moments(logs) else {
            return Self {
                lasting: None,
                spread: None,
                information: 0.0,
                answer: None,
            };
        };
        let n = logs.len();
        let freedom = (n - 1) as f64;
        let error = sd / (n as f64).sqrt();
        let half = t_upper(SEQUENTIAL_ALPHA / 2.0, freedom) * error;
        let wanted = criterion.precision.ln_1p();
        let information = information(half, wanted, n, ends_at);
        let reach = if error > 0.0 {
            critical(information, freedom) * error
        } else {
            0.0
        };
        let margin = criterion.worth.ln_1p();
        let answer = if mean - reach > margin {
            Some(Answer::Above)
        } else if mean + reach < -margin {
            Some(Answer::Below)
        } else if mean.abs() + reach <= margin {
            Some(Answer::Within)
        } else {
            (half <= wanted).then_some(Answer::Narrow)
        };
        Self {
            lasting: Some(Interval {
                low: mean - reach,
                high: mean + reach,
            }),
            spread: Some(sd),
            information,
            answer,
        }
    }
}
