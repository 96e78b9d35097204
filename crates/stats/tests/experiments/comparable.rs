//! The guard before every verdict: each check at its threshold, and beside it.

mod cores;
mod figure;
mod host;
mod paced;
mod packets;

use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::effect::{Effect, RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::Sample;
use wirecost_stats::Stopping;

use crate::small::{contrasts, experiment, sample};

/// Rounds of every planted run.
pub(crate) const ROUNDS: u32 = 4;

/// A run of two cells that differ in one factor.
pub(crate) struct Planted {
    pub(crate) experiment: Experiment,
    pub(crate) samples: Vec<Sample>,
    pub(crate) cost: Option<WakeupCost>,
}

impl Planted {
    /// The second cell is twice as fast, with half the CPU for each Gbit.
    pub(crate) fn of(key: &str, levels: [&str; 2]) -> Self {
        let mut experiment = experiment(Cores::Split);
        let cell = experiment.cells[0].clone();
        experiment.factors = vec![Factor {
            key: key.into(),
            levels: levels.map(str::to_owned).into(),
        }];
        let numbered = |index: u32| Cell {
            index,
            levels: [(key.to_owned(), levels[index as usize].to_owned())].into(),
            ..cell.clone()
        };
        experiment.cells = vec![numbered(0), numbered(1)];
        let samples = (0..ROUNDS).flat_map(|round| {
            let jitter = 1.0 + f64::from(round % 2) * 0.002;
            [0, 1].map(|cell| sample(round, cell, 5.0 * f64::from(cell + 1) * jitter, 0.5))
        });
        Self {
            samples: samples.collect(),
            experiment,
            cost: None,
        }
    }

    /// Changes a cell.
    pub(crate) fn cell(mut self, index: usize, change: impl Fn(&mut Cell)) -> Self {
        change(&mut self.experiment.cells[index]);
        self
    }

    /// Changes both.
    pub(crate) fn cells(self, change: impl Fn(&mut Cell)) -> Self {
        self.cell(0, &change).cell(1, &change)
    }

    /// Changes every sample of a cell.
    pub(crate) fn sampled(mut self, cell: u32, change: impl Fn(&mut Sample)) -> Self {
        let of_cell = self.samples.iter_mut().filter(|sample| sample.cell == cell);
        of_cell.for_each(change);
        self
    }

    /// The effect on a metric.
    #[track_caller]
    pub(crate) fn effect(&self, metric: Metric) -> Effect {
        let contrasts = contrasts(&self.experiment, &self.samples, self.cost);
        let found = contrasts.iter().find(|contrast| contrast.metric == metric);
        found.expect("a contrast").effect(0.05, Stopping::Fixed)
    }

    /// What bars the verdict on a metric; nothing where it is spoken.
    #[track_caller]
    pub(crate) fn not_comparable(&self, metric: Metric) -> Option<RemarkKind> {
        let effect = self.effect(metric);
        let barred = effect.not_comparable.map(|remark| remark.kind);
        assert_eq!(barred.is_some(), effect.verdict == Verdict::NotComparable);
        barred
    }

    /// What stands beside it.
    #[track_caller]
    pub(crate) fn remarks(&self, metric: Metric) -> Vec<RemarkKind> {
        let remarks = self.effect(metric).remarks;
        remarks.iter().map(|remark| remark.kind).collect()
    }
}

#[test]
fn two_cells_that_differ_in_nothing_else_have_their_verdict() {
    let planted = Planted::of("encapsulation", ["none", "vxlan"]);
    for metric in [Metric::Throughput, Metric::SenderCpu, Metric::ReceiverCpu] {
        assert_eq!(planted.effect(metric).verdict, Verdict::Pays);
        assert_eq!(planted.remarks(metric), []);
    }
}
