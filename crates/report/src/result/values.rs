//! Values of a figure in a cell's valid samples.

use std::collections::BTreeMap;

use wirecost_model::metric::Figure;
use wirecost_stats::{CpuFigures, Observed, Summary, cpu_figures, summary};

use crate::result::document::CellResult;
use crate::result::run::RunResult;

/// Values in the unit that people read ([`wirecost_model::metric::Metric::unit`]). CPU has one value per block of
/// rounds; `None` where the busy time was too few steps of its counter. A percentile has none where a sample has too
/// few transactions for it.
pub(crate) fn values(observed: &Observed, cell: u32, figure: &Figure) -> Option<Vec<f64>> {
    let (_, scale) = figure.metric.unit();
    if figure.metric.is_cpu() {
        return match cpu_figures(observed.parts(cell, figure)) {
            Some(CpuFigures::Below(_)) => None,
            Some(CpuFigures::Measured(figures)) => Some(figures),
            None => Some(Vec::new()),
        };
    }
    if observed.is_sparse(cell, figure) {
        return Some(Vec::new());
    }
    let values = observed.values(cell, figure);
    Some(values.map(|value| value * scale).collect())
}

/// Each cell with its figures, in the order of tables, without the twin.
pub(crate) fn of_cells(result: &RunResult) -> Vec<(&CellResult, Vec<(&Figure, Summary)>)> {
    let document = &result.document;
    let observed = &document.gathered.observed;
    let of = |cell: &CellResult, figure: &Figure| summary(values(observed, cell.cell, figure)?);
    let cells = document.cells.iter();
    cells
        .map(|cell| {
            let figures = document.figures.iter();
            let told = figures.filter_map(|figure| Some((figure, of(cell, figure)?)));
            (cell, told.collect())
        })
        .collect()
}

/// A cell's levels of the varied factors with their keys, in the plan's order; `""` where a factor does not apply to
/// it.
pub(crate) fn labels<'a>(result: &'a RunResult, cell: &'a CellResult) -> Vec<(&'a str, &'a str)> {
    let levels: &BTreeMap<String, String> = &cell.levels;
    let factors = result.document.factors.iter();
    factors
        .map(|factor| {
            let level = levels.get(&factor.key).map_or("", String::as_str);
            (factor.key.as_str(), level)
        })
        .collect()
}
