//! Forecasts how long a run takes: the same rule before the run and for the time left within it.
//!
//! A sample takes its warm-up, its window, and the time around them: adapting the devices, the proofs, connecting and
//! closing. The time left is the forecast of the samples to come, times the pace of the samples taken (actual time by
//! forecast time, 1 before the first sample).
//!
//! The rounds of an adaptive run are forecast from an assumed spread before the run, and from the observed spread
//! within it.

use std::time::Duration;

use serde::Serialize;
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::load::NamedLoad;
use wirecost_model::plan::Repeat;
use wirecost_stats::sequential::{StoppingCriterion, rounds_needed};

use crate::timeouts::memory_timeout;
use crate::window::TO_THE_END;

/// Labs kept at the same time; beyond that the least recently used lab is removed.
pub(crate) const MAX_LABS: usize = 8;

/// Seconds of a sample around warm-up and window, without its connections. Where a cell also has a window without its
/// rate-limited line, the plan's seconds are shared between the two windows.
///
/// Measured in a lab on two cores: 17 to 20 ms with one connection, 50 to 60 ms with eight
/// (`took_s` of samples less warm-up and window).
const AROUND_S: f64 = 0.012;
/// Seconds that each connection adds to [`AROUND_S`].
const AROUND_CONNECTION_S: f64 = 0.006;
/// Seconds in which a machine's memory is filled and compared, per GiB.
///
/// Measured between two network namespaces on two cores, beside a busy process: 2.2 to 3.2 s per GiB with the move
/// (`time wirecost load A B migration --memory 2GiB`, with 1 and 4 machines and 1 and 4 channels). Pages that are sent
/// again, pages of zeros and the search for a limit are not known before.
const MEMORY_S_PER_GIB: f64 = 2.1;
/// Seconds in which it is moved, per GiB, where no line limits it: 0.68 s for 2 GiB and 3.0 s for 8 GiB in the table of
/// `wirecost study multi-nic-vmotion --hosts netns:A,netns:B`.
const MOVE_S_PER_GIB: f64 = 0.4;
/// Seconds to build a lab and to remove it; building takes 8 to 30 ms.
const LAB_S: f64 = 0.03;

/// The relative standard deviation of a sample that is assumed before an adaptive run: what
/// rate-limited labs on two cores showed was 1 to 3 %.
pub const ASSUMED_SD: f64 = 0.03;
/// Probability that the forecast number of rounds is enough.
pub(crate) const CHANCE: f64 = 0.8;

/// The rounds after which an adaptive run has its verdict on one effect with 80 % probability, if samples of a cell
/// have the relative standard deviation `sd` and the effect equals the margin, where most rounds are needed. The plan's
/// upper limit on rounds is ignored. `None`: too many rounds, or a fixed number of rounds.
pub fn rounds_until_known(repeat: &Repeat, sd: f64) -> Option<u32> {
    let criterion = StoppingCriterion::of(repeat)?;
    rounds_needed(
        sd * std::f64::consts::SQRT_2,
        1.0 + criterion.worth,
        &criterion,
        CHANCE,
    )
}

/// The expected duration of a run and its parts. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Rounds: the plan's, or those expected of an adaptive run ([`ASSUMED_SD`]).
    pub rounds: u32,
    /// Samples: cells times rounds.
    pub samples: u32,
    /// Those of `samples` whose cell the datapath cannot build: they take no time.
    pub skipped: u32,
    /// Time of the measured windows of all samples.
    pub windows_s: f64,
    /// Time of the warm-ups of all samples.
    pub warmups_s: f64,
    /// Time around warm-ups and windows: adapting, proving, pauses before migrations, connecting, closing, and moves of
    /// machines beyond the plan's seconds.
    pub around_s: f64,
    /// Labs that are built; a lab that is removed to make room and built again counts again.
    pub labs: u32,
    /// Time to build and remove labs.
    pub labs_s: f64,
    /// Total time.
    pub total_s: f64,
}

/// Forecasts a run whose random order comes from `seed`.
pub fn forecast(experiment: &Experiment, seed: u64) -> Forecast {
    let repeat = &experiment.plan.repeat;
    let expected = expected_rounds(experiment);
    let rounds = f64::from(expected);
    let samples = expected * experiment.samples_a_round();
    let is_skipped = |cell: &&Cell| experiment.skips(cell).is_some();
    let skipped = expected * experiment.measured().filter(is_skipped).count() as u32;
    let labs = labs_built(experiment, seed, expected);
    let built = experiment.measured().filter(|cell| !is_skipped(cell));
    // The sum of nothing would be -0.0.
    let around = built.map(|cell| around_s(cell, repeat.seconds));
    let around_s = rounds * around.fold(0.0, |sum, one| sum + one);
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

/// Seconds of one round without building labs.
pub(crate) fn round_s(experiment: &Experiment) -> f64 {
    let cells = experiment.measured();
    cells.map(|cell| sample_s(experiment, cell)).sum()
}

/// How many labs are built where the least recently used lab makes room for the next.
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
    // Between hosts programs of other tunnels do not stay attached (`Labs::get`).
    let alone = |(_, network): &(usize, Network)| {
        experiment.plan.hosts.is_tunnel() && network.datapath == Datapath::Ebpf
    };
    if networks.len() <= MAX_LABS && !networks.iter().any(alone) {
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
            up.retain(|known| *known == network || !alone(known));
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

fn around_s(cell: &Cell, seconds: f64) -> f64 {
    let streams: u32 = cell.loads.iter().map(|named| named.load.streams).sum();
    let pauses = cell.loads.iter().filter_map(|named| named.load.migration);
    let pause = pauses.map(|migration| migration.pause.as_secs_f64());
    // Both windows open connections of their own.
    let connections = f64::from(streams * cell.windows());
    let memory = cell.loads.iter().map(|named| named.load.moved_memory());
    let bytes = memory.sum::<u64>() as f64;
    let gib = bytes / f64::from(1 << 30);
    let flows = cell.loads.iter().map(|named| named.load.connections());
    let links = f64::from(cell.network.links.min(flows.sum()));
    let line = cell.network.rate.map(|rate| rate as f64 * links);
    let by_line = line.map_or(0.0, |rate| 8.0 * bytes / rate);
    let moves_s = MEMORY_S_PER_GIB * gib + by_line.max(MOVE_S_PER_GIB * gib);
    let beyond_s = (moves_s * f64::from(cell.windows()) - seconds).max(0.0);
    AROUND_S + AROUND_CONNECTION_S * connections + pause.fold(0.0, f64::max) + beyond_s
}

fn sample_s(experiment: &Experiment, cell: &Cell) -> f64 {
    if experiment.skips(cell).is_some() {
        return 0.0;
    }
    let repeat = &experiment.plan.repeat;
    repeat.warmup + repeat.seconds + around_s(cell, repeat.seconds)
}

/// The longest time that a sample can take by the plan. Hosts of other pairs are asked for nothing meanwhile, nor are
/// the sample's own within the pause before a migration.
pub(crate) fn longest_sample(experiment: &Experiment) -> Duration {
    let of = |cell: &Cell| {
        let planned = Duration::try_from_secs_f64(sample_s(experiment, cell));
        let by_itself = |named: &NamedLoad| named.load.ends_by_itself();
        let ending = if cell.loads.iter().any(by_itself) {
            TO_THE_END * cell.windows()
        } else {
            Duration::ZERO
        };
        let planned = planned.unwrap_or(Duration::MAX);
        planned.saturating_add(ending + memory_timeout(&cell.loads))
    };
    experiment.measured().map(of).max().unwrap_or_default()
}

/// Forecasts the time left while a run goes on.
#[derive(Debug)]
pub(crate) struct RemainingTime<'a> {
    experiment: &'a Experiment,
    /// Forecast time of the samples taken, seconds.
    taken_s: f64,
    /// Forecast time of the samples to come, seconds.
    to_come_s: f64,
    /// Forecast time of one round, seconds.
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

    /// Sets the number of rounds to come, after a complete round.
    pub(crate) fn expect(&mut self, rounds: u32) {
        self.to_come_s = f64::from(rounds) * self.round_s;
    }

    /// Records that a sample of a cell was taken.
    pub(crate) fn taken(&mut self, cell: &Cell) {
        let seconds = sample_s(self.experiment, cell);
        self.taken_s += seconds;
        self.to_come_s = (self.to_come_s - seconds).max(0.0);
    }

    /// Seconds left, `elapsed_s` seconds after the start of the first sample.
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
