//! How an adaptive run stopped.

use serde::Serialize;
use wirecost_model::plan::AwaitedEffects;
use wirecost_model::record::StopReason;

/// The stopping rule of an adaptive run, and how it stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdaptiveResult {
    /// Half-width of an interval that is narrow enough, a fraction of the ratio.
    pub precision: f64,
    /// Rounds below which the rule does not stop the run.
    pub min_rounds: u32,
    /// Rounds at which the rule stops the run.
    pub max_rounds: u32,
    /// Seconds after which no round is begun.
    pub budget_s: f64,
    /// Which effects the rule waits for.
    pub ask: AwaitedEffects,
    /// Why the rule stopped the run; `null` where something else stopped it.
    pub stopped: Option<StopReason>,
    /// The round at which the run would have ended whatever was known, as of the last look.
    pub ends_at: u32,
    /// Number of effects that the rule waited for: those asked for that have a valid pair and are comparable.
    pub asked: u32,
    /// Number of these effects that are known.
    pub known: u32,
    /// Kind of intervals that the effects have.
    pub intervals: Intervals,
}

/// Kind of intervals that the effects of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervals {
    /// Intervals for a run that its rule stopped.
    Reported,
    /// Intervals that hold at any stopping time.
    Lasting,
}
