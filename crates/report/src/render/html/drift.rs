//! The samples of each cell over the rounds, which shows drift.

use wirecost_model::sample::Sample;

use super::cells::{CellView, State};
use super::chart::{Chart, Limits, Panel};
use super::chart_figure::{ChartFigure, ChartLoad, ChartMetric};
use super::legend;
use super::panel::{Axes, DRAWN, left_out};
use super::svg::points;
use crate::render::table::{Table, figure};
use crate::result::document::Document;

/// Smallest range of the axis on each side of 100 %, percent, so that a steady cell looks steady.
const MIN_AXIS_RANGE: f64 = 5.0;

/// Most rounds that the table has a column for.
const COLUMNS: u32 = 60;

pub(super) fn chart(
    doc: &Document,
    load: &ChartLoad<'_>,
    cells: &[&CellView],
    limits: Limits,
) -> Chart {
    let shown = ChartFigure::of(load, ChartMetric::Speed, cells);
    let drawn = &cells[..cells.len().min(DRAWN).min(limits.cells)];
    let percents = drawn.iter().flat_map(|cell| {
        let percent = percent(&shown, cell);
        let percents = cell.samples.iter().filter_map(|sample| percent(sample));
        percents.collect::<Vec<_>>()
    });
    let (low, high) = percents.fold(
        (100.0 - MIN_AXIS_RANGE, 100.0 + MIN_AXIS_RANGE),
        |(low, high), percent| (f64::min(low, percent), f64::max(high, percent)),
    );
    let last = f64::from(doc.rounds_planned.max(2));
    let axes = Axes::new(
        (0.5, last + 0.5),
        (low - 1.0, high + 1.0),
        ("round", "% of the cell's median"),
    );
    let id = load.id("drift");
    let measured = shown.measured();
    Chart {
        title: load.question("Did anything drift while it was measured?"),
        nav: load.nav(Some("Drift")),
        caption: format!(
            "{} of every sample in percent of its cell's median, by round; all panels share their axes. A change in \
             all cells at once is due to the machine, not the network: comparisons are paired within rounds, so that it \
             cancels. Hollow points are marked, crosses do not count.",
            measured[..1].to_uppercase() + &measured[1..]
        ),
        left_out: left_out(doc, drawn, cells.len()),
        panels: drawn
            .iter()
            .map(|cell| panel(&axes, &id, &shown, cell))
            .collect(),
        small: true,
        table: table(doc, &shown, cells),
        id,
    }
}

/// A sample's speed in percent of its cell's median.
fn percent(shown: &ChartFigure<'_>, cell: &CellView) -> impl Fn(&Sample) -> Option<f64> {
    let median = shown.summary(cell).map(|summary| summary.median);
    let median = median.filter(|median| *median > 0.0);
    move |sample| Some(shown.value(sample)? / median? * 100.0)
}

fn panel(axes: &Axes, id: &str, shown: &ChartFigure<'_>, cell: &CellView) -> Panel {
    axes.panel(id, cell, |svg| {
        axes.level(svg, "one", 100.0);
        let percent = percent(shown, cell);
        let at = |sample: &Sample| {
            let y = axes.y.at(percent(sample)?);
            Some((axes.x.at(f64::from(sample.round + 1)), y))
        };
        let valid = cell
            .samples
            .iter()
            .filter(|sample| sample.invalid.is_none());
        let line = points(valid.filter_map(|sample| at(sample)));
        svg.element("polyline")
            .class("thread")
            .attribute("points", &line)
            .end();
        for sample in &cell.samples {
            if let Some(at) = at(sample) {
                legend::sample(svg, State::of(sample), at, 3.0)
                    .titled(&shown.tooltip(cell, sample));
            }
        }
    })
}

fn table(doc: &Document, shown: &ChartFigure<'_>, cells: &[&CellView]) -> Table {
    let rounds = doc.rounds_planned.min(COLUMNS);
    let heads: Vec<String> = (1..=rounds)
        .map(|round| format!("round {round}#"))
        .collect();
    let heads = ["cell"].into_iter().chain(heads.iter().map(String::as_str));
    let measured = shown.measured();
    let title = format!(
        "{} in percent of the cell's median, by round",
        measured[..1].to_uppercase() + &measured[1..]
    );
    let mut table = Table::new(&title, heads);
    for cell in cells {
        let mut fields = vec![cell.label.clone()];
        let percent = percent(shown, cell);
        fields.extend((0..rounds).map(|round| {
            let sample = cell.samples.iter().find(|sample| sample.round == round);
            let text = figure(sample.and_then(|sample| percent(sample)), 1);
            match sample.map(|sample| State::of(sample)) {
                Some(State::Invalid) => format!("{text} (not valid)"),
                _ => text,
            }
        }));
        table.row(Some(cell.result.cell), fields);
    }
    let more = (doc.rounds_planned > COLUMNS).then(|| {
        format!(
            "The columns are the first {COLUMNS} of {} rounds; all of them: `wirecost report RUN_DIR --csv`.",
            doc.rounds_planned
        )
    });
    table
        .finish("`wirecost report RUN_DIR --csv`.")
        .with_note(more)
}
