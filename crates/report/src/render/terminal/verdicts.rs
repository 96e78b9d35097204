//! The effects with their verdicts, printed for a terminal, one paragraph each.

use wirecost_model::units::format_fraction;

use super::matrix::style;
use super::page::{Page, nonbreaking};
use crate::render::effects;
use crate::render::verdicts::verdict_text;
use crate::render::words;
use crate::result::document::Document;
use crate::result::document::EffectResult;

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
            let line = sentence(doc, effect, family, page);
            page.paragraph(&line);
        }
        page.gap();
    }
}

/// An effect in a sentence: `guest MTU 8900 instead of 1500, vxlan, offload none: throughput x1.52 [1.45, 1.60] -
/// pays`, followed by second opinions that differ and notes.
fn sentence(doc: &Document, effect: &EffectResult, family: usize, page: &Page) -> String {
    let said = verdict_text(doc, effect, family);
    let mut what = words::contrast(&effect.factor, &effect.from, &effect.to);
    if !effect.where_.is_empty() {
        what.push_str(", ");
        what.push_str(&words::levels(&doc.factors, &effect.where_));
    }
    let measured = words::measured(doc, &effect.load, effect.metric);
    let figure = [Some(measured), said.ratio, said.interval];
    let figure: Vec<String> = figure.into_iter().flatten().collect();
    let mut verdict = page.paint(style(effect.verdict), &effect.verdict.to_string());
    if let Some(reason) = &said.reason {
        verdict.push_str(": ");
        verdict.push_str(reason);
    } else if let Some(rounds) = &said.rounds {
        verdict.push_str(" (");
        verdict.push_str(rounds);
        verdict.push(')');
    }
    if !said.remarks.is_empty() {
        verdict.push_str("; but ");
        verdict.push_str(&said.remarks.join(", "));
    }
    for difference in &said.differences {
        verdict.push_str("; note: ");
        verdict.push_str(difference);
    }
    let figure = nonbreaking(&figure.join(" ").replace('×', "x"));
    format!("{what}: {figure} {}{verdict}", nonbreaking("- "))
}
