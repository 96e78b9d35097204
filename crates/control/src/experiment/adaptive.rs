//! Adaptive runs: an interim analysis after every round, which decides whether another round is begun.

use wirecost_model::cell::Experiment;
use wirecost_model::plan::StoppingRule;
use wirecost_model::record::{AdaptiveEnd, StopReason, WakeupCost};
use wirecost_model::sample::Sample;
use wirecost_stats::sequential::{StoppingCriterion, forecast, standing};
use wirecost_stats::{Observed, awaited_contrasts, contrasts, none_can_settle};

use super::forecast::{ASSUMED_SD, CHANCE, rounds_until_known};

/// The result of the interim analysis after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterimAnalysis {
    /// Effects that the run waits for.
    pub(crate) asked: u32,
    /// Those of `asked` that are known.
    pub(crate) known: u32,
    /// Rounds that the run is expected to have at its end.
    pub(crate) rounds: u32,
    /// Why the run ends after this round; `None`: it goes on.
    pub(crate) end: Option<AdaptiveEnd>,
}

/// Decides after each round of an adaptive run whether to go on.
pub(crate) struct AdaptiveMonitor<'a> {
    experiment: &'a Experiment,
    until: StoppingRule,
    criterion: StoppingCriterion,
    observed: Observed,
}

impl<'a> AdaptiveMonitor<'a> {
    /// The monitor of a run; `None` where the number of rounds is fixed.
    pub(crate) fn of(experiment: &'a Experiment, cost: Option<WakeupCost>) -> Option<Self> {
        let repeat = &experiment.plan.repeat;
        Some(Self {
            experiment,
            until: repeat.until?,
            criterion: StoppingCriterion::of(repeat)?,
            observed: Observed::new(experiment, cost),
        })
    }

    /// Records a sample for the interim analyses.
    pub(crate) fn taken(&mut self, sample: &Sample) {
        self.observed.add(sample);
    }

    /// The interim analysis after `rounds` complete rounds, `elapsed_s` seconds after the run began.
    ///
    /// The budget ends a run before a round that would not fit at the mean pace so far, never within a round, and never
    /// before the plan's `min_rounds`: with fewer, no effect could be known.
    pub(crate) fn interim_analysis(&self, rounds: u32, elapsed_s: f64) -> InterimAnalysis {
        let contrasts = contrasts(self.experiment, &self.observed);
        let effects =
            || awaited_contrasts(&contrasts, self.until.ask).map(|contrast| &contrast.logs[..]);
        let ends_at = self
            .criterion
            .ends_at(Some(self.until.budget_s), elapsed_s, rounds);
        let standing = standing(effects(), &self.criterion, ends_at);
        // Further rounds do not make cells comparable that are not, and a sample with too few transactions for a
        // percentile stays.
        let nothing_open = standing.looks.is_empty() && none_can_settle(&contrasts, self.until.ask);
        let why = if rounds < self.criterion.min_rounds {
            None
        } else if standing.known || nothing_open {
            Some(StopReason::Known)
        } else if rounds >= self.criterion.max_rounds {
            Some(StopReason::MaxRounds)
        } else {
            (ends_at <= rounds).then_some(StopReason::Budget)
        };
        let open = standing.looks.iter().zip(effects());
        let needed = open.filter(|(look, _)| !look.settled).map(|(_, logs)| {
            match forecast(logs, &self.criterion, CHANCE) {
                Some(forecast) => forecast.rounds.unwrap_or(u32::MAX),
                None => {
                    rounds_until_known(&self.experiment.plan.repeat, ASSUMED_SD).unwrap_or(u32::MAX)
                }
            }
        });
        let latest = ends_at.max(self.criterion.min_rounds);
        InterimAnalysis {
            asked: standing.looks.len() as u32,
            known: standing.settled as u32,
            rounds: match why {
                Some(_) => rounds,
                // No effect that could become known: the run goes on to its last round.
                None if standing.looks.is_empty() => latest,
                None => {
                    let needed = needed.max().unwrap_or(0);
                    needed
                        .max(self.criterion.min_rounds)
                        .max(rounds + 1)
                        .min(latest.max(rounds + 1))
                }
            },
            end: why.map(|why| AdaptiveEnd { why, ends_at }),
        }
    }
}

#[cfg(test)]
mod tests;
