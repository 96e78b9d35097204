//! A figure of a cell's valid samples.

use std::collections::BTreeMap;

use wirecost_model::metric::Figure;
use wirecost_model::sample::Sample;
use wirecost_stats::{CpuFigures, Summary, summary};

use crate::cpu;
use crate::document::CellResult;
use crate::format::RunResult;
use crate::samples::by_cell;

/// In the unit that people read ([`wirecost_model::metric::Metric::unit`]); of processors' time those of blocks of rounds,
/// and `None` where that was too little to be told.
pub(crate) fn values<'a>(
    valid: impl Iterator<Item = &'a Sample>,
    figure: &Figure,
) -> Option<Vec<f64>> {
    let (_, scale) = figure.metric.unit();
    if figure.metric.is_cpu() {
        return match cpu::figures(figure.metric, &figure.load, valid) {
            Some(CpuFigures::Below(_)) => None,
            Some(CpuFigures::Told(figures)) => Some(figures),
            None => Some(Vec::new()),
        };
    }
    let values = valid.filter_map(|sample| Some(figure.value(sample)? * scale));
    Some(values.collect())
}

/// Each cell with its figures, in the order of tables; of the twin nothing.
pub(crate) fn of_cells(result: &RunResult) -> Vec<(&CellResult, Vec<(&Figure, Summary)>)> {
    let samples = by_cell(&result.reading.run.samples);
    let of = |cell: &CellResult, figure: &Figure| {
        let mine = samples.get(&cell.cell).map_or(&[][..], Vec::as_slice);
        let valid = mine
            .iter()
            .copied()
            .filter(|sample| sample.invalid.is_none());
        summary(values(valid, figure)?)
    };
    let figures = &result.document.figures;
    let cells = result.document.cells.iter();
    cells
        .map(|cell| {
            let told = figures
                .iter()
                .filter_map(|figure| Some((figure, of(cell, figure)?)));
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
