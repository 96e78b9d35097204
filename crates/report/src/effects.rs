//! Effects with second opinions: other methods on the same rounds, and the verdict corrected for the whole family.
//! The raw interval and verdict do not change.

use std::collections::BTreeSet;

use wirecost_model::cell::Experiment;
use wirecost_model::effect::{Remark, RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::record::RunHead;
use wirecost_stats::{
    Contrast, Dependence, Factorial, Method, Observed, SecondOpinion, SimpleEffect, correct,
    factorial, second_opinions,
};

use crate::document::{Document, EffectResult, NoRatio};
use crate::until::Basis;
use crate::{digits, words};

/// Log ratios of all effects together up to which they are resampled. Of more rounds the bootstrap says what Student's
/// interval does, and takes minutes.
const RESAMPLED: usize = 100_000;

/// Judges every contrast of a run.
pub(crate) fn judge(
    head: &RunHead,
    observed: &Observed,
    contrasts: &[Contrast],
    basis: Basis,
) -> Vec<EffectResult> {
    let worth = head.experiment.plan.repeat.worth;
    let judged = |contrast: &Contrast| match basis {
        Basis::Looking { aim, ends_at } => contrast.lasting_effect(&aim, ends_at),
        Basis::Ended(stopping) => contrast.effect(worth, stopping),
    };
    let mut results: Vec<EffectResult> = contrasts
        .iter()
        .map(|contrast| {
            let effect = judged(contrast);
            EffectResult {
                no_ratio: effect.ratio.is_none().then(|| no_ratio(observed, contrast)),
                effect,
                second_opinions: Vec::new(),
                disagreement: false,
                corrected: None,
            }
        })
        .collect();
    let Basis::Ended(stopping) = basis else {
        return results;
    };
    // Only verdicts that are given can be wrong: they are the family.
    let spoken: Vec<(&Contrast, &mut EffectResult)> = contrasts
        .iter()
        .zip(&mut results)
        .filter(|(_, result)| result.verdict != Verdict::NotComparable)
        .collect();
    let family: Vec<_> = spoken
        .iter()
        .map(|(contrast, _)| (&contrast.logs[..], contrast.metric.better()))
        .collect();
    let corrected = correct(&family, worth, stopping);
    let logs: usize = family.iter().map(|(logs, _)| logs.len()).sum();
    let seed = Some(head.seed).filter(|_| logs <= RESAMPLED);
    for ((contrast, result), corrected) in spoken.into_iter().zip(corrected) {
        let better = contrast.metric.better();
        result.second_opinions = second_opinions(&contrast.logs, better, worth, stopping, seed);
        let mut opinions = result.second_opinions.iter();
        result.disagreement = opinions.any(|opinion| opinion.differs || opinion.outside);
        result.corrected = Some(corrected);
    }
    results
}

fn no_ratio(observed: &Observed, contrast: &Contrast) -> NoRatio {
    let [from, to] = contrast
        .cells
        .map(|cell| observed.rounds(cell).iter().collect::<BTreeSet<_>>());
    if from.is_disjoint(&to) {
        NoRatio::NoValidPair
    } else if matches!(contrast.metric, Metric::MoveTime | Metric::Downtime) {
        NoRatio::NotMoved
    } else if contrast.metric.is_latency() {
        NoRatio::TooFewTransactions
    } else if contrast.rounds > 0 {
        NoRatio::TooFewSteps
    } else {
        NoRatio::NoFigure
    }
}

/// What a factor does on the whole and where it does something else, by metric; nothing below two
/// varied factors, and where a run was stopped by something other than its rule.
pub(crate) fn factorials(
    experiment: &Experiment,
    observed: &Observed,
    basis: Basis,
) -> Vec<Factorial> {
    let Basis::Ended(stopping) = basis else {
        return Vec::new();
    };
    if experiment.compared().nth(1).is_none() {
        return Vec::new();
    }
    observed
        .figures()
        .iter()
        .map(|figure| factorial(experiment, observed, figure, stopping))
        .collect()
}

/// Second opinions that differ from the verdict: `signed rank says cannot tell yet (x1.02 [0.98, 1.06])`.
pub(crate) fn dissent(effect: &EffectResult) -> Vec<String> {
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

/// The corrected verdict where it differs.
pub(crate) fn correction(effect: &EffectResult, family: usize) -> Option<String> {
    let corrected = effect.corrected.filter(|c| c.verdict != effect.verdict)?;
    Some(format!(
        "corrected for all {family} effects, {}",
        verdict(corrected.verdict)
    ))
}

/// Whether another method, or the correction for all comparisons, says something else.
pub(crate) fn is_disputed(effect: &EffectResult) -> bool {
    effect.disagreement || effect.told() != effect.verdict
}

/// Dissent and correction together; empty if there is none.
pub(crate) fn remarks(effect: &EffectResult, family: usize) -> Vec<String> {
    let mut remarks = dissent(effect);
    remarks.extend(correction(effect, family));
    remarks
}

/// What stands in a verdict's place, and what to do.
pub(crate) fn reason(effect: &EffectResult) -> Option<String> {
    effect.not_comparable.as_ref().map(words_of)
}

/// Differences between the two cells that do not forbid the verdict, but for those that [`for_all`] says once. What is
/// true of the cells whatever the figure is said beside the speed.
pub(crate) fn differences(effect: &EffectResult) -> Vec<String> {
    let of_figure = |remark: &&Remark| {
        effect.metric.is_speed()
            || matches!(
                remark.kind,
                RemarkKind::Schedule | RemarkKind::Wakeups | RemarkKind::LineCost
            )
    };
    let own = effect.remarks.iter().filter(|remark| !is_general(remark));
    own.filter(of_figure).map(words_of).collect()
}

/// Remarks that are the same beside many effects.
pub(crate) fn for_all(doc: &Document) -> Vec<String> {
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

/// The text, and the advice behind it.
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

/// Effects that are judged together.
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
        Verdict::CannotTellYet => "it cannot be told yet",
        Verdict::NotComparable => "it is not comparable",
    }
}

/// `throughput: guest MTU 8900 instead of 1500 pays only without offloads (x1.75 [1.70, 1.80]; with
/// offloads x1.06 [1.05, 1.07])`: where one factor's effect depends on another's level, the
/// strongest dependence first. `all` also has those that pay or cost with both levels, and more with one.
pub(crate) fn dependences(doc: &Document, all: bool) -> Vec<String> {
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
