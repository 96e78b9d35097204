//! A figure of a cell's valid samples.

use std::collections::BTreeMap;

use wirecost_model::metric::Figure;
use wirecost_stats::{CpuFigures, Observed, Summary, cpu_figures, summary};

use crate::result::document::CellResult;
use crate::result::run::RunResult;

/// In the unit that people read ([`wirecost_model::metric::Metric::unit`]); of processors' time those of blocks of rounds,
/// and `None` where that was too little to be told.
pub(crate) fn values(observed: &Observed, cell: u32, figure: &Figure) -> Option<Vec<f64>> {
    let (_, scale) = figure.metric.unit();
    if figure.metric.is_cpu() {
        return match cpu_figures(observed.parts(cell, figure)) {
            Some(CpuFigures::Below(_)) => None,
            Some(CpuFigures::Told(figures)) => Some(figures),
            None => Some(Vec::new()),
        };
    }
    let values = observed.values(cell, figure);
    Some(values.map(|value| value * scale).collect())
}

/// Each cell with its figures, in the order of tables; of the twin nothing.
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

/// The levels by which a run's cells differ, each cell's in the plan's order; `""` where a factor means nothing to it.
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
