//! Rounds, intervals, verdicts: how cells are ordered, how a cell's samples are summarised, how
//! two levels of a factor are compared and what is concluded from it.
//!
//! A run is a randomised complete block: every cell once per round, in random order ([`order`]).
//! Two cells are compared within rounds, so that what drifts between rounds cancels
//! ([`paired_ratio`]); a verdict follows from the interval and the margin called worth it
//! ([`verdict`]). Replication is the round, never an interval within a sample.
//!
//! | question | answer |
//! |---|---|
//! | what pays | [`contrasts`], [`Contrast::effect`], [`factorial`] |
//! | may a verdict be given at all | [`comparable`], [`blocks`] |
//! | may the run stop, how long will it take | [`sequential`] |
//! | do other methods agree, does it stand among many | [`second_opinions`], [`correct`] |
//! | can the run be trusted | [`validity`] |
//! | which results would other tools' rules give | [`rules`] |
//! | is this run like that one | [`compare`], [`judge`] |
//! | where does a curve have a knee or a step | [`curve`] |
//! | does it agree with what others published | [`published`] |
//! | latency percentiles, event rates | [`percentiles`], [`rate`] |
//!
//! Methods, citations and the simulations they rest on: docs/statistics.md.
//!
//! Not here: I/O, clocks, wording, and which sample is valid (its record says so). Seeds are passed in.

mod blocks;
mod bootstrap;
pub mod comparable;
mod compare;
pub mod curve;
mod effects;
mod exact;
mod factorial;
mod family;
mod hodges_lehmann;
mod interval;
mod judge;
mod latency;
mod observed;
mod opinion;
mod order;
pub mod published;
mod rate;
mod ratio;
pub mod rules;
pub mod sequential;
mod summary;
mod sums;
pub mod validity;
mod verdict;

pub use blocks::{CpuFigures, ENOUGH_STEPS, blocks, cpu_figures};
pub use bootstrap::bootstrap_mean;
pub use compare::{Unpaired, compare};
pub use effects::{
    Contrast, awaited_contrasts, contrasts, contrasts_of, effects, none_can_settle, self_test_logs,
};
pub use factorial::{Dependence, Factorial, Interaction, MainEffect, SimpleEffect, factorial};
pub use family::{Corrected, correct, holm};
pub use hodges_lehmann::{LocationEstimate, hodges_lehmann, mann_whitney, shift};
pub use interval::Interval;
pub use judge::{FigureSamples, FigureVerdict, judge};
pub use latency::{Histogram, Percentile, percentile_ratio, percentiles};
pub use observed::Observed;
pub use opinion::{Method, SecondOpinion, second_opinions};
pub use order::order;
pub use rate::{Rate, rate};
pub use ratio::{PairedRatio, RatioError, paired_ratio, paired_ratio_stopped};
pub use sequential::Stopping;
pub use summary::{Summary, summary};
pub use verdict::{Margin, verdict};
