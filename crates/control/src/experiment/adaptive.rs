//! Adaptive runs: one look after every round, and why no further one is begun.

use wirecost_model::cell::Experiment;
use wirecost_model::plan::Until;
use wirecost_model::record::{UntilEnd, WakeupCost, Why};
use wirecost_model::sample::Sample;
use wirecost_stats::sequential::{Aim, forecast, standing};
use wirecost_stats::{Observed, asked, barred, contrasts};

use super::forecast::{ASSUMED_SD, CHANCE, rounds_until_known};

/// What a look after a round saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterimAnalysis {
    /// Effects that are waited for.
    pub(crate) asked: u32,
    /// Of these, known.
    pub(crate) known: u32,
    /// Rounds that the run is expected to have at its end.
    pub(crate) rounds: u32,
    /// Why it ends here, where it does.
    pub(crate) end: Option<UntilEnd>,
}

/// Watches an adaptive run.
pub(crate) struct AdaptiveMonitor<'a> {
    experiment: &'a Experiment,
    until: Until,
    aim: Aim,
    observed: Observed,
}

impl<'a> AdaptiveMonitor<'a> {
    /// `None` where the number of rounds is fixed.
    pub(crate) fn of(experiment: &'a Experiment, cost: Option<WakeupCost>) -> Option<Self> {
        let repeat = &experiment.plan.repeat;
        Some(Self {
            experiment,
            until: repeat.until?,
            aim: Aim::of(repeat)?,
            observed: Observed::new(experiment, cost),
        })
    }

    /// Keeps what the looks need of a sample.
    pub(crate) fn taken(&mut self, sample: &Sample) {
        self.observed.add(sample);
    }

    /// Looks after `rounds` whole rounds, `elapsed_s` after the run began.
    ///
    /// The budget ends a run before a round that would not fit at the mean pace so far, never
    /// within one, and never below the least rounds: with fewer, nothing would be known at all.
    pub(crate) fn look(&self, rounds: u32, elapsed_s: f64) -> InterimAnalysis {
        let contrasts = contrasts(self.experiment, &self.observed);
        let effects = || asked(&contrasts, self.until.ask).map(|contrast| &contrast.logs[..]);
        let ends_at = self
            .aim
            .ends_at(Some(self.until.budget_s), elapsed_s, rounds);
        let standing = standing(effects(), &self.aim, ends_at);
        // Rounds do not make cells comparable.
        let nothing_open = standing.looks.is_empty() && barred(&contrasts, self.until.ask) > 0;
        let why = if rounds < self.aim.min_rounds {
            None
        } else if standing.known || nothing_open {
            Some(Why::Known)
        } else if rounds >= self.aim.max_rounds {
            Some(Why::MaxRounds)
        } else {
            (ends_at <= rounds).then_some(Why::Budget)
        };
        let open = standing.looks.iter().zip(effects());
        let needed = open.filter(|(look, _)| !look.settled).map(|(_, logs)| {
            match forecast(logs, &self.aim, CHANCE) {
                Some(forecast) => forecast.rounds.unwrap_or(u32::MAX),
                None => {
                    rounds_until_known(&self.experiment.plan.repeat, ASSUMED_SD).unwrap_or(u32::MAX)
                }
            }
        });
        let latest = ends_at.max(self.aim.min_rounds);
        InterimAnalysis {
            asked: standing.looks.len() as u32,
            known: standing.settled as u32,
            rounds: match why {
                Some(_) => rounds,
                // Nothing that could be known: it goes on to its end.
                None if standing.looks.is_empty() => latest,
                None => {
                    let needed = needed.max().unwrap_or(0);
                    needed
                        .max(self.aim.min_rounds)
                        .max(rounds + 1)
                        .min(latest.max(rounds + 1))
                }
            },
            end: why.map(|why| UntilEnd { why, ends_at }),
        }
    }
}

#[cfg(test)]
mod tests;
