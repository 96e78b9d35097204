//! How long a run takes: one rule for what is said before it and for the time left within it.
//!
//! A sample is its warm-up, its window, and what lies around them: adapting the devices, the proofs,
//! connecting and closing. The time left is the forecast of what is not yet taken, times the pace of
//! what is: before the first sample the pace is 1.

use serde::Serialize;
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::plan::Repeat;

use crate::labs::MAX_LABS;

/// Seconds of a sample around warm-up and window, without its connections.
///
/// Measured in a lab on two cores: 17 to 20 ms with one connection, 50 to 60 ms with eight
/// (`took_s` of samples less warm-up and window).
const AROUND_S: f64 = 0.012;
/// Seconds that each connection adds to it.
const AROUND_CONNECTION_S: f64 = 0.006;
/// Seconds to build a lab and to take it down; it is up in 8 to 30 ms.
const LAB_S: f64 = 0.03;

/// What a run is expected to take, and of what that is made up. Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Samples: cells times rounds.
    pub samples: u32,
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
    let rounds = f64::from(repeat.rounds);
    let samples = repeat.rounds * experiment.cells.len() as u32;
    let labs = labs_built(experiment, seed);
    let around_s = rounds * experiment.cells.iter().map(around_s).sum::<f64>();
    let (windows_s, warmups_s) = (
        f64::from(samples) * repeat.seconds,
        f64::from(samples) * repeat.warmup,
    );
    let labs_s = f64::from(labs) * LAB_S;
    Forecast {
        samples,
        windows_s,
        warmups_s,
        around_s,
        labs,
        labs_s,
        total_s: windows_s + warmups_s + around_s + labs_s,
    }
}

/// How many labs are built when the one unused for longest makes room for the next.
fn labs_built(experiment: &Experiment, seed: u64) -> u32 {
    let cells = &experiment.cells;
    let mut networks: Vec<&Network> = cells.iter().map(|cell| &cell.network).collect();
    networks.sort_unstable();
    networks.dedup();
    if networks.len() <= MAX_LABS {
        return networks.len() as u32;
    }
    let mut built = 0;
    let mut up: Vec<&Network> = Vec::new();
    for round in 0..experiment.plan.repeat.rounds {
        for cell in wirecost_stats::order(cells.len(), round, seed) {
            let network = &cells[cell].network;
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
    AROUND_S + AROUND_CONNECTION_S * f64::from(cell.load.streams)
}

fn sample_s(repeat: &Repeat, cell: &Cell) -> f64 {
    repeat.warmup + repeat.seconds + around_s(cell)
}

/// The forecast while a run goes on.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    repeat: &'a Repeat,
    /// Forecast of the samples taken, and of those to come, in seconds.
    taken_s: f64,
    to_come_s: f64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        let repeat = &experiment.plan.repeat;
        let round = experiment.cells.iter().map(|cell| sample_s(repeat, cell));
        Self {
            repeat,
            taken_s: 0.0,
            to_come_s: f64::from(repeat.rounds) * round.sum::<f64>(),
        }
    }

    /// One more sample was taken.
    pub(crate) fn taken(&mut self, cell: &Cell) {
        let seconds = sample_s(self.repeat, cell);
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
