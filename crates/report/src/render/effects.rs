//! Effects in words: second opinions, why an effect is not comparable, which effects depend on another factor.

use std::collections::BTreeSet;

use wirecost_model::effect::{Remark, RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_stats::{Dependence, Method, SecondOpinion, SimpleEffect};

use super::section::{Item, Section};
use super::{digits, words};
use crate::result::document::{Document, EffectResult};

/// Second opinions that differ from the verdict: `signed rank says it is not known yet (x1.02 [0.98, 1.06])`.
pub(crate) fn differing_opinions(effect: &EffectResult) -> Vec<String> {
    let of = |opinion: &SecondOpinion| {
        let name = match opinion.method {
            Method::SignedRank => "signed rank",
            Method::Bootstrap => "bootstrap",
        };
        let ends = opinion.interval;
        let ratio =
            digits::ratio_and_interval(Some(opinion.ratio), Some(ends.low), Some(ends.high))?;
        match (opinion.differs, opinion.outside) {
            (true, _) => Some(format!(
                "{name} says {} ({ratio})",
                verdict(opinion.verdict)
            )),
            (false, true) => Some(format!("{name} estimates {ratio}, outside the interval")),
            (false, false) => None,
        }
    };
    effect.second_opinions.iter().filter_map(of).collect()
}

/// The corrected verdict in words, where it differs; `family` is the number of effects that are judged together.
pub(crate) fn correction(effect: &EffectResult, family: usize) -> Option<String> {
    let corrected = effect.corrected.filter(|c| c.verdict != effect.verdict)?;
    Some(format!(
        "corrected for all {family} effects, {}",
        verdict(corrected.verdict)
    ))
}

/// Whether another method disagrees, or the corrected verdict differs.
pub(crate) fn is_disputed(effect: &EffectResult) -> bool {
    effect.disagreement || effect.final_verdict() != effect.verdict
}

/// Second opinions that differ, and the corrected verdict where it differs.
pub(crate) fn remarks(effect: &EffectResult, family: usize) -> Vec<String> {
    let mut remarks = differing_opinions(effect);
    remarks.extend(correction(effect, family));
    remarks
}

/// Why an effect is not comparable, and what to do; `None` where it is comparable.
pub(crate) fn reason(effect: &EffectResult) -> Option<String> {
    effect.not_comparable.as_ref().map(words_of)
}

/// Differences between the two cells that do not rule out a verdict, without those that [`general_remarks`] reports
/// once. A difference that does not depend on the figure is reported with the speed alone, of a migration with its
/// time.
pub(crate) fn differences(effect: &EffectResult) -> Vec<String> {
    let of_figure = |remark: &&Remark| {
        effect.metric.is_speed()
            || effect.metric == Metric::MoveTime
            || matches!(
                remark.kind,
                RemarkKind::Schedule | RemarkKind::Wakeups | RemarkKind::LineCost
            )
    };
    let own = effect.remarks.iter().filter(|remark| !is_general(remark));
    own.filter(of_figure).map(words_of).collect()
}

/// Remarks that many effects have in common, each once.
pub(crate) fn general_remarks(doc: &Document) -> Vec<String> {
    let all = doc.effects.iter().flat_map(|effect| &effect.remarks);
    let general: BTreeSet<String> = all
        .filter(|remark| is_general(remark))
        .map(words_of)
        .collect();
    general.into_iter().map(|text| sentence(&text)).collect()
}

fn is_general(remark: &Remark) -> bool {
    matches!(
        remark.kind,
        RemarkKind::TransitCpu | RemarkKind::JoinedInside
    )
}

/// The text of a remark, followed by its advice.
pub(crate) fn words_of(remark: &Remark) -> String {
    if remark.advice.is_empty() {
        remark.text.clone()
    } else {
        format!("{}: {}", remark.text, remark.advice)
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", letters.as_str())
}

/// Number of effects that are judged together.
pub(crate) fn family(doc: &Document) -> usize {
    let spoken = doc
        .effects
        .iter()
        .filter(|effect| effect.corrected.is_some());
    spoken.count()
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "it pays",
        Verdict::Costs => "it costs",
        Verdict::MakesNoDifference => "it makes no difference",
        Verdict::Gains => "it gains, perhaps within the margin",
        Verdict::Loses => "it loses, perhaps within the margin",
        Verdict::CannotTellYet => "it is not known yet",
        Verdict::NotComparable => "it is not comparable",
    }
}

/// Where one factor's effect depends on another's level, the strongest dependence first: `throughput:
/// guest MTU 8900 instead of 1500 pays only without offloads (x1.75 [1.70, 1.80]; with offloads x1.06
/// [1.05, 1.07])`. `all` includes changes that pay or cost with both levels, and more with one of them.
fn dependences(doc: &Document, all: bool) -> Vec<String> {
    let mut found: Vec<(f64, String)> = Vec::new();
    for factorial in &doc.factorials {
        for interaction in &factorial.interactions {
            let size = interaction
                .ratio
                .ratio
                .map_or(0.0, |ratio| ratio.ln().abs());
            for view in &interaction.views {
                let says = view.says.as_ref();
                let says = says.filter(|says| all || !matches!(says, Dependence::MoreWith { .. }));
                if let Some(says) = says {
                    let text = dependence(
                        &words::measured(doc, &factorial.load, factorial.metric),
                        view,
                        says,
                        interaction.combinations,
                    );
                    found.push((size, text));
                }
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, text)| text).collect()
}

/// The section of changes that depend on another, with `most` of them at most; `None` where none does.
pub(crate) fn section(doc: &Document, all: bool, most: usize) -> Option<Section> {
    let depends = dependences(doc, all);
    let mut items: Vec<Item> = depends.iter().take(most).map(Item::of).collect();
    if depends.len() > most {
        let more = depends.len() - most;
        items.push(Item::of(format!("and {more} more, in the JSON document")));
    }
    (!items.is_empty()).then(|| Section {
        heading: "Where one change depends on another".into(),
        items,
        ..Section::default()
    })
}

fn dependence(measured: &str, view: &SimpleEffect, says: &Dependence, combinations: u32) -> String {
    let what = words::contrast(&view.factor, &view.from, &view.to);
    let with = |level: &str| words::condition(&view.other, &[level]);
    let (verb, level) = match says {
        Dependence::PaysOnlyWith { with } => ("pays only", with),
        Dependence::CostsOnlyWith { with } => ("costs only", with),
        Dependence::Reverses { pays_with } => ("pays", pays_with),
        Dependence::MoreWith { with } => match view.verdict_at_from {
            Verdict::Costs => ("costs more", with),
            _ => ("pays more", with),
        },
    };
    let (here, other, there) = if *level == view.other_from {
        (view.at_from, &view.other_to, view.at_to)
    } else {
        (view.at_to, &view.other_from, view.at_from)
    };
    let ratio = |of: wirecost_stats::PairedRatio| {
        digits::ratio_and_interval(of.ratio, of.low, of.high).unwrap_or_else(|| "-".into())
    };
    let costs = if matches!(says, Dependence::Reverses { .. }) {
        format!(" and costs {}", with(other))
    } else {
        String::new()
    };
    let mean = if combinations > 1 {
        format!(", on average over {combinations} combinations")
    } else {
        String::new()
    };
    format!(
        "{}: {what} {verb} {}{costs} ({}; {} {}{mean})",
        measured,
        with(level),
        ratio(here),
        with(other),
        ratio(there),
    )
}
