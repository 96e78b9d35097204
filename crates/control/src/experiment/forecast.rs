//! How long a run takes: one rule for what is said before it and for the time left within it.
//!
//! A sample is its warm-up, its window, and what lies around them: adapting the devices, the proofs,
//! connecting and closing. The time left is the forecast of what is not yet taken, times the pace of
//! what is: before the first sample the pace is 1.
//!
//! How many rounds an adaptive run takes is forecast from an assumed spread before it, and from
//! the spread seen within it.

use serde::Serialize;
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::plan::Repeat;
use wirecost_stats::sequential::{Aim, rounds_needed};

use super::labs::MAX_LABS;

/// Seconds of a sample around warm-up and window, without its connections. Where a cell has a window without its line too, the
/// plan's seconds are shared between the two.
///
/// Measured in a lab on two cores: 17 to 20 ms with one connection, 50 to 60 ms with eight
/// (`took_s` of samples less warm-up and window).
const AROUND_S: f64 = 0.012;
/// Seconds that each connection adds to it.
const AROUND_CONNECTION_S: f64 = 0.006;
/// Seconds to build a lab and to take it down; it is up in 8 to 30 ms.
const LAB_S: f64 = 0.03;

/// The relative standard deviation of a sample that is assumed before an adaptive run: what
/// rate-limited labs on two cores showed was 1 to 3 %.
pub const ASSUMED_SD: f64 = 0.03;
/// The chance with which the rounds that are forecast are enough.
pub(crate) const CHANCE: f64 = 0.8;

/// The rounds with which an adaptive run has its verdict on one effect four times of five,
/// if samples of a cell have the relative standard deviation `sd` and the effect is right at the
/// margin, where it takes most. The plan's most rounds are not minded; `None` is more than anybody
/// would wait for, or a fixed number of rounds.
pub fn rounds_until_known(repeat: &Repeat, sd: f64) -> Option<u32> {
    let aim = Aim::of(repeat)?;
    rounds_needed(sd * std::f64::consts::SQRT_2, 1.0 + aim.worth, &aim, CHANCE)
}

/// What a run is expected to take, and of what that is made up. Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Rounds: the plan's, or those expected of an adaptive run ([`ASSUMED_SD`]).
    pub rounds: u32,
    /// Samples: cells times rounds.
    pub samples: u32,
    /// Of these, those of cells that their datapath cannot build, which take no time.
    pub skipped: u32,
    /// The measured windows of all samples.
    pub windows_s: f64,
    /// Their warm-ups.
    pub warmups_s: f64,
    /// What lies around them: adapting, proving, connecting, closing.
    pub around_s: f64,
    /// Labs that are built, those counted again that had to make room for others.
    pub labs: u32,
    /// Building them.
    pub labs_s: f64,
    /// All of it.
    pub total_s: f64,
}

/// Forecasts a run whose order comes from `seed`.
pub fn forecast(experiment: &Experiment, seed: u64) -> Forecast {
    let repeat = &experiment.plan.repeat;
    let expected = expected_rounds(experiment);
    let rounds = f64::from(expected);
    let samples = expected * experiment.samples_a_round();
    let is_skipped = |cell: &&Cell| experiment.skips(cell).is_some();
    let skipped = expected * experiment.measured().filter(is_skipped).count() as u32;
    let labs = labs_built(experiment, seed, expected);
    let built = experiment.measured().filter(|cell| !is_skipped(cell));
    let around_s = rounds * built.map(around_s).sum::<f64>();
    let windows = f64::from(samples - skipped);
    let (windows_s, warmups_s) = (windows * repeat.seconds, windows * repeat.warmup);
    let labs_s = f64::from(labs) * LAB_S;
    Forecast {
        rounds: expected,
        samples,
        skipped,
        windows_s,
        warmups_s,
        around_s,
        labs,
        labs_s,
        total_s: windows_s + warmups_s + around_s + labs_s,
    }
}

fn expected_rounds(experiment: &Experiment) -> u32 {
    let repeat = &experiment.plan.repeat;
    let Some(until) = repeat.until else {
        return repeat.rounds;
    };
    let affordable = (until.budget_s / round_s(experiment)).floor() as u32;
    rounds_until_known(repeat, ASSUMED_SD)
        .unwrap_or(u32::MAX)
        .min(affordable)
        .clamp(until.min_rounds, repeat.rounds)
}

/// Seconds of one round without its labs.
pub(crate) fn round_s(experiment: &Experiment) -> f64 {
    let cells = experiment.measured();
    cells.map(|cell| sample_s(experiment, cell)).sum()
}

/// How many labs are built when the one unused for longest makes room for the next.
fn labs_built(experiment: &Experiment, seed: u64, rounds: u32) -> u32 {
    let cells: Vec<&Cell> = experiment.measured().collect();
    let is_built = |cell: &&&Cell| experiment.skips(cell).is_none();
    let lab = |cell: &'_ Cell| -> (usize, Network) {
        (experiment.plan.pair_of(&cell.levels), cell.network.clone())
    };
    let mut networks: Vec<(usize, Network)> = cells
        .iter()
        .filter(is_built)
        .map(|cell| lab(cell))
        .collect();
    networks.sort_unstable();
    networks.dedup();
    if networks.len() <= MAX_LABS {
        return networks.len() as u32;
    }
    let mut built = 0;
    let mut up: Vec<(usize, Network)> = Vec::new();
    for round in 0..rounds {
        for cell in wirecost_stats::order(cells.len(), round, seed) {
            let network = lab(cells[cell]);
            if experiment.skips(cells[cell]).is_some() {
                continue;
            }
            if let Some(at) = up.iter().position(|known| *known == network) {
                up.remove(at);
            } else {
                built += 1;
                if up.len() == MAX_LABS {
                    up.remove(0);
                }
            }
            up.push(network);
        }
    }
    built
}

fn around_s(cell: &Cell) -> f64 {
    let streams: u32 = cell.loads.iter().map(|named| named.load.streams).sum();
    // Both windows open connections of their own.
    AROUND_S + AROUND_CONNECTION_S * f64::from(streams * cell.windows())
}

fn sample_s(experiment: &Experiment, cell: &Cell) -> f64 {
    if experiment.skips(cell).is_some() {
        return 0.0;
    }
    let repeat = &experiment.plan.repeat;
    let pauses = cell.loads.iter().filter_map(|named| named.load.migration);
    let pause = pauses.map(|migration| migration.pause.as_secs_f64());
    repeat.warmup + repeat.seconds + around_s(cell) + pause.fold(0.0, f64::max)
}

/// The forecast while a run goes on.
#[derive(Debug)]
pub(crate) struct RemainingTime<'a> {
    experiment: &'a Experiment,
    /// Forecast of the samples taken, and of those to come, in seconds.
    taken_s: f64,
    to_come_s: f64,
    round_s: f64,
}

impl<'a> RemainingTime<'a> {
    pub(crate) fn new(experiment: &'a Experiment, rounds: u32) -> Self {
        let one_s = round_s(experiment);
        Self {
            experiment,
            taken_s: 0.0,
            to_come_s: f64::from(rounds) * one_s,
            round_s: one_s,
        }
    }

    /// After a whole round: so many are to come.
    pub(crate) fn expect(&mut self, rounds: u32) {
        self.to_come_s = f64::from(rounds) * self.round_s;
    }

    /// One more sample was taken.
    pub(crate) fn taken(&mut self, cell: &Cell) {
        let seconds = sample_s(self.experiment, cell);
        self.taken_s += seconds;
        self.to_come_s = (self.to_come_s - seconds).max(0.0);
    }

    /// Seconds left, `elapsed_s` after the first sample was begun.
    pub(crate) fn left_s(&self, elapsed_s: f64) -> f64 {
        let pace = if self.taken_s > 0.0 {
            elapsed_s / self.taken_s
        } else {
            1.0
        };
        self.to_come_s * pace
    }
}

#[cfg(test)]
mod tests;
