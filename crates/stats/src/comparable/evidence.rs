//! What the samples of a cell show besides its figures, for the checks of comparability.

use std::collections::BTreeMap;

use wirecost_model::cell::Cell;
use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::ZeroCopyCounts;

use crate::observed::{Observed, Series};
use crate::sums::LoadSums;

/// One load of one cell over its valid samples.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    observed: &'a Observed,
    pub(super) cell: &'a Cell,
    pub(super) load: &'a NamedLoad,
    pub(super) sums: &'a LoadSums,
    /// Core time that a wake-up costs on the machine of the run.
    pub(super) cost: Option<WakeupCost>,
    /// Geometric mean of the segments per packet at the receiver.
    pub(super) received: Option<f64>,
    /// Geometric mean of the segments per packet at the sender.
    pub(super) sent: Option<f64>,
    /// Samples that fell behind their schedule, and the smallest share of the schedule that was kept (0..=1).
    pub(super) behind: Option<(usize, f64)>,
    /// Samples in which the load's own threads were the bottleneck.
    pub(super) generator_bound: usize,
    /// Share (0..=1) of packets that were dropped from a backlog. `None` where no packet was counted.
    pub(super) dropped: Option<f64>,
    /// Counts of sends by zero copy.
    pub(super) zero_copy: Option<ZeroCopyCounts>,
    /// Smallest round trip reported by a socket, microseconds; `None` where no socket was read.
    pub(super) min_rtt_us: Option<u32>,
}

impl Observed {
    /// The evidence of a cell's load besides its figures. `None` for a load or a cell that is not of the experiment.
    pub fn evidence<'a>(&'a self, cell: &'a Cell, load: &'a NamedLoad) -> Option<Evidence<'a>> {
        let sums = self.load_sums(cell.index, &load.name)?;
        Some(Evidence::new(self, cell, load, sums))
    }
}

impl<'a> Evidence<'a> {
    fn new(
        observed: &'a Observed,
        cell: &'a Cell,
        load: &'a NamedLoad,
        sums: &'a LoadSums,
    ) -> Self {
        let handled = sums.handled;
        Self {
            observed,
            cell,
            load,
            sums,
            cost: observed.cost(),
            received: sums.received.mean(),
            sent: sums.sent.mean(),
            behind: sums.behind,
            generator_bound: sums.generator_bound,
            dropped: (handled > 0).then(|| sums.drops as f64 / (handled + sums.drops) as f64),
            zero_copy: sums.zero_copy,
            min_rtt_us: sums.min_rtt_us,
        }
    }

    /// Number of valid samples.
    pub(super) fn count(&self) -> usize {
        self.sums.samples
    }

    /// The column of one of the load's metrics.
    pub(super) fn series(&self, metric: Metric) -> Option<&'a Series> {
        let figure = Figure {
            load: self.load.name.clone(),
            metric,
        };
        self.observed.series(self.cell.index, &figure)
    }

    /// The mean of a metric over the samples that have it, in its own unit.
    pub(super) fn mean(&self, metric: Metric) -> Option<f64> {
        let values = self.series(metric)?.values();
        let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), (_, value)| {
            (sum + value, count + 1)
        });
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Cores used by other programs, the mean over the samples that recorded them.
    pub(super) fn foreign_cores(&self) -> Option<f64> {
        let (sum, count) = self.sums.foreign;
        (count > 0).then(|| sum / count as f64)
    }

    /// Cache-line round trip between the cores by round, nanoseconds.
    pub(super) fn core_distance(&self) -> BTreeMap<u32, f64> {
        let conditions = self.observed.core_conditions(self.cell.index);
        let each = conditions
            .into_iter()
            .flat_map(crate::observed::CoreConditions::each);
        each.filter_map(|(round, _, distance)| Some((round, distance?)))
            .collect()
    }

    /// Latency from sent to answered, of all transactions.
    pub const fn latency(&self) -> &'a Latency {
        &self.sums.latency
    }

    /// Lateness from due to sent, of all transactions.
    pub const fn lateness(&self) -> &'a Latency {
        &self.sums.lateness
    }

    /// Whether both lateness and latency were recorded.
    pub(super) fn has_lateness(&self) -> bool {
        self.lateness().count() > 0 && self.latency().count() > 0
    }
}

/// Geometric mean of the positive values. `None` without one.
pub(super) fn geometric(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
