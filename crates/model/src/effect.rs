//! Effects and verdicts: the paired ratio between two levels of one factor, other factors equal.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::plan::Levels;

/// One effect, in the form of the JSON result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The factor's key.
    pub factor: String,
    /// The reference level: the factor's first.
    pub from: String,
    /// The level that is compared with the reference.
    pub to: String,
    /// The levels of the other varied factors, equal in both cells.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// The load's name.
    pub load: String,
    /// The metric that was compared.
    pub metric: Metric,
    /// Geometric mean of the ratios `to / from`, paired within rounds; absent without any pair.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % confidence interval of `ratio`; absent below two pairs.
    pub low: Option<f64>,
    /// Upper end of the 95 % confidence interval of `ratio`; absent below two pairs.
    pub high: Option<f64>,
    /// What the interval says, given the margin.
    pub verdict: Verdict,
    /// Number of rounds in which both cells had valid samples.
    pub rounds: u32,
    /// Why the two cells cannot be compared; present exactly with [`Verdict::NotComparable`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<Remark>,
    /// Differences between the two cells that do not rule out a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// A difference between two cells besides the factor that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The kind of difference.
    pub kind: RemarkKind,
    /// The difference in words, with both cells' figures.
    pub text: String,
    /// What to do about it; empty where nothing has to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// The kinds of difference between two cells besides the factor that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemarkKind {
    /// Segments per packet, at the sender or the receiver.
    Aggregation,
    /// Share of the load's schedule that was kept.
    Schedule,
    /// The load's own threads were the limit and not the path.
    Generator,
    /// Packets dropped because a core's backlog was full.
    BacklogDrops,
    /// Time that a cache line takes between the lab's cores.
    CoreDistance,
    /// CPU time that the emulated line costs the sender.
    LineCost,
    /// Wake-ups of cores per Gbit.
    Wakeups,
    /// The factor sets the figure itself: an offered rate, a line rate.
    FactorIsFigure,
    /// CPU time below the resolution of its counter.
    Resolution,
    /// A requested feature did not take effect: zero-copy sends that were copied.
    NotInEffect,
    /// Congestion control that paces, at a round trip of microseconds.
    Pacing,
    /// Other programs or the hypervisor disturbed too many samples.
    Disturbed,
    /// Devices between the hosts are part of a host's CPU figure.
    TransitCpu,
    /// The receiving host decapsulates each frame before frames are joined, where a NIC would join them first.
    JoinedInside,
    /// The kernel encapsulates on the cores of both hosts.
    AllCores,
}

/// What an interval says, given the margin: the smallest change that the user calls worth having.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is better than the margin.
    Pays,
    /// The whole interval is worse than the margin.
    Costs,
    /// The whole interval is within the margin.
    MakesNoDifference,
    /// The whole interval is better than no change, part of it by less than the margin.
    Gains,
    /// The whole interval is worse than no change, part of it by less than the margin.
    Loses,
    /// None of the others: more rounds are needed.
    CannotTellYet,
    /// The cells differ in something besides the factor that decides the figure.
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
