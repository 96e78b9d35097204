//! Verdicts as every form shows them: a row for what is compared, a field for each figure.

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

/// Its class in the style sheet.
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

/// Its sign, for readers who do not see colours.
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

/// `×1.52 [1.45, 1.60]`.
pub(crate) fn ratio(effect: &EffectResult) -> String {
    digits::ratio_and_interval(effect.ratio, effect.low, effect.high).map_or_else(
        || effect.no_pair().into(),
        |ratio| ratio.replacen('x', "×", 1),
    )
}

/// What two cells that differ in one factor show.
#[derive(Debug)]
pub(crate) struct Compared<'a> {
    /// The factor and its two levels, with any of the effects.
    pub(crate) change: &'a EffectResult,
    /// `vxlan, offload none`.
    pub(crate) place: String,
    /// One for each of the document's figures.
    pub(crate) effects: Vec<Option<&'a EffectResult>>,
}

/// Every two cells that were compared. The effects of one pair follow each other in the document.
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
pub(crate) struct Said {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
    pub(crate) ratio: Option<String>,
    pub(crate) interval: Option<String>,
    /// Where there are fewer rounds than in the run.
    pub(crate) rounds: Option<String>,
    /// Why the two cells are not comparable.
    pub(crate) reason: Option<String>,
    /// Where another method, or the whole family, says otherwise.
    pub(crate) remarks: Vec<String>,
    /// What else differs between the two cells.
    pub(crate) differences: Vec<String>,
}

/// One word, the rest of which the page explains.
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

/// A verdict in words; `family` is how many are judged together.
pub(crate) fn said(doc: &Document, effect: &EffectResult, family: usize) -> Said {
    let rounds_done = doc.rounds_done;
    let text = ratio(effect);
    let (ratio, interval) = match text.split_once(' ') {
        Some((ratio, interval)) if interval.starts_with('[') => {
            (Some(ratio.to_owned()), Some(interval.to_owned()))
        }
        _ => (effect.ratio.map(|_| text), None),
    };
    Said {
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

/// How a verdict is explained.
#[derive(Debug, Serialize)]
pub(crate) struct Meaning {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    says: String,
}

/// What every verdict means, with this run's margin.
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
