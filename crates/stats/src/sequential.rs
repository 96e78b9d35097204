//! Adaptive runs: when a run may stop, and the interval that stays right when it does.
//!
//! Two intervals do two jobs. The *lasting* interval ([`Look::lasting`]) is for looking: it may be
//! looked at after every round, and a verdict read from it is wrong with a probability that does
//! not grow with the looks. It is wide early on, so it is not what one wants to publish. The
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
pub use look::{Answer, Look, SequentialState, look, standing};

/// How it was decided when to stop: it sets the level of the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// The number of rounds was fixed before the first.
    #[default]
    Fixed,
    /// The run went on until it was known ([`standing`]).
    Sequential,
}

impl Stopping {
    /// The `alpha` of a t interval with which its coverage is 95 %.
    pub const fn alpha(self) -> f64 {
        match self {
            Self::Fixed => FIXED_ALPHA,
            Self::Sequential => SEQUENTIAL_ALPHA,
        }
    }
}

/// What is asked of an adaptive run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// An interval this narrow is narrow enough: its half-width as a fraction; 0.02 is from
    /// `1/1.02` to 1.02 times the ratio.
    pub precision: f64,
    /// The smallest change worth having, a fraction.
    pub worth: f64,
    /// Rounds below which it does not stop, at least [`Aim::MIN_ROUNDS`].
    pub min_rounds: u32,
    /// Rounds at which it stops whatever is known.
    pub max_rounds: u32,
}

/// Why a run cannot be asked for this.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum AimError {
    /// Not a width.
    #[error("a precision of {0} is not above 0 and at most 1")]
    Precision(f64),
    /// Not a margin.
    #[error("a worth of {0} is not from 0 to 1")]
    Worth(f64),
    /// A spread cannot be estimated from so few.
    #[error("min_rounds {0} is below {min}, too few to tell the spread from", min = Aim::MIN_ROUNDS)]
    TooFew(u32),
    /// The wrong way round.
    #[error("max_rounds {max} is below min_rounds {min}")]
    Order {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
}

impl Aim {
    /// Below four rounds the spread seen says next to nothing about the spread.
    pub const MIN_ROUNDS: u32 = 4;

    /// What a plan asks for; `None` where it has a fixed number of rounds.
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
    pub fn check(self) -> Result<Self, AimError> {
        if !(self.precision > 0.0 && self.precision <= 1.0) {
            return Err(AimError::Precision(self.precision));
        }
        if !(0.0..=1.0).contains(&self.worth) {
            return Err(AimError::Worth(self.worth));
        }
        if self.min_rounds < Self::MIN_ROUNDS {
            return Err(AimError::TooFew(self.min_rounds));
        }
        if self.max_rounds < self.min_rounds {
            return Err(AimError::Order {
                min: self.min_rounds,
                max: self.max_rounds,
            });
        }
        Ok(self)
    }

    /// The round at which the run ends if nothing is settled before: `max_rounds`, or what the
    /// budget allows at the pace so far (`rounds` rounds took `elapsed_s` of `budget_s` seconds).
    ///
    /// The information fraction is counted from it. That it moves with the pace does no harm: the
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
