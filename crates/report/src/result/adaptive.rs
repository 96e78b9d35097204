//! Adaptive runs: how they stopped, and which intervals are valid then.

use wirecost_model::record::{RunEnd, RunHead};
use wirecost_stats::sequential::{StoppingCriterion, standing};
use wirecost_stats::{Contrast, Stopping, awaited_contrasts};

use crate::result::document::{AdaptiveResult, Intervals};

/// How a run ended, which decides the intervals of its effects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IntervalBasis {
    /// The number of rounds was fixed, or the rule of an adaptive run stopped it.
    Ended(Stopping),
    /// Something else stopped an adaptive run: only intervals that hold at any stopping time are valid.
    Looking {
        criterion: StoppingCriterion,
        ends_at: u32,
    },
}

/// How an adaptive run stopped (`None` for another run), and the basis on which effects are judged. `rounds` rounds are
/// complete; the last sample ended `elapsed_s` seconds after the run began.
pub(crate) fn judge(
    head: &RunHead,
    end: Option<&RunEnd>,
    contrasts: &[Contrast],
    rounds: u32,
    elapsed_s: f64,
) -> (Option<AdaptiveResult>, IntervalBasis) {
    let repeat = &head.experiment.plan.repeat;
    let (Some(until), Some(criterion)) = (repeat.until, StoppingCriterion::of(repeat)) else {
        return (None, IntervalBasis::Ended(Stopping::Fixed));
    };
    let end = end.and_then(|end| end.until);
    let ends_at = end.map_or_else(
        || criterion.ends_at(Some(until.budget_s), elapsed_s, rounds),
        |end| end.ends_at,
    );
    let logs = awaited_contrasts(contrasts, until.ask).map(|contrast| &contrast.logs[..]);
    let standing = standing(logs, &criterion, ends_at);
    let (intervals, basis) = if end.is_some() {
        (
            Intervals::Reported,
            IntervalBasis::Ended(Stopping::Sequential),
        )
    } else {
        (
            Intervals::Lasting,
            IntervalBasis::Looking { criterion, ends_at },
        )
    };
    let result = AdaptiveResult {
        precision: until.precision,
        min_rounds: until.min_rounds,
        max_rounds: repeat.rounds,
        budget_s: until.budget_s,
        ask: until.ask,
        stopped: end.map(|end| end.why),
        ends_at,
        asked: standing.looks.len() as u32,
        known: standing.settled as u32,
        intervals,
    };
    (Some(result), basis)
}
