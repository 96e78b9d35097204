//! Strip charts: every sample of a load's cells on one axis, with the median, the interval, the line's
//! limit and published figures.

use minijinja::Value;
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;

use super::cells::{CellView, State, remarks};
use super::chart::{Chart, Limits, Panel};
use super::chart_figure::{ChartFigure, ChartLoad, ChartMetric};
use super::legend::{self, Sign};
use super::scale::{Scale, tick};
use super::svg::Svg;
use crate::render::table::{Table, figure};
use crate::result::document::Document;
use crate::result::load_counts::DATAGRAM_COUNTS;

const WIDTH: f64 = 960.0;
const LABEL: f64 = 326.0;
const RIGHT: f64 = 880.0;

/// Most cells that one wide chart draws.
pub(super) const DRAWN: usize = 48;

/// The chart of a load's speed; for datagrams, also of how many arrived and how many were lost.
pub(super) fn charts(
    doc: &Document,
    load: &ChartLoad<'_>,
    cells: &[&CellView],
    limits: Limits,
) -> Vec<Chart> {
    let chart = |id: &str, question: &str, what| {
        let shown = ChartFigure::of(load, what, cells);
        Chart {
            nav: load.nav(None).filter(|_| what == ChartMetric::Speed),
            ..chart(
                doc,
                load.id(id),
                load.question(question),
                &shown,
                (cells, limits),
            )
        }
    };
    let mut charts = vec![chart(
        "samples",
        "How fast is each cell, and how much do its samples differ?",
        ChartMetric::Speed,
    )];
    if load.workload == Workload::UdpStream {
        charts.push(chart(
            "datagrams",
            "How many datagrams arrive?",
            ChartMetric::Datagrams,
        ));
        charts.push(chart(
            "lost",
            "How many datagrams are lost?",
            ChartMetric::Lost,
        ));
    }
    charts
}

fn chart(
    doc: &Document,
    id: String,
    title: String,
    shown: &ChartFigure<'_>,
    (cells, limits): (&[&CellView], Limits),
) -> Chart {
    let drawn = &cells[..cells.len().min(DRAWN).min(limits.cells)];
    let label = format!("{id}.title");
    Chart {
        id,
        nav: None,
        title,
        caption: "Every sample is a point: within a row the first round is on top, the last at the bottom, so that drift \
                  shows as a slant. The axis need not start at 0. The figure at the right is the median of the valid samples."
            .into(),
        left_out: left_out(doc, drawn, cells.len()),
        panels: vec![Panel {
            svg: Value::from_safe_string(draw(doc, shown, drawn, &label)),
            id: label,
            label: String::new(),
            cell: None,
        }],
        small: false,
        table: table(doc, shown, cells),
    }
}

/// A note where not every cell is drawn, or not every sample of these cells.
pub(super) fn left_out(doc: &Document, drawn: &[&CellView], cells: usize) -> Option<String> {
    let of_cells = (cells > drawn.len()).then(|| cells_left_out(drawn.len(), cells));
    let samples = thinned(doc, drawn);
    let said: Vec<String> = of_cells.into_iter().chain(samples).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

pub(super) fn cells_left_out(drawn: usize, cells: usize) -> String {
    format!(
        "Drawn are the first {drawn} of {cells} cells; every sample: `wirecost report RUN_DIR --csv`."
    )
}

/// A note where not every sample is drawn.
pub(super) fn thinned(doc: &Document, drawn: &[&CellView]) -> Option<String> {
    let points: usize = drawn.iter().map(|cell| cell.samples.len()).sum();
    let all: u32 = drawn.iter().map(|cell| cell.result.samples).sum();
    ((all as usize) > points).then(|| {
        format!(
            "Drawn are {points} of {all} samples{}, those of every so many-th round; figures, intervals and verdicts are \
             of all of them.",
            if drawn.len() < doc.cells.len() { " of these cells" } else { "" }
        )
    })
}

/// What a cell's figure is compared with in the chart: the line's limit, and the published throughput, Gbit/s.
fn reference_lines(shown: &ChartFigure<'_>, cell: &CellView) -> [Option<f64>; 2] {
    if shown.metric() != Metric::Throughput || !shown.load.is_first_stream(cell) {
        return [None; 2];
    }
    [cell.result.line_limit_gbps, cell.result.published_gbps]
}

/// The lowest and the highest figure that the axis has to hold.
fn ends(shown: &ChartFigure<'_>, cells: &[&CellView]) -> Option<(f64, f64)> {
    let figures = cells.iter().flat_map(|cell| {
        let summary = shown.summary(cell);
        let ends = [
            summary
                .and_then(|summary| summary.low)
                .map(|low| low.max(0.0)),
            summary.and_then(|summary| summary.high),
        ];
        let samples = cell.samples.iter().map(|sample| shown.value(sample));
        let all = samples.chain(ends).chain(reference_lines(shown, cell));
        all.flatten().collect::<Vec<f64>>()
    });
    figures.fold(None, |ends, figure| {
        let (low, high) = ends.unwrap_or((figure, figure));
        Some((figure.min(low), figure.max(high)))
    })
}

fn draw(doc: &Document, shown: &ChartFigure<'_>, cells: &[&CellView], label: &str) -> String {
    let (low, high) = ends(shown, cells).unwrap_or((0.0, 1.0));
    // The axis begins at 0 where the lowest figure is at most a third of the highest.
    let room = (high - low).max(high * 0.01) * 0.03;
    let low = if low <= high / 3.0 { 0.0 } else { low - room };
    let (scale, ticks) = Scale::linear(low, high + room, (LABEL, RIGHT - 20.0), 8);
    let mut svg = Svg::default();
    let mut signs = vec![
        (Sign::Sample(State::Valid), "a sample"),
        (Sign::Sample(State::Marked), "marked (counts)"),
        (
            Sign::Sample(State::Invalid),
            "not valid (enters no verdict)",
        ),
        (Sign::Median, "median"),
        (Sign::Interval, "95 % interval of the mean"),
    ];
    let has_reference = |at: usize| {
        cells
            .iter()
            .any(|cell| reference_lines(shown, cell)[at].is_some())
    };
    if has_reference(0) {
        signs.push((Sign::Limit, "the line's limit"));
    }
    if has_reference(1) {
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
        &shown.axis(),
    );
    for (index, cell) in cells.iter().enumerate() {
        let middle = top + row * (index as f64 + 0.5);
        draw_cell(
            &mut svg,
            cell,
            shown,
            &scale,
            (middle, row),
            doc.rounds_planned,
        );
    }
    svg.finish("strip", WIDTH, bottom + 44.0, label)
}

fn draw_cell(
    svg: &mut Svg,
    cell: &CellView,
    shown: &ChartFigure<'_>,
    scale: &Scale,
    (y, height): (f64, f64),
    rounds: u32,
) {
    let result = cell.result;
    let [limit, published] = reference_lines(shown, cell);
    let half = height / 2.0 - 3.0;
    svg.open("row", Some(result.cell));
    let back = svg.element("rect").class("back").number("x", 0.0);
    let back = back.number("y", y - height / 2.0).number("width", WIDTH);
    back.number("height", height).end();
    svg.label((0.0, y), LABEL - 12.0, &cell.label);
    if let Some(limit) = limit {
        let x = scale.at(limit);
        svg.line("limit", (x, y - half), (x, y + half));
    }
    if let Some(summary) = shown.summary(cell) {
        if let (Some(low), Some(high)) = (summary.low, summary.high) {
            let (from, to) = (scale.at(low), scale.at(high));
            let bar = svg.element("rect").class("interval").number("x", from);
            let bar = bar
                .number("y", y - half)
                .number("width", (to - from).max(1.0));
            bar.number("height", half * 2.0).titled(&format!(
                "{}\nmean {:.3} {} [{low:.3}, {high:.3}]",
                cell.label,
                summary.mean,
                shown.unit()
            ));
        }
        let x = scale.at(summary.median);
        svg.line("median", (x, y - half), (x, y + half));
        svg.text(
            "figure",
            "end",
            (WIDTH, y + 4.5),
            &shown.words(summary.median),
        );
    } else {
        svg.text("figure", "end", (WIDTH, y + 4.5), "–");
    }
    // Rounds from top to bottom; a missing round leaves its place empty.
    let step = (half - 4.0) * 2.0 / f64::from(rounds.max(2) - 1);
    for sample in &cell.samples {
        let Some(value) = shown.value(sample) else {
            continue;
        };
        let at = (
            scale.at(value),
            y - half + 4.0 + f64::from(sample.round) * step,
        );
        let at = if rounds < 2 { (at.0, y) } else { at };
        legend::sample(svg, State::of(sample), at, 2.8).titled(&shown.tooltip(cell, sample));
    }
    if let Some(published) = published {
        let tip = format!("{}\npublished: {published} Gbit/s", cell.label);
        legend::diamond(svg, (scale.at(published), y)).titled(&tip);
    }
    svg.close();
}

fn table(doc: &Document, shown: &ChartFigure<'_>, cells: &[&CellView]) -> Table {
    // The load's other figures are in the table of its first chart.
    let first = shown.metric() == Metric::Throughput || shown.metric() == Metric::Transactions;
    let others: Vec<_> = doc
        .figures
        .iter()
        .filter(|figure| first && figure.load == shown.load.name && figure.metric != shown.metric())
        .collect();
    let heads: Vec<String> = others
        .iter()
        .map(|figure| {
            let workload = shown.load.workload;
            let unit = match figure.metric.unit_of(workload).0 {
                "% of a core per Gbit/s" | "% of the datagrams" => "%",
                "us of a core per transaction" | "us of a core per I/O" => "us",
                unit => unit,
            };
            format!("{}, {unit}#", figure.metric.words_of(workload))
        })
        .collect();
    let counts = if shown.is_lost() {
        DATAGRAM_COUNTS
    } else {
        &[]
    };
    let counted = counts.iter().map(|(name, _)| format!("{name}#"));
    let jitter = shown.is_lost().then(|| "jitter, us#".to_owned());
    let counted: Vec<String> = counted.chain(jitter).collect();
    let unit = format!("{}#", shown.unit());
    let heads = ["cell", "round#", &unit]
        .into_iter()
        .chain(heads.iter().map(String::as_str))
        .chain(counted.iter().map(String::as_str));
    let mut table = Table::new("Every sample", heads.chain(["remarks"]));
    for cell in cells {
        for sample in &cell.samples {
            let mut fields = vec![
                cell.label.clone(),
                (sample.round + 1).to_string(),
                figure(shown.value(sample), 3),
            ];
            fields.extend(others.iter().map(|of| {
                let value = of.value(sample).map(|value| value * of.metric.unit().1);
                figure(value, 2)
            }));
            let load = sample.load(shown.load.name);
            let datagrams = load.and_then(|load| load.datagrams.as_ref());
            let count = |(_, count): &(_, fn(&_) -> f64)| figure(datagrams.map(count), 0);
            fields.extend(counts.iter().map(count));
            if shown.is_lost() {
                fields.push(figure(datagrams.map(|of| of.jitter_s * 1e6), 2));
            }
            fields.push(remarks(sample));
            table.row(Some(cell.result.cell), fields);
        }
    }
    let thinned = thinned(doc, cells).map(|text| text.replace("Drawn are", "In the table are"));
    table
        .finish("`wirecost report RUN_DIR --csv`.")
        .with_note(thinned)
}
