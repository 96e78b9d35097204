//! Effects and verdicts: the paired ratio between two levels of one factor, other factors equal.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::plan::Levels;

/// One effect, as it stands in the JSON result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The factor's key.
    pub factor: String,
    /// The level compared with: the factor's first.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The levels of the other varied factors, which were equal.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// The load's name.
    pub load: String,
    /// What was compared.
    pub metric: Metric,
    /// Geometric mean of the ratios `to / from`, paired within rounds; absent without a single pair.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval; absent below two pairs.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
    /// Rounds in which both cells were valid.
    pub rounds: u32,
}

/// What an interval says, given the margin that the user calls worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is better than the margin.
    Pays,
    /// The whole interval is worse than the margin.
    Costs,
    /// The whole interval is within the margin.
    MakesNoDifference,
    /// Better than nothing, and perhaps less than the margin.
    Gains,
    /// Worse than nothing, and perhaps less than the margin.
    Loses,
    /// Anything else: more rounds are needed.
    CannotTellYet,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pays => "pays",
            Self::Costs => "costs",
            Self::MakesNoDifference => "makes no difference",
            Self::Gains => "gains, perhaps less than worth",
            Self::Loses => "loses, perhaps less than worth",
            Self::CannotTellYet => "cannot tell yet",
        })
    }
}
