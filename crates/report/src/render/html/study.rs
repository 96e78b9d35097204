//! A study's own charts as bars: published on the left, measured on the right. Each has its own axis, since the shape
//! can be compared and the height cannot.

use minijinja::Value;

use super::chart::{Chart, Panel};
use super::scale::Scale;
use super::svg::{Svg, width_of};
use crate::render::table::{NONE, Table, figure};
use crate::render::{study, words};
use crate::result::document::{BarsOf, ChartBar, ChartResult, Document};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 46.0;
/// Height of a line of the legend.
const LINE: f64 = 18.0;
/// Height of the plot, from its highest to its lowest value.
const TALL: f64 = 180.0;
/// Height below the plot, for the groups' names.
const BELOW: f64 = 36.0;
/// Share of a group's width that its bars take, 0 to 1.
const FILLED: f64 = 0.78;
/// Number of colours of bars in the style sheet.
const COLOURS: usize = 5;

/// The study's charts.
pub(super) fn charts(doc: &Document) -> Vec<Chart> {
    let charts = doc.published.iter().flat_map(|published| &published.charts);
    charts
        .filter(|chart| !chart.groups.is_empty())
        .enumerate()
        .map(|(at, chart)| self::chart(at, chart))
        .collect()
}

/// The published or the measured figure of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Published,
    Here,
}

fn chart(at: usize, chart: &ChartResult) -> Chart {
    let id = format!("study-{at}");
    let by = words::factor(&chart.by);
    let of = match chart.of {
        BarsOf::Figures => format!("{}, {}", chart.metric, chart.unit),
        BarsOf::Differences => format!("{}: difference, {}", chart.metric, chart.unit),
        BarsOf::Changes => format!("{}: change in percent", chart.metric),
    };
    let has = |side| bars(chart).any(|(_, bar)| value(bar, side).is_some());
    let sides = [
        (Side::Published, "published"),
        (Side::Here, "measured here"),
    ];
    let sides = sides.into_iter().filter(|(side, _)| has(*side));
    let panels = sides.map(|(side, label)| {
        let id = format!(
            "{id}-{}",
            if side == Side::Here {
                "here"
            } else {
                "published"
            }
        );
        Panel {
            label: label.into(),
            cell: None,
            svg: Value::from_safe_string(draw(chart, side, &id)),
            id,
        }
    });
    let loose = if bars(chart).any(|(_, bar)| bar.is_loose) {
        " A pale bar is a published bound, or inferred."
    } else {
        ""
    };
    let mut table = Table::new(
        &chart.title,
        [&by, "bar", "published#", "measured#", "95 % interval#"],
    );
    for (level, bar) in bars(chart) {
        let ends = bar.low.zip(bar.high);
        let published = bar.published.map(|one| {
            let loose = if bar.is_loose {
                " (bound or inferred)"
            } else {
                ""
            };
            format!("{}{loose}", study::plain(one))
        });
        let fields = vec![
            level.to_owned(),
            bar.label.clone(),
            published.unwrap_or_else(|| NONE.into()),
            figure(bar.here, 2),
            ends.map_or_else(
                || NONE.into(),
                |(low, high)| format!("[{low:.2}, {high:.2}]"),
            ),
        ];
        table.row(None, fields);
    }
    Chart {
        title: format!("{}, by {by}", chart.title),
        caption: format!(
            "{of}. Whiskers are 95 % intervals.{loose} Each side has its own axis: the publisher's figures are of other machines, and \
             what carries over is how bars compare with each other."
        ),
        nav: None,
        left_out: None,
        panels: panels.collect(),
        small: true,
        table: table.finish("`published.charts` of `wirecost report RUN_DIR --json`."),
        id,
    }
}

fn bars(chart: &ChartResult) -> impl Iterator<Item = (&str, &ChartBar)> {
    let groups = chart.groups.iter();
    groups.flat_map(|group| group.bars.iter().map(|bar| (group.level.as_str(), bar)))
}

const fn value(bar: &ChartBar, side: Side) -> Option<f64> {
    match side {
        Side::Published => bar.published,
        Side::Here => bar.here,
    }
}

fn draw(chart: &ChartResult, side: Side, id: &str) -> String {
    let values = bars(chart).flat_map(|(_, bar)| match side {
        Side::Published => [bar.published, None, None],
        Side::Here => [bar.here, bar.low, bar.high],
    });
    let (low, high) = values
        .flatten()
        .fold((0.0, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        });
    let mut svg = Svg::default();
    let mut labels: Vec<&str> = Vec::new();
    for (_, bar) in bars(chart) {
        if !labels.contains(&bar.label.as_str()) {
            labels.push(&bar.label);
        }
    }
    let top = key(&mut svg, &labels) + 8.0;
    let bottom = top + TALL;
    let (scale, ticks) = Scale::linear(low, high.max(low + 1e-9), (bottom, top), 4);
    for tick in ticks {
        let y = scale.at(tick);
        svg.line("grid", (LEFT, y), (WIDTH, y));
        svg.text("tick", "end", (LEFT - 6.0, y + 4.0), &short(tick));
    }
    let room = (WIDTH - LEFT) / chart.groups.len() as f64;
    for (number, group) in chart.groups.iter().enumerate() {
        let left = LEFT + room * number as f64;
        svg.text(
            "tick",
            "middle",
            (left + room / 2.0, bottom + 18.0),
            &group.level,
        );
        let width = room * FILLED / group.bars.len() as f64;
        for (place, bar) in group.bars.iter().enumerate() {
            let Some(value) = value(bar, side) else {
                continue;
            };
            let colour = labels.iter().position(|label| *label == bar.label);
            let x = left + room * (1.0 - FILLED) / 2.0 + width * place as f64;
            let tip = format!("{} {}: {}", group.level, bar.label, study::plain(value));
            one(
                &mut svg,
                &scale,
                (x, width * 0.92),
                value,
                (colour.unwrap_or(0), side == Side::Published && bar.is_loose),
                &tip,
            );
            if let (Side::Here, Some(low), Some(high)) = (side, bar.low, bar.high) {
                let middle = x + width * 0.46;
                svg.line("whisker", (middle, scale.at(low)), (middle, scale.at(high)));
            }
        }
    }
    svg.line("one", (LEFT, scale.at(0.0)), (WIDTH, scale.at(0.0)));
    svg.finish("bars small", WIDTH, bottom + BELOW, id)
}

/// Draws one bar, which begins at 0.
fn one(
    svg: &mut Svg,
    scale: &Scale,
    (x, width): (f64, f64),
    value: f64,
    (colour, is_loose): (usize, bool),
    tip: &str,
) {
    let (a, b) = (scale.at(0.0), scale.at(value));
    let loose = if is_loose { " loose" } else { "" };
    let class = format!("bar{}{loose}", colour % COLOURS);
    let rect = svg.element("rect").class(&class);
    let rect = rect.number("x", x).number("y", a.min(b));
    rect.number("width", width)
        .number("height", (a - b).abs().max(0.5))
        .titled(tip);
}

/// Draws the legend of the colours in as many lines as it needs; returns where the last line ends, pixels.
fn key(svg: &mut Svg, labels: &[&str]) -> f64 {
    let (mut x, mut y) = (LEFT, 8.0);
    for (at, label) in labels
        .iter()
        .enumerate()
        .filter(|(_, label)| !label.is_empty())
    {
        let wide = 15.0 + width_of(label);
        if x > LEFT && x + wide > WIDTH {
            (x, y) = (LEFT, y + LINE);
        }
        let class = format!("bar{}", at % COLOURS);
        let rect = svg.element("rect").class(&class);
        let rect = rect.number("x", x).number("y", y);
        rect.number("width", 11.0).number("height", 11.0).end();
        svg.text("key", "start", (x + 15.0, y + 10.0), label);
        x += wide + 12.0;
    }
    y + LINE
}

fn short(tick: f64) -> String {
    match tick.abs() {
        t if t >= 1e6 => format!("{}M", tick / 1e6),
        t if t >= 1e4 => format!("{}k", tick / 1e3),
        _ => {
            let rounded = (tick * 1e6).round() / 1e6;
            format!("{}", rounded + 0.0)
        }
    }
}
