//! Verdicts in the form that all formats use: a row for each comparison, a field for each figure.

use serde::Serialize;
use wirecost_model::effect::Verdict;

use super::{digits, effects, words};
use crate::result::document::{Document, EffectResult};

/// Every verdict, in the order in which they are explained.
pub(crate) const ALL: [Verdict; 7] = [
    Verdict::Pays,
    Verdict::Costs,
    Verdict::Gains,
    Verdict::Loses,
    Verdict::MakesNoDifference,
    Verdict::CannotTellYet,
    Verdict::NotComparable,
];

/// The verdict's class in the style sheet.
pub(crate) const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "pays",
        Verdict::Costs => "costs",
        Verdict::Gains => "gains",
        Verdict::Loses => "loses",
        Verdict::MakesNoDifference => "same",
        Verdict::CannotTellYet => "open",
        Verdict::NotComparable => "barred",
    }
}

/// The verdict's sign, for readers who do not see colours.
pub(crate) const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "▲",
        Verdict::Costs => "▼",
        Verdict::Gains => "△",
        Verdict::Loses => "▽",
        Verdict::MakesNoDifference => "=",
        Verdict::CannotTellYet => "?",
        Verdict::NotComparable => "≠",
    }
}

/// The ratio of an effect with its interval, `×1.52 [1.45, 1.60]`, or why there is none.
pub(crate) fn ratio(effect: &EffectResult) -> String {
    digits::ratio_and_interval(effect.ratio, effect.low, effect.high).map_or_else(
        || effect.no_pair().into(),
        |ratio| ratio.replacen('x', "×", 1),
    )
}

/// The effects between two cells that differ in one factor.
#[derive(Debug)]
pub(crate) struct Compared<'a> {
    /// One of the effects, for the factor and its two levels.
    pub(crate) change: &'a EffectResult,
    /// The levels of the other varied factors, in words: `vxlan, offload none`.
    pub(crate) place: String,
    /// The effect on each of the document's figures.
    pub(crate) effects: Vec<Option<&'a EffectResult>>,
}

/// Every pair of cells that was compared. The document has the effects of a pair one after the other.
pub(crate) fn compared(doc: &Document) -> Vec<Compared<'_>> {
    let same = |a: &EffectResult, b: &EffectResult| {
        (&a.factor, &a.from, &a.to, &a.where_) == (&b.factor, &b.from, &b.to, &b.where_)
    };
    let pairs = doc.effects.chunk_by(same).map(|pair| Compared {
        change: &pair[0],
        place: words::levels(&doc.factors, &pair[0].where_),
        effects: doc
            .figures
            .iter()
            .map(|figure| {
                let is_it = |effect: &&EffectResult| {
                    effect.metric == figure.metric && effect.load == figure.load
                };
                pair.iter().find(is_it)
            })
            .collect(),
    });
    pairs.collect()
}

/// A verdict in words.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictText {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
    pub(crate) ratio: Option<String>,
    pub(crate) interval: Option<String>,
    /// A note where the effect has fewer rounds than the run, or no interval.
    pub(crate) rounds: Option<String>,
    /// Why the two cells are not comparable.
    pub(crate) reason: Option<String>,
    /// Second opinions that differ, and the corrected verdict where it differs.
    pub(crate) remarks: Vec<String>,
    /// What else differs between the two cells.
    pub(crate) differences: Vec<String>,
}

/// The verdict in a word or two.
pub(crate) const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "pays",
        Verdict::Costs => "costs",
        Verdict::Gains => "gains",
        Verdict::Loses => "loses",
        Verdict::MakesNoDifference => "no difference",
        Verdict::CannotTellYet => "cannot tell yet",
        Verdict::NotComparable => "not comparable",
    }
}

/// A verdict in words; `family` is the number of effects that are judged together.
pub(crate) fn verdict_text(doc: &Document, effect: &EffectResult, family: usize) -> VerdictText {
    let rounds_done = doc.rounds_done;
    let text = ratio(effect);
    let (ratio, interval) = match text.split_once(' ') {
        Some((ratio, interval)) if interval.starts_with('[') => {
            (Some(ratio.to_owned()), Some(interval.to_owned()))
        }
        _ => (effect.ratio.map(|_| text), None),
    };
    VerdictText {
        class: class(effect.verdict),
        sign: sign(effect.verdict),
        word: word(effect.verdict),
        ratio,
        interval,
        rounds: match effect.rounds {
            0 => Some(effect.no_pair().into()),
            1 => Some("an interval needs two rounds".into()),
            n if n < rounds_done => Some(format!("{n} of {rounds_done} rounds")),
            _ => None,
        },
        reason: effects::reason(effect),
        remarks: effects::remarks(effect, family),
        differences: effects::differences(effect),
    }
}

/// The explanation of a verdict.
#[derive(Debug, Serialize)]
pub(crate) struct Meaning {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    says: String,
}

/// What every verdict means, with this run's margin from `low` to `high`.
pub(crate) fn meanings(low: f64, high: f64) -> Vec<Meaning> {
    let band = format!("{low:.2} to {high:.2}");
    ALL.into_iter()
        .map(|verdict| Meaning {
            class: class(verdict),
            sign: sign(verdict),
            word: word(verdict),
            says: match verdict {
                Verdict::Pays => {
                    format!("the whole interval is better than the margin, {band}")
                }
                Verdict::Costs => format!("the whole interval is worse than the margin, {band}"),
                Verdict::Gains => {
                    "the interval is better than 1 and reaches into the margin".into()
                }
                Verdict::Loses => "the interval is worse than 1 and reaches into the margin".into(),
                Verdict::MakesNoDifference => {
                    format!("the whole interval is within the margin, {band}")
                }
                Verdict::CannotTellYet => {
                    "the interval is too wide to say: more rounds are needed".into()
                }
                Verdict::NotComparable => {
                    "something other than the change differs between the two and decides the figure"
                        .into()
                }
            },
        })
        .collect()
}
