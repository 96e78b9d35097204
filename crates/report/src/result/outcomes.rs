//! Columns of the figures that published comparisons are about but that get no verdict of their own.

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::comparison_cells::cells_with;
use wirecost_model::metric::Figure;
use wirecost_model::published::{Outcome, Published};
use wirecost_model::sample::Sample;
use wirecost_stats::Observed;

/// Columns of values, by cell and figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcomes(BTreeMap<(u32, Outcome), Column>);

/// Values of one load with their rounds, by ascending round.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    load: String,
    values: Vec<(u32, f64)>,
}

impl Outcomes {
    /// Empty columns for the cells that the plan's published comparisons and charts are about.
    pub(crate) fn new(experiment: &Experiment) -> Self {
        let mut columns = BTreeMap::new();
        let mut want = |cell: &Cell, outcome: Outcome| {
            let load = outcome.load(experiment, [cell, cell]);
            if let (Some(load), false) = (load, matches!(outcome, Outcome::Of(_))) {
                let column = Column {
                    load: load.to_owned(),
                    values: Vec::new(),
                };
                columns.insert((cell.index, outcome), column);
            }
        };
        let published = experiment.plan.published.iter();
        for Published {
            comparisons,
            charts,
            ..
        } in published
        {
            for comparison in comparisons {
                for cell in comparison.cells(experiment).into_iter().flatten() {
                    want(cell, comparison.metric);
                }
            }
            for chart in charts {
                for cell in cells_with(experiment, &chart.levels) {
                    want(cell, chart.metric);
                }
            }
        }
        Self(columns)
    }

    /// Adds a sample; an invalid one adds nothing.
    pub(crate) fn add(&mut self, sample: &Sample) {
        if sample.invalid.is_some() {
            return;
        }
        for ((cell, outcome), Column { load, values }) in &mut self.0 {
            if *cell == sample.cell
                && let Some(value) = outcome.value(sample, load)
            {
                let at = values.partition_point(|(round, _)| *round <= sample.round);
                values.insert(at, (sample.round, value));
            }
        }
    }

    /// Rounds and values of a cell, in the outcome's unit. Those of a [`Metric`](wirecost_model::metric::Metric) come
    /// from `observed`: none of a percentile for which a sample has too few transactions.
    pub(crate) fn column(
        &self,
        observed: &Observed,
        experiment: &Experiment,
        cell: &Cell,
        outcome: Outcome,
    ) -> Vec<(u32, f64)> {
        let scale = outcome.unit().1;
        let own = match outcome {
            Outcome::Of(metric) => {
                let load = outcome.load(experiment, [cell, cell]);
                load.and_then(|load| {
                    let load = load.to_owned();
                    let figure = Figure { load, metric };
                    let is_sparse = observed.is_sparse(cell.index, &figure);
                    (!is_sparse).then(|| observed.column(cell.index, &figure))
                })
            }
            _ => self
                .0
                .get(&(cell.index, outcome))
                .map(|column| column.values.clone()),
        };
        let all = own.unwrap_or_default().into_iter();
        all.map(|(round, value)| (round, value * scale)).collect()
    }
}
