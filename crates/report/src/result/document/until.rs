//! How an adaptive run stopped.

use serde::Serialize;
use wirecost_model::plan::Ask;
use wirecost_model::record::Why;

/// What an adaptive run was asked, and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UntilResult {
    /// Half-width of an interval that is narrow enough, a fraction.
    pub precision: f64,
    /// Rounds below which it does not stop.
    pub min_rounds: u32,
    /// Rounds at which it stops.
    pub max_rounds: u32,
    /// Seconds after which no round is begun.
    pub budget_s: f64,
    /// Which effects were waited for.
    pub ask: Ask,
    /// Why it stopped by its rule; `null` where something else stopped it.
    pub stopped: Option<Why>,
    /// The round at which it would have ended, by the last look.
    pub ends_at: u32,
    /// Effects that were waited for: those asked for with a valid pair.
    pub asked: u32,
    /// Effects that are known.
    pub known: u32,
    /// Which intervals the effects have.
    pub intervals: Intervals,
}

/// Which intervals the effects of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervals {
    /// Those to report where the rule stopped the run.
    Reported,
    /// Those that hold at any stopping time.
    Lasting,
}
