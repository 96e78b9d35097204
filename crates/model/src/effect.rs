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
    /// Why the two cells cannot be compared; present exactly where the verdict says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<Remark>,
    /// Differences between the two cells that do not forbid the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// What differs between two cells beside the factor that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// What it is about.
    pub kind: RemarkKind,
    /// In words, with both figures.
    pub text: String,
    /// What to do; empty where nothing is to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// What may differ between two cells beside the factor that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemarkKind {
    /// Segments per packet at an end.
    Aggregation,
    /// The share of the schedule that was kept.
    Schedule,
    /// The load's own threads were the limit.
    Generator,
    /// Packets dropped from a core's backlog.
    BacklogDrops,
    /// How far apart the cores were.
    CoreDistance,
    /// What the emulated line cost the sender.
    LineCost,
    /// Wake-ups per Gbit.
    Wakeups,
    /// The factor is the figure itself: an offered rate, a line rate.
    FactorIsFigure,
    /// Core time below the resolution of its counter.
    Resolution,
    /// What was asked for did not happen: zero copy that was copied.
    NotInEffect,
    /// Congestion control that paces at a round trip of microseconds.
    Pacing,
    /// Other programs, or the hypervisor, disturbed too many samples.
    Disturbed,
    /// Devices between the hosts are part of a host's figure.
    TransitCpu,
    /// The receiving host decapsulates each frame before frames are joined, where a NIC joins first.
    JoinedInside,
    /// The kernel encapsulates on the cores of both hosts.
    AllCores,
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
    /// The cells differ in something beside the factor that decides the figure.
    NotComparable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pays => "pays",
            Self::Costs => "costs",
            Self::MakesNoDifference => "makes no difference",
            Self::Gains => "gains, perhaps within the margin",
            Self::Loses => "loses, perhaps within the margin",
            Self::CannotTellYet => "cannot tell yet",
            Self::NotComparable => "not comparable",
        })
    }
}
