//! What a run would do, without doing any of it.

use std::path::Path;

use serde::Serialize;
use wirecost_model::cell::{Chosen, Experiment, Unbuilt};

use crate::datapath;
use crate::directory::refuse_existing;
use crate::forecast::{Forecast, forecast};
use crate::placement::{Placement, place};
use crate::rounds::{RunError, allowed_cpus, choose_seed};

/// Where the seed of the random order comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedSource {
    /// The command line.
    Option,
    /// The plan.
    Plan,
    /// The kernel's random source: another one in every run.
    Random,
}

/// A run that has not begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Seed of the random order.
    pub seed: u64,
    /// Where it comes from.
    pub seed_source: SeedSource,
    /// Who would run on which cores.
    pub placement: Placement,
    /// How long it would take.
    pub forecast: Forecast,
    /// The datapath that it would most likely choose, where that is not the first choice, and why.
    pub chosen: Option<Chosen>,
    /// What the kernel alone builds and this one has no driver for: cells of it would be left out.
    pub left_out: Vec<Unbuilt>,
    cells: usize,
    rounds: u32,
}

impl Preview {
    /// The cells of each round, in the order in which they would be measured.
    pub fn orders(&self) -> impl Iterator<Item = Vec<usize>> {
        (0..self.rounds).map(|round| wirecost_stats::order(self.cells, round, self.seed))
    }
}

/// Works out what [`run`](crate::run) would do. Reads which cores this process may use; needs no
/// privilege and changes nothing.
///
/// # Errors
/// Where `out` exists, as `run` would; where the cores or the random source cannot be read.
pub fn preview(
    experiment: &Experiment,
    out: Option<&Path>,
    seed: Option<u64>,
) -> Result<Preview, RunError> {
    refuse_existing(out)?;
    let (seed, seed_source) = choose_seed(seed, experiment.plan.seed)?;
    Ok(Preview {
        seed,
        seed_source,
        placement: place(experiment.plan.cores, &allowed_cpus()?),
        forecast: forecast(experiment, seed),
        chosen: datapath::forecast(experiment),
        left_out: datapath::left_out(experiment),
        cells: experiment.samples_a_round() as usize,
        rounds: experiment.plan.repeat.rounds,
    })
}
