//! Figures: a metric of one of a run's loads, and which of them a run has.

use serde::{Deserialize, Serialize};

use super::Metric;
use crate::cell::Experiment;
use crate::load::Workload;
use crate::sample::Sample;

/// One metric of one load: the subject of a table's column or of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Figure {
    /// The load's name.
    pub load: String,
    /// The metric.
    pub metric: Metric,
}

impl Figure {
    /// The value in one sample; see [`Metric::value`].
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        self.metric.value(sample, &self.load)
    }
}

impl Experiment {
    /// Every metric of every load, in the order of the cells' loads. CPU is a figure of a load only where some cell
    /// runs it alone: the CPU time of several loads at once belongs to none of them.
    pub fn figures(&self) -> Vec<Figure> {
        self.figures_by(|workload| Metric::of(workload, self.plan.cores).to_vec())
    }

    /// [`Self::figures`], with the metrics that only tables show ([`Metric::shown`]).
    pub fn shown_figures(&self) -> Vec<Figure> {
        self.figures_by(|workload| Metric::shown(workload, self.plan.cores))
    }

    fn figures_by(&self, metrics: impl Fn(Workload) -> Vec<Metric>) -> Vec<Figure> {
        let mut figures: Vec<Figure> = Vec::new();
        for cell in &self.cells {
            for named in &cell.loads {
                let alone = cell.loads.len() == 1;
                let migration = named.load.migration;
                let finds_limit = migration.is_some_and(|migration| migration.find_limit);
                let metrics = metrics(named.load.workload);
                let these = metrics
                    .iter()
                    .filter(|metric| alone || !metric.is_cpu())
                    .filter(|metric| **metric != Metric::DirtyLimit || finds_limit)
                    .map(|&metric| Figure {
                        load: named.name.clone(),
                        metric,
                    });
                let new: Vec<Figure> = these.filter(|one| !figures.contains(one)).collect();
                figures.extend(new);
            }
        }
        figures
    }
}
