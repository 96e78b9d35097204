//! Whether CPU for each unit of work is higher than another's.

use serde::Serialize;
use wirecost_stats::PairedRatio;

/// Seconds in sum for each of both below which CPU is shown and not judged: /proc/stat counts in steps of 10 ms.
pub const CPU_SECONDS: f64 = 10.0;
/// What CPU for each unit is to reach, beside what it must not exceed.
pub const CPU_GOAL: f64 = 0.9;

/// CPU for each unit beside the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpu {
    /// The whole interval is above 1.
    Higher,
    /// Not higher beyond noise.
    NotHigher,
    /// At most [`CPU_GOAL`].
    Goal,
}

impl Cpu {
    /// From the ratio of ours to the other's.
    pub fn of(ratio: &PairedRatio) -> Self {
        if ratio.low.is_some_and(|low| low > 1.0) {
            Self::Higher
        } else if ratio.ratio.is_some_and(|ratio| ratio <= CPU_GOAL) {
            Self::Goal
        } else {
            Self::NotHigher
        }
    }
}
