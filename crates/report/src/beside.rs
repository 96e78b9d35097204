//! What stands beside each effect: what other methods say of the same rounds, and what is left of
//! the verdict when the whole family is judged. The raw interval and verdict stay what they are.

use std::ops::Deref;

use serde::Serialize;
use wirecost_model::cell::Experiment;
use wirecost_model::effect::{Effect, Verdict};
use wirecost_model::sample::Sample;
use wirecost_stats::{
    Contrast, Corrected, Factorial, Method, Opinion, Says, View, correct, factorial,
    second_opinions,
};

use crate::document::Document;
use crate::until::Basis;
use crate::words;

/// An effect with what stands beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectResult {
    /// The effect, by Student's t.
    #[serde(flatten)]
    pub effect: Effect,
    /// What other methods say, those that have rounds enough.
    pub second_opinions: Vec<Opinion>,
    /// Whether one of them has another verdict, or its estimate outside the interval.
    pub disagreement: bool,
    /// p-values and the verdict when all effects of the run are judged together; `null` in a run
    /// until it is known that its rule did not stop.
    pub corrected: Option<Corrected>,
}

/// It is an effect, and is read as one by everything that does not ask for more.
impl Deref for EffectResult {
    type Target = Effect;

    fn deref(&self) -> &Effect {
        &self.effect
    }
}

/// Judges every contrast. `seed` is that of the resampling.
pub(crate) fn effects(
    experiment: &Experiment,
    contrasts: &[Contrast],
    basis: Basis,
    seed: u64,
) -> Vec<EffectResult> {
    let worth = experiment.plan.repeat.worth;
    match basis {
        Basis::Looking { aim, ends_at } => contrasts
            .iter()
            .map(|contrast| EffectResult {
                effect: contrast.lasting_effect(&aim, ends_at),
                second_opinions: Vec::new(),
                disagreement: false,
                corrected: None,
            })
            .collect(),
        Basis::Ended(stopping) => {
            let family: Vec<_> = contrasts
                .iter()
                .map(|contrast| (&contrast.logs[..], contrast.metric.better()))
                .collect();
            let corrected = correct(&family, worth, stopping);
            let judged = |(contrast, corrected): (&Contrast, Corrected)| {
                let better = contrast.metric.better();
                let second_opinions =
                    second_opinions(&contrast.logs, better, worth, stopping, seed);
                EffectResult {
                    effect: contrast.effect(worth, stopping),
                    disagreement: second_opinions.iter().any(|o| o.differs || o.outside),
                    second_opinions,
                    corrected: Some(corrected),
                }
            };
            contrasts.iter().zip(corrected).map(judged).collect()
        }
    }
}

/// What a factor does on the whole and where it does something else, by metric; nothing below two
/// varied factors, and where a run was stopped by something other than its rule.
pub(crate) fn factorials(
    experiment: &Experiment,
    samples: &[Sample],
    basis: Basis,
) -> Vec<Factorial> {
    let Basis::Ended(stopping) = basis else {
        return Vec::new();
    };
    if experiment.compared().nth(1).is_none() {
        return Vec::new();
    }
    let figures = experiment.figures();
    figures
        .iter()
        .map(|figure| factorial(experiment, samples, figure, stopping))
        .collect()
}

/// Where somebody else would judge otherwise: `signed rank says cannot tell yet (x1.02 [0.98, 1.06])`.
pub(crate) fn dissent(effect: &EffectResult) -> Vec<String> {
    let of = |opinion: &Opinion| {
        let name = match opinion.method {
            Method::SignedRank => "signed rank",
            Method::Bootstrap => "bootstrap",
        };
        let ends = opinion.interval;
        let ratio =
            words::ratio_and_interval(Some(opinion.ratio), Some(ends.low), Some(ends.high))?;
        match (opinion.differs, opinion.outside) {
            (true, _) => Some(format!(
                "{name} says {} ({ratio})",
                verdict(opinion.verdict)
            )),
            (false, true) => Some(format!("{name} puts it outside the interval ({ratio})")),
            (false, false) => None,
        }
    };
    effect.second_opinions.iter().filter_map(of).collect()
}

/// What is left of the verdict among all effects, where that is less.
pub(crate) fn correction(effect: &EffectResult, family: usize) -> Option<String> {
    let corrected = effect.corrected.filter(|c| c.verdict != effect.verdict)?;
    Some(format!(
        "among all {family} effects {}",
        verdict(corrected.verdict)
    ))
}

/// Both, for a place where only what matters is said; empty where nothing does.
pub(crate) fn remarks(effect: &EffectResult, family: usize) -> Vec<String> {
    let mut remarks = dissent(effect);
    remarks.extend(correction(effect, family));
    remarks
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "it pays",
        Verdict::Costs => "it costs",
        Verdict::MakesNoDifference => "it makes no difference",
        Verdict::Gains => "it gains, perhaps less than worth",
        Verdict::Loses => "it loses, perhaps less than worth",
        Verdict::CannotTellYet => "it cannot be told yet",
        Verdict::NotComparable => "it is not comparable",
    }
}

/// `throughput: guest MTU 8900 instead of 1500 pays only with offload none (x1.75 [1.70, 1.80]; with
/// offload tunnel x1.06 [1.05, 1.07])`: where one factor's effect depends on another's level, the
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
                let says = says.filter(|says| all || !matches!(says, Says::MoreWith { .. }));
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

fn dependence(measured: &str, view: &View, says: &Says, combinations: u32) -> String {
    let what = words::contrast(&view.factor, &view.from, &view.to);
    let with = |level: &str| words::level(&view.other, level);
    let (verb, level) = match says {
        Says::PaysOnlyWith { with } => ("pays only with", with),
        Says::CostsOnlyWith { with } => ("costs only with", with),
        Says::Reverses { pays_with } => ("pays with", pays_with),
        Says::MoreWith { with } => match view.verdict_at_from {
            Verdict::Costs => ("costs more with", with),
            _ => ("pays more with", with),
        },
    };
    let (here, other, there) = if *level == view.other_from {
        (view.at_from, &view.other_to, view.at_to)
    } else {
        (view.at_to, &view.other_from, view.at_from)
    };
    let ratio = |of: wirecost_stats::PairedRatio| {
        words::ratio_and_interval(of.ratio, of.low, of.high).unwrap_or_else(|| "-".into())
    };
    let costs = if matches!(says, Says::Reverses { .. }) {
        format!(" and costs with {}", with(other))
    } else {
        String::new()
    };
    let mean = if combinations > 1 {
        format!(", on average over {combinations} combinations")
    } else {
        String::new()
    };
    format!(
        "{}: {what} {verb} {}{costs} ({}; with {} {}{mean})",
        measured,
        with(level),
        ratio(here),
        with(other),
        ratio(there),
    )
}
