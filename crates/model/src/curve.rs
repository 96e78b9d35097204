//! Curves: the effect of a factor with many numeric levels, from level to level.

use serde::Serialize;

use crate::levels::Levels;
use crate::metric::Metric;

/// The curve of a factor for one metric of one load, with the other factors held at one level each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelCurve {
    /// The factor's key.
    pub factor: String,
    /// The levels of the other varied factors.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// The load's name.
    pub load: String,
    /// The metric of the load.
    pub metric: Metric,
    /// What the curve shows.
    #[serde(flatten)]
    pub curve: Curve,
}

/// What a curve shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Where most of the gain is reached; `null` where no early level certainly has it.
    pub knee: Option<Knee>,
    /// Changes from one level to the next that stand out, ascending.
    pub steps: Vec<Step>,
}

/// The first level from which on every level certainly has most of the gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// The level, as a number.
    pub at: f64,
    /// Share of the gain that this level has, on the logarithmic scale of ratios.
    pub share: f64,
    /// The gain: the last level's ratio to the first.
    #[serde(rename = "whole")]
    pub total_gain: f64,
}

/// A change from one level to the next that stands out from the trend before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// The level before the step.
    pub from: f64,
    /// The level after the step.
    pub to: f64,
    /// Ratio of the figure at `to` to the figure at `from`.
    pub ratio: f64,
}
