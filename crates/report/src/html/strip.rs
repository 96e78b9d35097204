//! Every sample of every cell on one axis, with the median, the interval, the line's limit and
//! what others published.

use minijinja::Value;
use wirecost_model::metric::Metric;

use super::cells::{CellView, State, gbps, remarks, tooltip};
use super::chart::{Chart, Panel, Table, figure};
use super::legend::{self, Sign};
use super::scale::{Scale, tick};
use super::svg::Svg;
use crate::document::Document;
use crate::words;

const WIDTH: f64 = 960.0;
const LABEL: f64 = 326.0;
const RIGHT: f64 = 880.0;

/// Cells that one wide chart draws.
pub(super) const DRAWN: usize = 48;

const ID: &str = "samples-title";

pub(super) fn chart(doc: &Document, cells: &[CellView]) -> Chart {
    let shown = &cells[..cells.len().min(DRAWN)];
    Chart {
        id: "samples".into(),
        title: "How fast is each cell, and how much do its samples differ?".into(),
        caption: "Every sample is a point: within a row the first round is on top, the last at the bottom, so that drift \
                  shows as a slant. The axis need not start at 0. The figure at the right is the median of the valid samples."
            .into(),
        left_out: left_out(cells.len()),
        panels: vec![Panel {
            id: ID.into(),
            label: String::new(),
            cell: None,
            svg: Value::from_safe_string(draw(doc, shown)),
        }],
        small: false,
        table: table(doc, cells),
    }
}

/// Says that not every cell is drawn.
pub(super) fn left_out(cells: usize) -> Option<String> {
    (cells > DRAWN).then(|| {
        format!("Drawn are the first {DRAWN} of {cells} cells; every sample: `wirecost report RUN_DIR --csv`.")
    })
}

/// The lowest and the highest of what has to be on the axis.
fn ends(cells: &[CellView]) -> Option<(f64, f64)> {
    let figures = cells.iter().flat_map(|cell| {
        let summary = cell.result.throughput_gbps;
        let others = [
            cell.result.line_limit_gbps,
            cell.result.published_gbps,
            summary
                .and_then(|summary| summary.low)
                .map(|low| low.max(0.0)),
            summary.and_then(|summary| summary.high),
        ];
        let samples = cell.samples.iter().map(|sample| gbps(sample));
        samples.chain(others).flatten().collect::<Vec<f64>>()
    });
    figures.fold(None, |ends, figure| {
        let (low, high) = ends.unwrap_or((figure, figure));
        Some((figure.min(low), figure.max(high)))
    })
}

fn draw(doc: &Document, cells: &[CellView]) -> String {
    let (low, high) = ends(cells).unwrap_or((0.0, 1.0));
    // A third of the way down to 0 is near enough to show 0 itself.
    let room = (high - low).max(high * 0.01) * 0.03;
    let low = if low < high / 3.0 { 0.0 } else { low - room };
    let (scale, ticks) = Scale::linear(low, high + room, (LABEL, RIGHT - 20.0), 8);
    let mut svg = Svg::default();
    let mut signs = vec![
        (Sign::Sample(State::Valid), "a sample"),
        (Sign::Sample(State::Marked), "perhaps disturbed (it counts)"),
        (Sign::Sample(State::Invalid), "not valid (in no verdict)"),
        (Sign::Median, "median"),
        (Sign::Interval, "95 % interval of the mean"),
    ];
    if cells
        .iter()
        .any(|cell| cell.result.line_limit_gbps.is_some())
    {
        signs.push((Sign::Limit, "the line's limit"));
    }
    if cells
        .iter()
        .any(|cell| cell.result.published_gbps.is_some())
    {
        signs.push((Sign::Published, "published"));
    }
    let top = legend::draw(&mut svg, 0.0, WIDTH, &signs) + 8.0;
    let row = 32.0 + f64::from(doc.rounds_planned.min(60)) * 0.4;
    let bottom = top + row * cells.len() as f64;
    for &at in &ticks {
        let x = scale.at(at);
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", "middle", (x, bottom + 17.0), &tick(at, &ticks));
    }
    svg.text(
        "axis",
        "middle",
        (f64::midpoint(LABEL, RIGHT - 20.0), bottom + 37.0),
        "Gbit/s that the receiving application read",
    );
    for (index, cell) in cells.iter().enumerate() {
        let middle = top + row * (index as f64 + 0.5);
        draw_cell(&mut svg, cell, &scale, (middle, row), doc.rounds_planned);
    }
    svg.finish("strip", WIDTH, bottom + 44.0, ID)
}

fn draw_cell(svg: &mut Svg, cell: &CellView, scale: &Scale, (y, height): (f64, f64), rounds: u32) {
    let result = cell.result;
    let half = height / 2.0 - 3.0;
    svg.open("row", Some(result.cell));
    let back = svg.element("rect").class("back").number("x", 0.0);
    let back = back.number("y", y - height / 2.0).number("width", WIDTH);
    back.number("height", height).end();
    svg.label((0.0, y), LABEL - 12.0, &cell.label);
    if let Some(limit) = result.line_limit_gbps {
        let x = scale.at(limit);
        svg.line("limit", (x, y - half), (x, y + half));
    }
    if let Some(summary) = result.throughput_gbps {
        if let (Some(low), Some(high)) = (summary.low, summary.high) {
            let (from, to) = (scale.at(low), scale.at(high));
            let bar = svg.element("rect").class("interval").number("x", from);
            let bar = bar
                .number("y", y - half)
                .number("width", (to - from).max(1.0));
            bar.number("height", half * 2.0).titled(&format!(
                "{}\nmean {:.3} Gbit/s [{low:.3}, {high:.3}]",
                cell.label, summary.mean
            ));
        }
        let x = scale.at(summary.median);
        svg.line("median", (x, y - half), (x, y + half));
        svg.text(
            "figure",
            "end",
            (WIDTH, y + 4.5),
            &words::gbps(summary.median),
        );
    } else {
        svg.text("figure", "end", (WIDTH, y + 4.5), "–");
    }
    // The rounds from top to bottom, whichever of them there are.
    let step = (half - 4.0) * 2.0 / f64::from(rounds.max(2) - 1);
    for sample in &cell.samples {
        let Some(gbps) = gbps(sample) else { continue };
        let at = (
            scale.at(gbps),
            y - half + 4.0 + f64::from(sample.round) * step,
        );
        let at = if rounds < 2 { (at.0, y) } else { at };
        legend::sample(svg, State::of(sample), at, 2.8).titled(&tooltip(cell, sample));
    }
    if let Some(published) = result.published_gbps {
        let tip = format!("{}\npublished: {published} Gbit/s", cell.label);
        legend::diamond(svg, (scale.at(published), y)).titled(&tip);
    }
    svg.close();
}

fn table(doc: &Document, cells: &[CellView]) -> Table {
    // Throughput has its own column.
    let others = doc.figures.iter();
    let others: Vec<_> = others
        .filter(|figure| doc.several_loads() || figure.metric != Metric::Throughput)
        .collect();
    let cpu_heads: Vec<String> = others
        .iter()
        .map(|figure| {
            let unit = match figure.metric.unit().0 {
                cpu if cpu.starts_with("% of a core") => "%",
                unit => unit,
            };
            let name = words::measured(doc, &figure.load, figure.metric);
            format!("{name}, {unit}#")
        })
        .collect();
    let heads = ["cell", "round#", "Gbit/s#"].into_iter();
    let heads = heads.chain(cpu_heads.iter().map(String::as_str));
    let mut table = Table::new("Every sample", heads.chain(["remarks"]));
    for cell in cells {
        for sample in &cell.samples {
            let mut fields = vec![
                cell.label.clone(),
                (sample.round + 1).to_string(),
                figure(gbps(sample), 3),
            ];
            fields.extend(others.iter().map(|of| {
                let value = of.value(sample).map(|value| value * of.metric.unit().1);
                figure(value, 2)
            }));
            fields.push(remarks(sample));
            table.row(Some(cell.result.cell), fields);
        }
    }
    table.finish("`wirecost report RUN_DIR --csv`.")
}
