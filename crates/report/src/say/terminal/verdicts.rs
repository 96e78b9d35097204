//! One line per effect.

use wirecost_model::units::format_fraction;

use super::matrix::style;
use super::page::{Page, glue};
use crate::result::document::Document;
use crate::result::document::EffectResult;
use crate::say::effects;
use crate::say::{digits, words};

pub(super) fn print(doc: &Document, page: &mut Page) {
    if doc.effects.is_empty() {
        return;
    }
    page.heading(&format!(
        "What each change does, other things equal (a change of {} is worth it)",
        format_fraction(doc.repeat.worth)
    ));
    let family = effects::family(doc);
    for factor in &doc.factors {
        let effects: Vec<&EffectResult> = doc
            .effects
            .iter()
            .filter(|effect| effect.factor == factor.key)
            .collect();
        let (speeds, others): (Vec<&EffectResult>, Vec<&EffectResult>) = effects
            .into_iter()
            .partition(|effect| effect.metric.is_speed());
        for effect in speeds.iter().chain(&others) {
            let mut line = sentence(doc, effect, page);
            let remarks = effects::remarks(effect, family);
            if !remarks.is_empty() {
                line.push_str("; but ");
                line.push_str(&remarks.join(", "));
            }
            for difference in effects::differences(effect) {
                line.push_str("; note: ");
                line.push_str(&difference);
            }
            page.paragraph(&line);
        }
        page.gap();
    }
}

/// `guest MTU 8900 instead of 1500, vxlan, offload none: throughput x1.52 [1.45, 1.60] - pays`.
fn sentence(doc: &Document, effect: &EffectResult, page: &Page) -> String {
    let rounds_done = doc.rounds_done;
    let mut what = words::contrast(&effect.factor, &effect.from, &effect.to);
    if !effect.where_.is_empty() {
        what.push_str(", ");
        what.push_str(&words::levels(&doc.factors, &effect.where_));
    }
    let mut figure = words::measured(doc, &effect.load, effect.metric);
    if let Some(ratio) = digits::ratio_and_interval(effect.ratio, effect.low, effect.high) {
        figure.push(' ');
        figure.push_str(&ratio);
    }
    let mut verdict = page.paint(style(effect.verdict), &effect.verdict.to_string());
    if let Some(reason) = effects::reason(effect) {
        verdict.push_str(": ");
        verdict.push_str(&reason);
        return format!("{what}: {} {}{verdict}", glue(&figure), glue("- "));
    }
    let rounds = match effect.rounds {
        0 => format!(" ({})", effect.no_pair()),
        1 => " (an interval needs two rounds)".into(),
        n if n < rounds_done => format!(" ({n} of {rounds_done} rounds)"),
        _ => String::new(),
    };
    format!("{what}: {} {}{verdict}{rounds}", glue(&figure), glue("- "))
}
