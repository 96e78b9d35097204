//! Latencies of requests: percentiles of every cell on one logarithmic axis, and their spread over the rounds.

use minijinja::Value;
use wirecost_model::latency::Latency;
use wirecost_model::sample::Sample;

use super::cells::{CellView, State, remarks};
use super::chart::{Chart, Limits, Panel};
use super::chart_figure::ChartLoad;
use super::legend::{self, Sign};
use super::panel::left_out;
use super::scale::Scale;
use super::svg::Svg;
use crate::render::table::{Table, figure};
use crate::result::document::Document;
use crate::result::document::LatencyResult;
use crate::result::gathered::{self, ENOUGH_BEYOND, percentile_us as percentile};

const WIDTH: f64 = 960.0;
const LABEL: f64 = 290.0;
/// Width of the percentiles' names.
const NAMED: f64 = 46.0;
const RIGHT: f64 = 880.0;
/// Height of one percentile of one cell.
const LINE: f64 = 17.0;

/// Most cells that the chart draws.
const DRAWN: usize = 24;

/// The percentiles drawn for each cell, from top to bottom.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// The chart of latencies; `None` where the load has no requests, or none was answered.
pub(super) fn chart(
    doc: &Document,
    load: &ChartLoad<'_>,
    cells: &[&CellView],
    limits: Limits,
) -> Option<Chart> {
    if !load.workload.is_request_response() {
        return None;
    }
    let drawn = &cells[..cells.len().min(DRAWN).min(limits.cells)];
    let id = load.id("latency");
    let label = format!("{id}.title");
    let svg = draw(load, drawn, &label)?;
    Some(Chart {
        title: load.question("How long do answers take, and how much do the rounds differ?"),
        nav: load.nav(Some("Latency")),
        caption: format!(
            "The bold mark is the percentile of all transactions of the valid samples together; every point is that \
             percentile of one round, and the bar reaches from the lowest to the highest of these. The axis is \
             logarithmic. A percentile with fewer than {ENOUGH_BEYOND} transactions beyond it depends on a few of \
             them and is not drawn; nor is that of single rounds where one of them has too few. Requests that were \
             given up are in no latency."
        ),
        left_out: left_out(doc, drawn, cells.len()),
        panels: vec![Panel {
            svg: Value::from_safe_string(svg),
            id: label,
            label: String::new(),
            cell: None,
        }],
        small: false,
        table: table(doc, load, cells),
        id,
    })
}

/// The latencies of a sample's requests.
fn histogram<'s>(load: &ChartLoad<'_>, sample: &'s Sample) -> Option<&'s Latency> {
    Some(&sample.load(load.name)?.requests.as_ref()?.latency)
}

/// The latencies of all valid samples of a cell, merged.
fn merged<'c>(load: &ChartLoad<'_>, cell: &'c CellView) -> Option<&'c LatencyResult> {
    let mut loads = cell.result.loads.iter();
    loads.find(|one| one.name == load.name)?.latency.as_ref()
}

/// One of [`PERCENTILES`] of all valid samples together, microseconds.
fn of_all(all: &LatencyResult, percent: f64) -> Option<f64> {
    match percent {
        p if p <= 50.0 => Some(all.p50_us),
        p if p <= 90.0 => Some(all.p90_us),
        p if p <= 99.0 => Some(all.p99_us),
        _ => all.p999_us,
    }
}

fn draw(load: &ChartLoad<'_>, cells: &[&CellView], label: &str) -> Option<String> {
    let figures = |cell: &&CellView| {
        let all = merged(load, cell);
        let samples = cell.samples.iter().filter_map(|one| histogram(load, one));
        let each = samples.flat_map(|latency| PERCENTILES.map(|(_, p)| percentile(latency, p)));
        let together = PERCENTILES.map(|(_, p)| all.and_then(|all| of_all(all, p)));
        each.chain(together).flatten().collect::<Vec<f64>>()
    };
    let all: Vec<f64> = cells.iter().flat_map(figures).collect();
    let low = all.iter().copied().reduce(f64::min)?;
    let high = all.iter().copied().reduce(f64::max)?;
    let (scale, ticks) = Scale::decades(low, high, (LABEL + NAMED, RIGHT - 20.0), 46.0);
    let mut svg = Svg::default();
    let signs = [
        (Sign::Median, "all rounds together"),
        (Sign::Sample(State::Valid), "a round"),
        (Sign::Sample(State::Marked), "marked (counts)"),
        (
            Sign::Sample(State::Invalid),
            "not valid (enters no verdict)",
        ),
        (Sign::Interval, "from the lowest to the highest round"),
    ];
    let top = legend::draw(&mut svg, 0.0, WIDTH, &signs) + 8.0;
    let row = LINE * PERCENTILES.len() as f64 + 14.0;
    let bottom = top + row * cells.len() as f64;
    for &at in &ticks {
        let x = scale.at(at);
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", "middle", (x, bottom + 17.0), &round(at));
    }
    svg.text(
        "axis",
        "middle",
        (f64::midpoint(LABEL + NAMED, RIGHT - 20.0), bottom + 37.0),
        "latency, logarithmic; less is better",
    );
    for (index, cell) in cells.iter().enumerate() {
        let y = top + row * index as f64;
        svg.open("row", Some(cell.result.cell));
        let back = svg.element("rect").class("back").number("x", 0.0);
        let back = back.number("y", y).number("width", WIDTH);
        back.number("height", row).end();
        svg.label((0.0, y + row / 2.0), LABEL - 12.0, &cell.label);
        for (line, percent) in PERCENTILES.into_iter().enumerate() {
            let middle = y + 7.0 + LINE * (line as f64 + 0.5);
            draw_line(&mut svg, load, cell, &scale, percent, middle);
        }
        svg.close();
    }
    Some(svg.finish("strip latency", WIDTH, bottom + 44.0, label))
}

fn draw_line(
    svg: &mut Svg,
    load: &ChartLoad<'_>,
    cell: &CellView,
    scale: &Scale,
    (name, percent): (&str, f64),
    y: f64,
) {
    let each = spread(load, cell, percent);
    // Where some rounds have too few transactions for a percentile, those that have it are not typical: none is drawn.
    let of = |sample: &Sample| {
        each?;
        percentile(histogram(load, sample)?, percent)
    };
    svg.text("key", "end", (LABEL + NAMED - 8.0, y + 4.5), name);
    if let Some((low, high)) = each {
        let bar = svg.element("rect").class("interval");
        let bar = bar.number("x", scale.at(low)).number("y", y - 5.0);
        let wide = (scale.at(high) - scale.at(low)).max(1.0);
        bar.number("width", wide)
            .number("height", 10.0)
            .titled(&format!(
                "{}\n{name}: {} to {} over the rounds",
                cell.label,
                time(low),
                time(high)
            ));
    }
    for sample in &cell.samples {
        let Some(us) = of(sample) else { continue };
        let mut tip = format!(
            "{}\nround {}: {name} {}",
            cell.label,
            sample.round + 1,
            time(us)
        );
        let remarks = remarks(sample);
        if !remarks.is_empty() {
            tip.push('\n');
            tip.push_str(&remarks);
        }
        legend::sample(svg, State::of(sample), (scale.at(us), y), 2.4).titled(&tip);
    }
    match merged(load, cell).and_then(|all| of_all(all, percent)) {
        Some(us) => {
            let x = scale.at(us);
            svg.line("median", (x, y - 7.0), (x, y + 7.0));
            svg.text("figure", "end", (WIDTH, y + 4.5), &time(us));
        }
        None => svg.text("figure", "end", (WIDTH, y + 4.5), "–"),
    }
}

/// The lowest and the highest percentile of the valid samples, microseconds, if every one of them has it.
fn spread(load: &ChartLoad<'_>, cell: &CellView, percent: f64) -> Option<(f64, f64)> {
    let at = gathered::PERCENTILES
        .iter()
        .position(|one| *one >= percent)?;
    cell.sums.load(load.name)?.spread[at].ends()
}

/// A time with three digits and a fitting unit: `45.2 us`, `1.20 ms`.
fn time(us: f64) -> String {
    let (number, unit) = in_unit(us);
    let digits = match number {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {unit}")
}

/// The label of a tick: `50 us`, `2 ms`.
fn round(us: f64) -> String {
    let (number, unit) = in_unit(us);
    format!("{} {unit}", (number * 1e3).round() / 1e3)
}

fn in_unit(us: f64) -> (f64, &'static str) {
    match us {
        ..1e3 => (us, "us"),
        ..1e6 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    }
}

fn table(doc: &Document, load: &ChartLoad<'_>, cells: &[&CellView]) -> Table {
    let heads = [
        "cell",
        if load.workload.is_storage() {
            "I/O#"
        } else {
            "transactions#"
        },
        "p50 us#",
        "p50 by round#",
        "p90 us#",
        "p99 us#",
        "p99 by round#",
        "p99.9 us#",
        "p99.99 us#",
        "max us#",
        "within 500 us, %#",
        "timed out#",
        "late#",
    ];
    let title = format!(
        "Latencies of all valid samples together, and of single rounds from the lowest to the highest ({} rounds)",
        doc.rounds_done
    );
    let mut table = Table::new(&title, heads);
    for cell in cells {
        let all = merged(load, cell);
        let of = |figure: fn(&LatencyResult) -> Option<f64>| {
            crate::render::table::figure(all.and_then(figure), 1)
        };
        let count = |figure: fn(&LatencyResult) -> u64| {
            all.map_or_else(|| "–".to_owned(), |all| figure(all).to_string())
        };
        let range = |percent: f64| match spread(load, cell, percent) {
            Some((low, high)) => format!("{low:.1} to {high:.1}"),
            None => "–".to_owned(),
        };
        table.row(
            Some(cell.result.cell),
            vec![
                cell.label.clone(),
                count(|all| all.count),
                of(|all| Some(all.p50_us)),
                range(50.0),
                of(|all| Some(all.p90_us)),
                of(|all| Some(all.p99_us)),
                range(99.0),
                of(|all| all.p999_us),
                of(|all| all.p9999_us),
                of(|all| Some(all.max_us)),
                figure(all.map(|all| all.share_within_500us * 100.0), 2),
                count(|all| all.requests.timeouts),
                count(|all| all.requests.late),
            ],
        );
    }
    table.finish("`cells` of `wirecost report RUN_DIR --json`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_people_use() {
        assert_eq!(time(45.23), "45.2 us");
        assert_eq!(time(1204.0), "1.20 ms");
        assert_eq!(round(50.0), "50 us");
        assert_eq!(round(2_000_000.0), "2 s");
        assert_eq!(round(3.0 * 10f64.powi(-1)), "0.3 us");
    }

    #[test]
    fn a_tail_of_a_few_transactions_is_not_drawn() {
        let latency = Latency::from_buckets([(20, 900), (30, 100)]);
        assert!(percentile(&latency, 99.0).is_some());
        assert_eq!(percentile(&latency, 99.9), None);
    }
}
