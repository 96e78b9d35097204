//! What a factor with many levels that are numbers does from level to level.

use serde::Serialize;

use crate::levels::Levels;
use crate::metric::Metric;

/// A factor's levels as a curve, other things equal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curved {
    /// The factor's key.
    pub factor: String,
    /// The levels of the other varied factors.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// The load.
    pub load: String,
    /// Its figure.
    pub metric: Metric,
    /// What the curve shows.
    #[serde(flatten)]
    pub curve: Curve,
}

/// What a curve shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Where most of the gain is reached; `null` where no level certainly has it early.
    pub knee: Option<Knee>,
    /// Changes from one level to the next that stand out, ascending.
    pub steps: Vec<Step>,
}

/// The first level from which on most of the gain is certainly there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// The level.
    pub at: f64,
    /// The share of the gain that is there, on the logarithmic scale of ratios.
    pub share: f64,
    /// The last level's ratio to the first.
    pub whole: f64,
}

/// A change from one level to the next that the level before does not lead one to expect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// The level before it.
    pub from: f64,
    /// The level behind it.
    pub to: f64,
    /// The ratio of the second to the first.
    pub ratio: f64,
}
