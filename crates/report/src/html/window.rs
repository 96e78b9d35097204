//! What happened within the windows: throughput over the intervals of each sample.

use wirecost_model::sample::Sample;

use super::cells::{CellView, State, tooltip};
use super::chart::{Chart, Panel, Table};
use super::panel::{Axes, DRAWN, left_out};
use super::svg::points;
use crate::document::Document;

/// Intervals that the table has a column for.
const COLUMNS: usize = 100;

/// A part of a window: from, to in seconds, and Gbit/s.
type Part = (f64, f64, f64);

/// Nothing where no sample has intervals.
pub(super) fn chart(doc: &Document, cells: &[CellView]) -> Option<Chart> {
    let all = || cells.iter().flat_map(|cell| cell.samples.iter());
    let most = all().map(|sample| parts(sample).len()).max().unwrap_or(0);
    if most == 0 {
        return None;
    }
    let shown = &cells[..cells.len().min(DRAWN)];
    let drawn = || {
        shown
            .iter()
            .flat_map(|cell| cell.samples.iter())
            .flat_map(|sample| parts(sample))
    };
    let end = drawn()
        .map(|part| part.1)
        .fold(doc.repeat.seconds, f64::max);
    let high = drawn().map(|part| part.2);
    let limits = shown.iter().filter_map(|cell| cell.result.line_limit_gbps);
    let high = high.chain(limits).fold(0.0, f64::max);
    let axes = Axes::new(
        (0.0, end),
        (0.0, high * 1.04),
        ("seconds in the window", "Gbit/s"),
    );
    Some(Chart {
        id: "windows".into(),
        title: "Was the load steady within the windows?".into(),
        caption: "Throughput over each sample's measured window, a thin line for every sample, a step for every recorded \
                  interval; dashed is the line's limit. Intervals are never used as replication: a verdict rests on rounds \
                  alone. A ramp at the left says that the warm-up is too short."
            .into(),
        left_out: left_out(cells.len()),
        panels: shown.iter().map(|cell| panel(&axes, cell)).collect(),
        small: true,
        table: table(cells, most),
    })
}

fn parts(sample: &Sample) -> Vec<Part> {
    let stream = sample.stream().and_then(|load| load.stream.as_ref());
    let intervals = stream.map_or(&[][..], |stream| &stream.intervals);
    let mut from = 0.0;
    let mut parts = Vec::with_capacity(intervals.len());
    for interval in intervals {
        let seconds = interval.end_s - from;
        if seconds > 0.0 {
            let gbps = interval.bytes as f64 * 8.0 / seconds / 1e9;
            parts.push((from, interval.end_s, gbps));
        }
        from = interval.end_s;
    }
    parts
}

fn panel(axes: &Axes, cell: &CellView) -> Panel {
    axes.panel("windows", cell, |svg| {
        if let Some(limit) = cell.result.line_limit_gbps {
            axes.level(svg, "limit", limit);
        }
        for sample in &cell.samples {
            let steps = parts(sample).into_iter().flat_map(|(from, to, gbps)| {
                let y = axes.y.at(gbps);
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
            polyline.titled(&tooltip(cell, sample));
        }
    })
}

fn table(cells: &[CellView], most: usize) -> Table {
    let columns = most.min(COLUMNS);
    let heads: Vec<String> = (1..=columns).map(|at| format!("interval {at}#")).collect();
    let heads = ["cell", "round#"]
        .into_iter()
        .chain(heads.iter().map(String::as_str));
    let mut table = Table::new("Gbit/s by interval within the window", heads);
    for cell in cells {
        for sample in &cell.samples {
            let parts = parts(sample);
            let mut fields = vec![cell.label.clone(), (sample.round + 1).to_string()];
            let gbps = |at: usize| parts.get(at).map(|part| part.2);
            fields.extend((0..columns).map(|at| super::chart::figure(gbps(at), 2)));
            table.row(Some(cell.result.cell), fields);
        }
    }
    let mut table = table.finish("`samples.jsonl` of the run directory.");
    if most > columns {
        let said = table.left_out.unwrap_or_default();
        table.left_out = Some(format!(
            "{said} The columns are the first {columns} of {most} intervals; all of them: `samples.jsonl` of the run directory."
        ));
    }
    table
}
