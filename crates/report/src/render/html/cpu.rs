//! CPU per Gbit/s or transaction, and its classes (user, system, softirq, irq).

use minijinja::Value;
use wirecost_model::metric::{Figure, Metric};
use wirecost_stats::{Summary, summary};

use super::cells::CellView;
use super::chart::{Chart, Limits, Panel};
use super::chart_figure::ChartLoad;
use super::legend::{self, Sign};
use super::scale::{Scale, tick};
use super::strip::{DRAWN, cells_left_out};
use super::svg::{Svg, width_of};
use crate::render::table::{Table, figure};
use crate::result::document::Document;
use crate::result::gathered;
use crate::result::values::values;

const WIDTH: f64 = 960.0;
const LABEL: f64 = 326.0;
const HOST: f64 = 66.0;
const RIGHT: f64 = 880.0;
const BAR: f64 = 15.0;
/// Space below a bar, with room for its interval.
const GAP: f64 = 5.0;

/// The classes in the order in which they are stacked: CSS class and word.
const CLASSES: [(&str, &str); 5] = [
    ("user", "user"),
    ("system", "system"),
    ("softirq", "softirq"),
    ("irq", "irq"),
    ("unclassified", "unclassified"),
];

/// One host of a cell: its CPU per unit of work, and the shares of the classes, which sum to 1.
struct Bar {
    host: &'static str,
    cpu: Summary,
    shares: [f64; 5],
}

/// The unit of work that CPU is given for.
#[derive(Clone, Copy)]
struct Unit {
    /// The unit in titles: `a Gbit/s`.
    done: &'static str,
    /// The figure's unit in words: `percent of one core per Gbit/s`.
    words: &'static str,
    /// The unit that follows a figure: `% of a core per Gbit/s`.
    short: &'static str,
}

const PER_GBPS: Unit = Unit {
    done: "a Gbit/s",
    words: "percent of one core per Gbit/s",
    short: "% of a core per Gbit/s",
};

const PER_TRANSACTION: Unit = Unit {
    done: "a transaction",
    words: "microseconds of one core per transaction",
    short: "us of a core per transaction",
};

const PER_IO: Unit = Unit {
    done: "an I/O",
    words: "microseconds of one core per I/O",
    short: "us of a core per I/O",
};

/// The chart of CPU; `None` where other loads run beside the load in every cell: their CPU cannot be separated.
pub(super) fn chart(
    doc: &Document,
    load: &ChartLoad<'_>,
    cells: &[&CellView],
    limits: Limits,
) -> Option<Chart> {
    let alone: Vec<&CellView> = cells
        .iter()
        .copied()
        .filter(|cell| cell.result.loads.len() == 1)
        .collect();
    if alone.is_empty() {
        return None;
    }
    let unit = if load.workload.is_storage() {
        PER_IO
    } else if load.workload.is_request_response() {
        PER_TRANSACTION
    } else {
        PER_GBPS
    };
    let bars: Vec<Vec<Bar>> = alone.iter().map(|cell| bars(doc, load, cell)).collect();
    let shown = alone.len().min(DRAWN).min(limits.cells);
    let id = load.id("cpu");
    let label = format!("{id}.title");
    Some(Chart {
        title: load.question(&format!(
            "What does {} cost in CPU, and where does it go?",
            unit.done
        )),
        nav: load.nav(Some("CPU")),
        caption: format!(
            "A bar is the median of the valid samples in {}: everything that was not idle, the line beneath it the 95 % \
             interval of the mean. The length is measured; the colours are only shares of it, from ticks that the kernel \
             samples, and biased: work that starts and ends between ticks is charged to whoever runs at the tick. Do not \
             compare classes more finely than by eye.",
            unit.words
        ),
        left_out: (alone.len() > shown).then(|| cells_left_out(shown, alone.len())),
        panels: vec![Panel {
            svg: Value::from_safe_string(draw(&alone[..shown], &bars[..shown], unit, &label)),
            id: label,
            label: String::new(),
            cell: None,
        }],
        small: false,
        table: table(&alone, &bars, unit),
        id,
    })
}

/// The name of the host whose CPU a metric is.
const fn host(metric: Metric) -> &'static str {
    match metric {
        Metric::SenderCpu => "sender",
        Metric::ReceiverCpu => "receiver",
        Metric::ClientCpu => "client",
        Metric::ServerCpu => "server",
        _ => "machine",
    }
}

fn bars(doc: &Document, load: &ChartLoad<'_>, cell: &CellView) -> Vec<Bar> {
    let bar = |&metric: &Metric| {
        let end = gathered::end(metric)?;
        let figure = Figure {
            load: load.name.to_owned(),
            metric,
        };
        let columns = cell.sums.load(load.name)?;
        Some(Bar {
            host: host(metric),
            cpu: summary(values(cell.observed, cell.result.cell, &figure)?)?,
            shares: columns.classes[gathered::side(end)].shares(),
        })
    };
    let metrics = Metric::of(load.workload, doc.cores);
    metrics.iter().filter_map(bar).collect()
}

fn draw(cells: &[&CellView], bars: &[Vec<Bar>], unit: Unit, label: &str) -> String {
    let all = || bars.iter().flatten();
    let high = all().map(|bar| bar.cpu.high.unwrap_or(bar.cpu.median).max(bar.cpu.median));
    // Limits the axis: an interval from two rounds may be many times as long as any bar.
    let longest = all().map(|bar| bar.cpu.median).fold(0.0, f64::max);
    let high = high.fold(0.0, f64::max).min(longest * 1.5);
    let high = if high > 0.0 { high } else { 1.0 };
    let (scale, ticks) = Scale::linear(0.0, high * 1.02, (LABEL + HOST, RIGHT - 20.0), 8);
    let mut svg = Svg::default();
    let used = |class: usize| all().any(|bar| bar.shares[class] > 0.0);
    let signs = CLASSES.iter().enumerate().filter(|(at, _)| used(*at));
    let signs: Vec<(Sign, &str)> = signs
        .map(|(_, (class, word))| (Sign::Class(class), *word))
        .collect();
    let top = legend::draw(&mut svg, LABEL + HOST, RIGHT - LABEL - HOST, &signs) + 8.0;
    let hosts = bars.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let row = hosts as f64 * (BAR + GAP) + 12.0;
    let bottom = top + row * cells.len() as f64;
    for &at in &ticks {
        let x = scale.at(at);
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", "middle", (x, bottom + 17.0), &tick(at, &ticks));
    }
    let middle = f64::midpoint(LABEL + HOST, RIGHT - 20.0);
    svg.text(
        "axis",
        "middle",
        (middle, bottom + 37.0),
        &format!("{}; less is better", unit.words),
    );
    for (index, (cell, bars)) in cells.iter().zip(bars).enumerate() {
        let y = top + row * index as f64;
        svg.open("row", Some(cell.result.cell));
        let back = svg.element("rect").class("back").number("x", 0.0);
        back.number("y", y)
            .number("width", WIDTH)
            .number("height", row)
            .end();
        svg.label((0.0, y + row / 2.0), LABEL - 12.0, &cell.label);
        if bars.is_empty() {
            svg.text("figure", "end", (WIDTH, y + row / 2.0 + 4.5), "–");
        }
        for (at, bar) in bars.iter().enumerate() {
            draw_bar(
                &mut svg,
                cell,
                (bar, unit),
                &scale,
                y + 6.0 + at as f64 * (BAR + GAP),
            );
        }
        svg.close();
    }
    svg.finish("cpu", WIDTH, bottom + 44.0, label)
}

fn draw_bar(svg: &mut Svg, cell: &CellView, (bar, unit): (&Bar, Unit), scale: &Scale, y: f64) {
    let line = y + BAR / 2.0 + 4.5;
    svg.text("key", "end", (LABEL + HOST - 8.0, line), bar.host);
    let mut sum = 0.0;
    for ((class, word), share) in CLASSES.iter().zip(bar.shares) {
        if share <= 0.0 {
            continue;
        }
        let from = scale.at(sum * bar.cpu.median);
        sum += share;
        let wide = scale.at(sum * bar.cpu.median) - from;
        let rect = svg
            .element("rect")
            .class(class)
            .number("x", from)
            .number("y", y);
        rect.number("width", wide)
            .number("height", BAR)
            .titled(&format!(
                "{}, {}\n{word}: about {:.0}% of {:.2} {}",
                cell.label,
                bar.host,
                share * 100.0,
                bar.cpu.median,
                unit.short
            ));
        if wide > width_of(word) + 4.0 {
            svg.text("inside", "middle", (from + wide / 2.0, line - 0.5), word);
        }
    }
    if let (Some(low), Some(high)) = (bar.cpu.low, bar.cpu.high) {
        let beneath = y + BAR + 2.0;
        svg.line(
            "whisker",
            (scale.at(low), beneath),
            (scale.at(high), beneath),
        );
    }
    svg.text(
        "figure",
        "end",
        (WIDTH, line),
        &format!("{:.2}", bar.cpu.median),
    );
}

fn table(cells: &[&CellView], bars: &[Vec<Bar>], unit: Unit) -> Table {
    let median = format!("{}#", unit.short);
    let heads = [
        "cell",
        "host",
        &median,
        "low#",
        "high#",
        "user, %#",
        "system, %#",
        "softirq, %#",
        "irq, %#",
        "unclassified, %#",
    ];
    let title = format!(
        "CPU for {} (median, 95 % interval of the mean) and the classes' shares of the busy time",
        unit.done
    );
    let mut table = Table::new(&title, heads);
    for (cell, bars) in cells.iter().zip(bars) {
        for bar in bars {
            let mut fields = vec![
                cell.label.clone(),
                bar.host.into(),
                figure(Some(bar.cpu.median), 2),
                figure(bar.cpu.low, 2),
                figure(bar.cpu.high, 2),
            ];
            fields.extend(
                bar.shares
                    .iter()
                    .map(|share| figure(Some(share * 100.0), 0)),
            );
            table.row(Some(cell.result.cell), fields);
        }
    }
    table.finish("`wirecost report RUN_DIR --json`.")
}
