//! A load's speed within the windows, over the intervals of each sample.

use super::cells::{CellView, State};
use super::chart::{Chart, Limits, Panel};
use super::chart_figure::{ChartFigure, ChartLoad, ChartMetric};
use super::panel::{Axes, DRAWN, left_out};
use super::svg::points;
use crate::render::table::Table;
use crate::result::document::Document;

/// Most intervals that the table has a column for.
const COLUMNS: usize = 100;

/// The chart of intervals; `None` where no sample has any.
pub(super) fn chart(
    doc: &Document,
    load: &ChartLoad<'_>,
    cells: &[&CellView],
    limits: Limits,
) -> Option<Chart> {
    let shown = ChartFigure::of(load, ChartMetric::Speed, cells);
    let all = || cells.iter().flat_map(|cell| cell.samples.iter());
    let most = all().map(|sample| shown.parts(sample).len()).max();
    let most = most.filter(|most| *most > 0)?;
    let drawn = &cells[..cells.len().min(DRAWN).min(limits.cells)];
    let parts = || {
        drawn
            .iter()
            .flat_map(|cell| cell.samples.iter())
            .flat_map(|sample| shown.parts(sample))
    };
    let end = parts()
        .map(|part| part.1)
        .fold(doc.repeat.seconds, f64::max);
    let high = parts().map(|part| part.2);
    let limits = drawn.iter().filter_map(|cell| limit(&shown, cell));
    let high = high.chain(limits).fold(0.0, f64::max);
    let axes = Axes::new(
        (0.0, end),
        (0.0, high * 1.04),
        ("seconds in the window", shown.unit()),
    );
    let id = load.id("windows");
    let limited = drawn.iter().any(|cell| limit(&shown, cell).is_some());
    let measured = shown.measured();
    Some(Chart {
        title: load.question("Was the load steady within the windows?"),
        nav: load.nav(Some("Windows")),
        caption: format!(
            "{} over each sample's measured window, a thin line for every sample, a step for every recorded interval{}. \
             Intervals are never used as replication: a verdict rests on rounds alone. A ramp at the left says that the \
             warm-up is too short.",
            measured[..1].to_uppercase() + &measured[1..],
            if limited {
                "; dashed is the line's limit"
            } else {
                ""
            }
        ),
        left_out: left_out(doc, drawn, cells.len()),
        panels: drawn
            .iter()
            .map(|cell| panel(&axes, &id, &shown, cell))
            .collect(),
        small: true,
        table: table(&shown, cells, most),
        id,
    })
}

/// The line's limit, Gbit/s, if it applies to the load.
fn limit(shown: &ChartFigure<'_>, cell: &CellView) -> Option<f64> {
    let limit = cell.result.line_limit_gbps;
    limit.filter(|_| shown.load.is_first_stream(cell))
}

fn panel(axes: &Axes, id: &str, shown: &ChartFigure<'_>, cell: &CellView) -> Panel {
    axes.panel(id, cell, |svg| {
        if let Some(limit) = limit(shown, cell) {
            axes.level(svg, "limit", limit);
        }
        for sample in &cell.samples {
            let parts = shown.parts(sample);
            let steps = parts.into_iter().flat_map(|(from, to, speed)| {
                let y = axes.y.at(speed);
                [(axes.x.at(from), y), (axes.x.at(to), y)]
            });
            let line = points(steps);
            if line.is_empty() {
                continue;
            }
            let class = match State::of(sample) {
                State::Invalid => "window invalid",
                State::Valid | State::Marked => "window",
            };
            let polyline = svg
                .element("polyline")
                .class(class)
                .attribute("points", &line);
            polyline.titled(&shown.tooltip(cell, sample));
        }
    })
}

fn table(shown: &ChartFigure<'_>, cells: &[&CellView], most: usize) -> Table {
    let columns = most.min(COLUMNS);
    let heads: Vec<String> = (1..=columns).map(|at| format!("interval {at}#")).collect();
    let heads = ["cell", "round#"]
        .into_iter()
        .chain(heads.iter().map(String::as_str));
    let title = format!("{} by interval within the window", shown.unit());
    let mut table = Table::new(&title, heads);
    for cell in cells {
        for sample in &cell.samples {
            let parts = shown.parts(sample);
            let mut fields = vec![cell.label.clone(), (sample.round + 1).to_string()];
            let speed = |at: usize| parts.get(at).map(|part| part.2);
            fields.extend((0..columns).map(|at| crate::render::table::figure(speed(at), 2)));
            table.row(Some(cell.result.cell), fields);
        }
    }
    let more = (most > columns).then(|| {
        format!(
            "The columns are the first {columns} of {most} intervals; all of them: `samples.jsonl` of the run directory."
        )
    });
    table
        .finish("`samples.jsonl` of the run directory.")
        .with_note(more)
}
