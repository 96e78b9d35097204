//! Rounds, intervals, verdicts: how cells are ordered, how a cell's samples are summarised, how
//! two levels of a factor are compared and what is concluded from it.
//!
//! A run is a randomised complete block: every cell once per round, in random order ([`order`]).
//! Two cells are compared within rounds, so that what drifts between rounds cancels
//! ([`paired_ratio`]); a verdict follows from the interval and the margin called worth it
//! ([`verdict`]). Replication is the round, never an interval within a sample.
//!
//! Not here: I/O, clocks, wording, and which sample is valid (its record says so).

mod effects;
mod interval;
mod order;
mod ratio;
pub mod sequential;
mod summary;
mod verdict;

pub use effects::effects;
pub use interval::Interval;
pub use order::order;
pub use ratio::{PairedRatio, RatioError, paired_ratio};
pub use sequential::Stopping;
pub use summary::{Summary, summary};
pub use verdict::{Margin, verdict};

/// The name of the one load there is, as it stands in [`wirecost_model::effect::Effect::load`].
pub const TCP_STREAM: &str = "tcp-stream";
