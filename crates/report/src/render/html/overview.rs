//! Every effect in one picture, the largest first: better is to the right for every figure.

use minijinja::Value;
use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;
use wirecost_stats::Margin;

use super::chart::{Chart, Panel};
use super::forest::{BEYOND, effect_group, table};
use super::ratios;
use super::scale::Scale;
use super::svg::Svg;

use crate::render::verdicts::{ratio, sign};
use crate::render::words;
use crate::result::document::{Document, EffectResult};

const WIDTH: f64 = 640.0;
const LABEL: f64 = 330.0;
const RIGHT: f64 = 566.0;

/// Most effects that are drawn.
const DRAWN: usize = 40;

/// Height of all rows together, pixels.
const ROWS: f64 = 470.0;
/// Smallest and largest height of a row, pixels.
const ROW: (f64, f64) = (13.0, 24.0);

/// The picture; `None` where no effect has a ratio.
pub(super) fn chart(doc: &Document) -> Option<Chart> {
    let mut effects: Vec<&EffectResult> = doc
        .effects
        .iter()
        .filter(|effect| effect.ratio.is_some())
        .collect();
    if effects.is_empty() {
        return None;
    }
    // Effects that are not comparable come last: their ratio means nothing.
    let size = |effect: &EffectResult| match effect.verdict {
        Verdict::NotComparable => -1.0,
        _ => effect.ratio.map_or(0.0, |ratio| ratio.ln().abs()),
    };
    effects.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let shown = &effects[..effects.len().min(DRAWN)];
    let margin = Margin::of(doc.repeat.worth);
    let without = doc.effects.len() - effects.len();
    let mut left_out = Vec::new();
    if shown.len() < effects.len() {
        left_out.push(format!(
            "Drawn are the {} largest of {} effects.",
            shown.len(),
            effects.len()
        ));
    }
    if without > 0 {
        left_out.push(format!(
            "{} without a ratio.",
            words::count(without, "effect")
        ));
    }
    Some(Chart {
        id: "effects-all".into(),
        nav: None,
        title: "Which effects are the largest?".into(),
        caption: format!(
            "Ratio and 95 % interval; better is to the right. In the band, {:.2} to {:.2}, a change is not worth it.",
            margin.low, margin.high
        ),
        left_out: (!left_out.is_empty()).then(|| left_out.join(" ")),
        panels: vec![Panel {
            id: "effects-all-title".into(),
            label: String::new(),
            cell: None,
            svg: Value::from_safe_string(draw(doc, shown, margin)),
        }],
        small: false,
        table: table(doc, "every figure", &effects),
    })
}

/// The ratio, or its reciprocal for figures of which less is better, so that above 1 is better.
fn better(effect: &EffectResult, ratio: f64) -> f64 {
    match effect.metric.better() {
        Direction::Higher => ratio,
        Direction::Lower => 1.0 / ratio,
    }
}

fn draw(doc: &Document, effects: &[&EffectResult], margin: Margin) -> String {
    let of = |effect: &EffectResult, end: Option<f64>| Some(better(effect, end?));
    let ratios = || effects.iter().filter_map(|effect| of(effect, effect.ratio));
    let ends = effects
        .iter()
        .flat_map(|effect| [of(effect, effect.low), of(effect, effect.high)])
        .flatten();
    let (low, high) = (
        ratios().fold(margin.low, f64::min),
        ratios().fold(margin.high, f64::max),
    );
    let (least, most) = ends.fold((low, high), |(least, most), end| {
        (least.min(end), most.max(end))
    });
    let (low, high) = (least.max(low / BEYOND), most.min(high * BEYOND));
    let (scale, ticks) = Scale::ratios(low, high, (LABEL, RIGHT - 12.0), 30.0);
    let step = (ROWS / effects.len() as f64).clamp(ROW.0, ROW.1);
    let (top, rows) = (18.0, effects.len() as f64 * step);
    let bottom = top + rows;
    let mut svg = Svg::default();
    ratios::grid(&mut svg, &scale, &ticks, margin, (top, bottom), 14.0);
    svg.text("axis", "start", (LABEL, 11.0), "← worse");
    svg.text("axis", "end", (RIGHT - 12.0, 11.0), "better →");
    for (at, effect) in effects.iter().enumerate() {
        row(
            &mut svg,
            doc,
            effect,
            &scale,
            top + (at as f64 + 0.5) * step,
        );
    }
    svg.finish("forest overview", WIDTH, bottom + 20.0, "effects-all-title")
}

fn row(svg: &mut Svg, doc: &Document, effect: &EffectResult, scale: &Scale, y: f64) {
    effect_group(svg, effect);
    let change = words::change(&effect.factor, &effect.from, &effect.to);
    let place = words::levels(&doc.factors, &effect.where_).replace("guest MTU ", "");
    let measured = words::measured(doc, &effect.load, effect.metric)
        .replace(" per Gbit/s", "")
        .replace(" per transaction", "");
    let with = |place: &str| match place {
        "" => format!("{measured}: {change}"),
        place => format!("{measured}: {change} ({place})"),
    };
    let label = with(&place);
    let shorter = place
        .replace("no encapsulation", "no encap.")
        .replace("without ", "no ")
        .replace("with ", "");
    // The bare levels, where there is no room for words.
    let levels = doc.factors.iter();
    let levels: Vec<&str> = levels
        .filter_map(|factor| Some(effect.where_.get(&factor.key)?.as_str()))
        .collect();
    let widths = [&place, &shorter, &levels.join(", ")].map(|place| with(place));
    svg.row_label((0.0, y + 4.0), LABEL - 8.0, &widths);
    let at = |ratio: f64| better(effect, ratio);
    if let (Some(a), Some(b)) = (effect.low.map(at), effect.high.map(at)) {
        let (low, high) = (a.min(b), a.max(b));
        svg.line("whisker", (scale.at(low), y), (scale.at(high), y));
        for (end, to) in [(low, -1.0), (high, 1.0)] {
            if !scale.holds(end) {
                ratios::arrow(svg, (scale.at(end), y), (5.0 * to, 3.0));
            }
        }
    }
    if let Some(ratio_) = effect.ratio.map(at) {
        let tip = format!(
            "{label}\n{}, {} {}",
            ratio(effect),
            sign(effect.verdict),
            effect.verdict
        );
        let point = svg
            .element("circle")
            .class("ratio")
            .number("cx", scale.at(ratio_));
        point.number("cy", y).number("r", 3.4).titled(&tip);
    }
    let figure = ratio(effect);
    let figure = figure.split(' ').next().unwrap_or_default();
    svg.text(
        "verdict",
        "start",
        (RIGHT, y + 4.0),
        &format!("{} {figure}", sign(effect.verdict)),
    );
    svg.close();
}
