//! `wirecost run --dry-run`: what a run would do, without doing any of it.

use std::path::Path;

use wirecost_model::cell::{ChosenDatapath, Experiment, UnsupportedEncapsulation};
use wirecost_model::line::LineRelease;

use super::datapath;
use super::directory::refuse_existing;
use super::error::RunError;
use super::forecast::{Forecast, forecast};
use super::line;
use super::start::{SeedSource, allowed_cpus, choose_seed};
use crate::placement::{Placement, place_run};

/// What a run would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Seed of the random order.
    pub seed: u64,
    /// Where the seed comes from.
    pub seed_source: SeedSource,
    /// Which host would run on which cores.
    pub placement: Placement,
    /// How long the run would take.
    pub forecast: Forecast,
    /// The datapath that the run would most likely choose, where that is not the first choice, and why.
    pub chosen: Option<ChosenDatapath>,
    /// How rate-limited lines would most likely release packets; `None` where no cell has one, or where that is
    /// unknown.
    pub line: Option<LineRelease>,
    /// Encapsulations that only the kernel's datapath has and this kernel has no driver for: their cells would be
    /// left out.
    pub left_out: Vec<UnsupportedEncapsulation>,
    cells: usize,
    rounds: u32,
}

impl Preview {
    /// The cells of each round, in the order in which they would be measured.
    pub fn orders(&self) -> impl Iterator<Item = Vec<usize>> {
        (0..self.rounds).map(|round| wirecost_stats::order(self.cells, round, self.seed))
    }
}

/// Works out what [`run`](crate::experiment::run) would do. Reads which cores this process may use; needs no
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
    let placement = place_run(experiment, &allowed_cpus()?);
    let core = placement.line;
    Ok(Preview {
        seed,
        seed_source,
        placement,
        forecast: forecast(experiment, seed),
        chosen: datapath::forecast(experiment),
        line: line::forecast(experiment).map(|line| LineRelease { core, ..line }),
        left_out: datapath::left_out(experiment),
        cells: experiment.samples_a_round() as usize,
        rounds: experiment.plan.repeat.rounds,
    })
}
