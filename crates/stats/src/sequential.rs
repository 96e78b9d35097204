//! Adaptive runs: when a run may stop, and the interval that stays right when it does.
//!
//! There are two intervals with two purposes. The *lasting* interval ([`Look::lasting`]) is for
//! decisions: it may be looked at after every round, and a verdict read from it is wrong with a
//! probability that does not grow with the looks. It is too wide early on to be published. The
//! *reported* interval ([`Look::interval`]) is for the result: an ordinary t interval, a little
//! wider than the 95 % one, which covers 95 % of the time when it is read where this rule stops.
//! How the two follow from each other, with citations and simulations: docs/statistics.md.

mod boundary;
mod forecast;
mod look;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use wirecost_model::plan::Repeat;

pub use boundary::{BOUNDARY, FIXED_ALPHA, IN_A_ROW, SEQUENTIAL_ALPHA};
pub use forecast::{Forecast, chance_settled, forecast, rounds_needed};
pub use look::{Answer, Look, SequentialState, lasting_ratio, look, standing};

/// How the number of rounds was decided: it sets the level of the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// The number of rounds was fixed before the first.
    #[default]
    Fixed,
    /// The run went on until the effects were settled ([`standing`]).
    Sequential,
}

impl Stopping {
    /// The `alpha` of a t interval whose coverage is then 95 %.
    pub const fn alpha(self) -> f64 {
        match self {
            Self::Fixed => FIXED_ALPHA,
            Self::Sequential => SEQUENTIAL_ALPHA,
        }
    }
}

/// When an adaptive run may stop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoppingCriterion {
    /// Half-width at which an interval is narrow enough, a fraction above 0 and at most 1: 0.02 is
    /// from `1/1.02` to 1.02 times the ratio.
    pub precision: f64,
    /// The smallest change worth having, a fraction from 0 to 1.
    pub worth: f64,
    /// Rounds below which the run does not stop, at least [`StoppingCriterion::MIN_ROUNDS`].
    pub min_rounds: u32,
    /// Rounds at which the run stops, whatever is settled.
    pub max_rounds: u32,
}

/// Why a criterion is refused.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum StoppingCriterionError {
    /// The precision is out of range.
    #[error("a precision of {0} is not above 0 and at most 1")]
    Precision(f64),
    /// The margin is out of range.
    #[error("a worth of {0} is not from 0 to 1")]
    Worth(f64),
    /// Too few rounds to estimate a spread from.
    #[error("min_rounds {0} is below {min}, too few to tell the spread from", min = StoppingCriterion::MIN_ROUNDS)]
    TooFew(u32),
    /// `max_rounds` is below `min_rounds`.
    #[error("max_rounds {max} is below min_rounds {min}")]
    Order {
        /// `min_rounds`.
        min: u32,
        /// `max_rounds`.
        max: u32,
    },
}

impl StoppingCriterion {
    /// Least rounds of an adaptive run: with fewer, the spread seen says next to nothing about the true spread.
    pub const MIN_ROUNDS: u32 = 4;

    /// The criterion of a plan; `None` where the plan has a fixed number of rounds.
    pub fn of(repeat: &Repeat) -> Option<Self> {
        let until = repeat.until?;
        Some(Self {
            precision: until.precision,
            worth: repeat.worth,
            min_rounds: until.min_rounds,
            max_rounds: repeat.rounds,
        })
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(self) -> Result<Self, StoppingCriterionError> {
        if !(self.precision > 0.0 && self.precision <= 1.0) {
            return Err(StoppingCriterionError::Precision(self.precision));
        }
        if !(0.0..=1.0).contains(&self.worth) {
            return Err(StoppingCriterionError::Worth(self.worth));
        }
        if self.min_rounds < Self::MIN_ROUNDS {
            return Err(StoppingCriterionError::TooFew(self.min_rounds));
        }
        if self.max_rounds < self.min_rounds {
            return Err(StoppingCriterionError::Order {
                min: self.min_rounds,
                max: self.max_rounds,
            });
        }
        Ok(self)
    }

    /// The round at which the run ends if nothing is settled before: `max_rounds`, or what the time
    /// budget allows at the pace so far (`rounds` rounds took `elapsed_s` of `budget_s` seconds).
    ///
    /// The information fraction is relative to this round. That the round moves with the pace does no harm: the
    /// pace is not what is measured (Lan and DeMets 1989, "Changing frequency of interim analysis
    /// in sequential monitoring", Biometrics 45, 1017).
    pub fn ends_at(&self, budget_s: Option<f64>, elapsed_s: f64, rounds: u32) -> u32 {
        let affordable = match budget_s {
            Some(budget) if rounds > 0 && elapsed_s > 0.0 => {
                (budget / (elapsed_s / f64::from(rounds))).floor() as u32
            }
            _ => u32::MAX,
        };
        affordable.max(rounds.max(1)).min(self.max_rounds)
    }
}

#[cfg(test)]
mod tests;
