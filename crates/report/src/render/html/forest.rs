//! Forest plots: the ratio and interval of every effect, with the band of changes that are not worth it.

use minijinja::Value;
use wirecost_model::metric::{Direction, Figure};
use wirecost_stats::{Margin, Method};

use super::chart::{Chart, Limits, Panel};
use super::ratios;
use super::scale::Scale;
use super::svg::Svg;
use super::verdicts::figure_key;
use crate::render::table::Table;
use crate::render::verdicts::{class, ratio, sign, word};
use crate::render::words;
use crate::result::document::Document;
use crate::result::document::EffectResult;

const WIDTH: f64 = 960.0;
const LABEL: f64 = 290.0;
const RIGHT: f64 = 700.0;
const WORD: f64 = 842.0;
const ROW: f64 = 24.0;

/// Most effects that one chart draws.
const DRAWN: usize = 60;

/// Factor by which an axis may go beyond the ratios themselves: an interval from two rounds may reach
/// over decades, and would leave nothing to see of the others.
pub(super) const BEYOND: f64 = 3.0;

/// A chart for every figure that has effects.
pub(super) fn charts(doc: &Document, limits: Limits) -> Vec<Chart> {
    doc.figures
        .iter()
        .filter_map(|figure| {
            let effects: Vec<&EffectResult> = doc
                .effects
                .iter()
                .filter(|effect| effect.metric == figure.metric && effect.load == figure.load)
                .collect();
            (!effects.is_empty()).then(|| chart(doc, figure, &effects, limits))
        })
        .collect()
}

/// The id of a figure's chart on the page: `effects-sender-cpu`, `effects-ping-latency-p99`.
fn id(doc: &Document, figure: &Figure) -> String {
    let metric = serde_json::to_value(figure.metric).ok();
    let metric = metric.as_ref().and_then(|metric| metric.as_str());
    let metric = metric.unwrap_or_default().replace('_', "-");
    if doc.several_loads() {
        format!("effects-{}-{metric}", figure.load)
    } else {
        format!("effects-{metric}")
    }
}

fn chart(doc: &Document, figure: &Figure, effects: &[&EffectResult], limits: Limits) -> Chart {
    let id = id(doc, figure);
    let label = format!("{id}-title");
    let measured = words::measured(doc, &figure.load, figure.metric);
    let shown = shown(effects, DRAWN.min(limits.effects));
    let margin = Margin::of(doc.repeat.worth);
    Chart {
        id,
        nav: None,
        title: format!("What does each change do to {measured}?"),
        caption: format!(
            "A point is the ratio paired within rounds, its line the 95 % interval; an interval that goes on beyond the \
             axis ends in an arrow. The band from {:.2} to {:.2} is what is not worth a change.",
            margin.low, margin.high
        ),
        left_out: (shown.len() < effects.len()).then(|| {
            format!(
                "Drawn are the {} largest of {} effects; the others are in the table below.",
                shown.len(),
                effects.len()
            )
        }),
        panels: vec![Panel {
            id: label.clone(),
            label: String::new(),
            cell: None,
            svg: Value::from_safe_string(draw(doc, figure, &shown, &label)),
        }],
        small: false,
        table: table(doc, &measured, effects),
    }
}

/// The `most` largest effects, in their original order.
pub(super) fn shown<'a>(effects: &[&'a EffectResult], most: usize) -> Vec<&'a EffectResult> {
    if effects.len() <= most {
        return effects.to_vec();
    }
    let size = |effect: &EffectResult| effect.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let mut order: Vec<usize> = (0..effects.len()).collect();
    order.sort_by(|&a, &b| f64::total_cmp(&size(effects[b]), &size(effects[a])));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|at| effects[at]).collect()
}

/// The ends of the axis: it holds every ratio and the band, and intervals up to [`BEYOND`].
fn ends(effects: &[&EffectResult], margin: Margin) -> (f64, f64) {
    let ratios = || effects.iter().filter_map(|effect| effect.ratio);
    let low = ratios().fold(margin.low, f64::min);
    let high = ratios().fold(margin.high, f64::max);
    let lows = effects.iter().filter_map(|effect| effect.low);
    let highs = effects.iter().filter_map(|effect| effect.high);
    (
        lows.fold(low, f64::min).max(low / BEYOND),
        highs.fold(high, f64::max).min(high * BEYOND),
    )
}

fn draw(doc: &Document, figure: &Figure, effects: &[&EffectResult], label: &str) -> String {
    let metric = figure.metric;
    let margin = Margin::of(doc.repeat.worth);
    let (low, high) = ends(effects, margin);
    let (scale, ticks) = Scale::ratios(low, high, (LABEL, RIGHT - 16.0), 34.0);
    let same = |a: &&EffectResult, b: &&EffectResult| (&a.factor, &a.to) == (&b.factor, &b.to);
    let groups: Vec<&[&EffectResult]> = effects.chunk_by(|a, b| same(a, b)).collect();
    let top = 8.0;
    let rows = effects.len() as f64 * ROW + groups.len() as f64 * (ROW + 6.0);
    let bottom = top + rows;
    let mut svg = Svg::default();
    ratios::grid(&mut svg, &scale, &ticks, margin, (top, bottom), 17.0);
    let mut y = top;
    for group in groups {
        let first = group[0];
        y += ROW + 6.0;
        let contrast = words::contrast(&first.factor, &first.from, &first.to);
        svg.text("group", "start", (0.0, y - 8.0), &contrast);
        for effect in group {
            row(&mut svg, doc, effect, &scale, y + ROW / 2.0);
            y += ROW;
        }
    }
    let better = match metric.better() {
        Direction::Higher => ("end", RIGHT - 16.0, "more is better →"),
        Direction::Lower => ("start", LABEL, "← less is better"),
    };
    let measured = words::measured(doc, &figure.load, metric);
    let unit = format!("ratio of {measured}, logarithmic");
    let other = match metric.better() {
        Direction::Higher => ("start", LABEL),
        Direction::Lower => ("end", RIGHT - 16.0),
    };
    svg.text("axis", better.0, (better.1, bottom + 37.0), better.2);
    svg.text("axis", other.0, (other.1, bottom + 37.0), &unit);
    svg.finish("forest", WIDTH, bottom + 44.0, label)
}

/// Opens the SVG group of an effect, with the attributes that the page filters by.
pub(super) fn effect_group(svg: &mut Svg, effect: &EffectResult) {
    let verdict = class(effect.verdict);
    let figure = figure_key(&effect.load, effect.metric);
    svg.open_with(&[
        ("class", format!("effect {verdict}").as_str()),
        ("data-factor", effect.factor.as_str()),
        ("data-figure", figure.as_str()),
        ("data-verdict", verdict),
    ]);
}

fn row(svg: &mut Svg, doc: &Document, effect: &EffectResult, scale: &Scale, y: f64) {
    effect_group(svg, effect);
    let place = words::levels(&doc.factors, &effect.where_);
    let place = if place.is_empty() {
        "nothing else varied"
    } else {
        &place
    };
    svg.label((14.0, y), LABEL - 24.0, place);
    if let (Some(low), Some(high)) = (effect.low, effect.high) {
        svg.line("whisker", (scale.at(low), y), (scale.at(high), y));
        for (end, to) in [(low, -1.0), (high, 1.0)] {
            let x = scale.at(end);
            if scale.holds(end) {
                svg.line("whisker", (x, y - 4.0), (x, y + 4.0));
            } else {
                ratios::arrow(svg, (x, y), (6.0 * to, 4.0));
            }
        }
    }
    let verdict = format!("{} {}", sign(effect.verdict), effect.verdict);
    if let Some(at) = effect.ratio {
        let class = if effect.low.is_some() {
            "ratio"
        } else {
            "ratio alone"
        };
        let point = svg
            .element("circle")
            .class(class)
            .number("cx", scale.at(at));
        let tip = format!(
            "{}, {place}\n{}, {verdict}, {}",
            words::contrast(&effect.factor, &effect.from, &effect.to),
            ratio(effect),
            words::count(effect.rounds as usize, "round")
        );
        point.number("cy", y).number("r", 4.5).titled(&tip);
    }
    svg.text("figure", "start", (RIGHT, y + 4.5), &ratio(effect));
    let word = format!("{} {}", sign(effect.verdict), word(effect.verdict));
    svg.text("verdict", "start", (WORD, y + 4.5), &word);
    svg.close();
}

pub(super) fn table(doc: &Document, measured: &str, effects: &[&EffectResult]) -> Table {
    let heads = [
        "change",
        "other factors",
        "ratio#",
        "low#",
        "high#",
        "verdict",
        "rounds#",
        "p#",
        "p, all effects#",
        "verdict, all effects",
        "signed rank",
        "bootstrap",
    ];
    let mut table = Table::new(&format!("Effects on {measured}"), heads);
    let end = |end: Option<f64>| end.map_or_else(|| "–".into(), |end| format!("{end:.3}"));
    for effect in effects {
        let fields = vec![
            words::contrast(&effect.factor, &effect.from, &effect.to),
            words::levels(&doc.factors, &effect.where_),
            end(effect.ratio),
            end(effect.low),
            end(effect.high),
            effect.verdict.to_string(),
            effect.rounds.to_string(),
            p(effect.corrected.and_then(|corrected| corrected.p)),
            p(effect.corrected.and_then(|corrected| corrected.adjusted_p)),
            effect
                .corrected
                .map_or_else(|| "–".into(), |corrected| corrected.verdict.to_string()),
            opinion(effect, Method::SignedRank),
            opinion(effect, Method::Bootstrap),
        ];
        table.row(None, fields);
    }
    table.finish("`effects` of `wirecost report RUN_DIR --json`.")
}

/// A p-value with four decimals; `–` without one.
fn p(p: Option<f64>) -> String {
    match p {
        None => "–".into(),
        Some(p) if p < 0.0001 => "<0.0001".into(),
        Some(p) => format!("{p:.4}"),
    }
}

/// Estimate and interval of another method; `–` without one.
fn opinion(effect: &EffectResult, method: Method) -> String {
    let opinion = effect.second_opinions.iter().find(|o| o.method == method);
    opinion.map_or_else(
        || "–".into(),
        |o| {
            format!(
                "{:.3} [{:.3}, {:.3}]",
                o.ratio, o.interval.low, o.interval.high
            )
        },
    )
}
