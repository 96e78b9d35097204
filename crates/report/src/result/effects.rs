//! Effects with second opinions of other methods on the same rounds, and with the verdict corrected for the whole
//! family. These do not change the effect's own interval and verdict.

use std::collections::BTreeSet;

use wirecost_model::cell::Experiment;
use wirecost_model::effect::{Effect, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::record::RunHead;
use wirecost_stats::{Contrast, Factorial, Observed, correct, factorial, second_opinions};

use crate::result::adaptive::IntervalBasis;
use crate::result::document::{EffectResult, NoRatio};

/// Log ratios of all effects together up to which the bootstrap is computed. With more rounds it takes minutes, and
/// gives what Student's interval gives.
const RESAMPLED: usize = 100_000;

/// Judges every contrast of a run.
pub(crate) fn judge(
    head: &RunHead,
    observed: &Observed,
    contrasts: &[Contrast],
    basis: IntervalBasis,
) -> Vec<EffectResult> {
    let worth = head.experiment.plan.repeat.worth;
    let mut results: Vec<EffectResult> = contrasts
        .iter()
        .map(|contrast| {
            let effect = judged(contrast, worth, basis);
            EffectResult {
                no_ratio: effect.ratio.is_none().then(|| no_ratio(observed, contrast)),
                effect,
                second_opinions: Vec::new(),
                disagreement: false,
                corrected: None,
            }
        })
        .collect();
    let IntervalBasis::Ended(stopping) = basis else {
        return results;
    };
    // Only effects that get a verdict belong to the family of the correction.
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

/// The effect of a contrast, with the interval that fits how the run ended.
pub(crate) fn judged(contrast: &Contrast, worth: f64, basis: IntervalBasis) -> Effect {
    match basis {
        IntervalBasis::Looking { criterion, ends_at } => {
            contrast.lasting_effect(&criterion, ends_at)
        }
        IntervalBasis::Ended(stopping) => contrast.effect(worth, stopping),
    }
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

/// Main effects and interactions of the factors, by figure; empty with fewer than two varied factors, and
/// where an adaptive run was stopped by something other than its rule.
pub(crate) fn factorials(
    experiment: &Experiment,
    observed: &Observed,
    basis: IntervalBasis,
) -> Vec<Factorial> {
    let IntervalBasis::Ended(stopping) = basis else {
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
