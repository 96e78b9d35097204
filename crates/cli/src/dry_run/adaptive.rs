//! The stopping rule of an adaptive run, and how many rounds the run may take.

use serde::Serialize;
use wirecost_control::experiment::{ASSUMED_SD, rounds_until_known};
use wirecost_model::cell::Experiment;
use wirecost_model::plan::AwaitedEffects;
use wirecost_model::units::format_fraction;

use crate::screen;

/// Relative standard deviations of a sample for which the rounds are listed.
const SPREADS: [f64; 5] = [0.01, 0.02, ASSUMED_SD, 0.05, 0.08];

/// The plan's stopping rule, and the rounds that it leads to.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    precision: f64,
    worth: f64,
    budget_s: f64,
    pub(super) min_rounds: u32,
    max_rounds: u32,
    ask: AwaitedEffects,
    /// Relative standard deviation of a sample that the expected time assumes.
    assumed_sd: f64,
    /// Rounds that are enough for an effect at the margin with 80 % probability, by relative standard deviation.
    rounds_by_sd: Vec<BySpread>,
}

#[derive(Debug, Serialize)]
struct BySpread {
    sd: f64,
    /// Rounds, without the plan's upper limit; `null`: too many to be practical.
    rounds: Option<u32>,
}

pub(super) fn line(experiment: &Experiment) -> Option<Line> {
    let repeat = &experiment.plan.repeat;
    let until = repeat.until?;
    Some(Line {
        precision: until.precision,
        worth: repeat.worth,
        budget_s: until.budget_s,
        min_rounds: until.min_rounds,
        max_rounds: repeat.rounds,
        ask: until.ask,
        assumed_sd: ASSUMED_SD,
        rounds_by_sd: SPREADS
            .iter()
            .map(|&sd| BySpread {
                sd,
                rounds: rounds_until_known(repeat, sd),
            })
            .collect(),
    })
}

pub(super) fn text(line: &Line) -> String {
    let asked = match line.ask {
        AwaitedEffects::All => "every effect",
        AwaitedEffects::Throughput => "every effect on throughput",
        AwaitedEffects::Latency => "every effect on latency",
        AwaitedEffects::Cpu => "every effect on CPU",
    };
    let rounds = line.rounds_by_sd.iter().map(|by| {
        let rounds = by
            .rounds
            .map_or_else(|| "too many".into(), |rounds| rounds.to_string());
        format!("{} at {}", rounds, format_fraction(by.sd))
    });
    let rounds: Vec<String> = rounds.collect();
    format!(
        "Adaptive run: it stops when {asked} has its verdict against {} or an interval within ±{}, and after at most \
         {} rounds or {}. How long that takes depends on how much samples of one cell vary, which only the run can \
         tell: the time above assumes {}. Rounds for an effect right at the margin, where it takes most, by that \
         spread: {}.",
        format_fraction(line.worth),
        format_fraction(line.precision),
        line.max_rounds,
        screen::duration(line.budget_s),
        format_fraction(line.assumed_sd),
        rounds.join(", ")
    )
}
