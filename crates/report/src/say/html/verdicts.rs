//! The table of verdicts, and how a verdict looks.

use serde::Serialize;
use wirecost_model::effect::Verdict;
use wirecost_model::metric::Metric;

use super::chart::Limits;
use crate::result::document::Document;
use crate::result::document::EffectResult;
use crate::say::effects;
use crate::say::{digits, words};

/// Every verdict, in the order in which they are explained.
pub(super) const ALL: [Verdict; 7] = [
    Verdict::Pays,
    Verdict::Costs,
    Verdict::Gains,
    Verdict::Loses,
    Verdict::MakesNoDifference,
    Verdict::CannotTellYet,
    Verdict::NotComparable,
];

/// Its class in the style sheet.
pub(super) const fn class(verdict: Verdict) -> &'static str {
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
pub(super) const fn sign(verdict: Verdict) -> &'static str {
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
pub(super) fn ratio(effect: &EffectResult) -> String {
    digits::ratio_and_interval(effect.ratio, effect.low, effect.high).map_or_else(
        || effect.no_pair().into(),
        |ratio| ratio.replacen('x', "×", 1),
    )
}

/// The table: a row for what is compared, a column for each metric.
#[derive(Debug, Serialize)]
pub(super) struct Verdicts {
    /// The figures' words, and the keys that the page filters by.
    metrics: Vec<Head>,
    /// The factors, likewise.
    factors: Vec<Head>,
    /// The verdicts that occur: their words and classes.
    words: Vec<Head>,
    /// One for every change.
    groups: Vec<Group>,
    /// What is not in it, and where it is.
    left_out: Option<String>,
}

/// What is shown, and what the page calls it.
#[derive(Debug, Serialize)]
struct Head {
    name: String,
    key: String,
}

/// What the page calls a figure: `tcp-stream/sender_cpu`.
pub(super) fn figure_key(load: &str, metric: Metric) -> String {
    let metric = serde_json::to_value(metric).ok();
    let metric = metric.as_ref().and_then(|metric| metric.as_str());
    format!("{load}/{}", metric.unwrap_or_default())
}

#[derive(Debug, Serialize)]
struct Group {
    /// The factor's key.
    factor: String,
    /// `guest MTU 8900 instead of 1500`.
    contrast: String,
    rows: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    /// `vxlan, offload none`.
    place: String,
    verdicts: Vec<Option<Field>>,
}

#[derive(Debug, Serialize)]
struct Field {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    ratio: Option<String>,
    interval: Option<String>,
    /// Where there are fewer rounds than in the run.
    rounds: Option<String>,
    /// Why the two cells are not comparable.
    reason: Option<String>,
    /// Where another method, or the whole family, says otherwise.
    remarks: Vec<String>,
    /// What else differs between the two cells.
    differences: Vec<String>,
}

/// One word, the rest of which the page explains.
pub(super) const fn word(verdict: Verdict) -> &'static str {
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

pub(super) fn table(doc: &Document, limits: Limits) -> Verdicts {
    let rows = limits.rows;
    let mut groups: Vec<Group> = Vec::new();
    let family = effects::family(doc);
    // The effects of one pair of cells follow each other, a metric each.
    let same = |a: &EffectResult, b: &EffectResult| {
        (&a.factor, &a.from, &a.to, &a.where_) == (&b.factor, &b.from, &b.to, &b.where_)
    };
    let pairs: Vec<&[EffectResult]> = doc.effects.chunk_by(same).collect();
    for pair in pairs.iter().take(rows) {
        let contrast = words::contrast(&pair[0].factor, &pair[0].from, &pair[0].to);
        let line = Line {
            place: words::levels(&doc.factors, &pair[0].where_),
            verdicts: doc
                .figures
                .iter()
                .map(|figure| {
                    let is_it = |effect: &&EffectResult| {
                        effect.metric == figure.metric && effect.load == figure.load
                    };
                    let effect = pair.iter().find(is_it)?;
                    Some(field(doc, effect, family))
                })
                .collect(),
        };
        match groups.iter_mut().find(|group| group.contrast == contrast) {
            Some(group) => group.rows.push(line),
            None => groups.push(Group {
                factor: pair[0].factor.clone(),
                contrast,
                rows: vec![line],
            }),
        }
    }
    Verdicts {
        metrics: doc
            .figures
            .iter()
            .map(|figure| Head {
                name: words::measured(doc, &figure.load, figure.metric),
                key: figure_key(&figure.load, figure.metric),
            })
            .collect(),
        factors: doc
            .factors
            .iter()
            .filter(|factor| doc.effects.iter().any(|effect| effect.factor == factor.key))
            .map(|factor| Head {
                name: words::factor(&factor.key).into_owned(),
                key: factor.key.clone(),
            })
            .collect(),
        words: ALL
            .into_iter()
            .filter(|verdict| doc.effects.iter().any(|effect| effect.verdict == *verdict))
            .map(|verdict| Head {
                name: format!("{} {}", sign(verdict), word(verdict)),
                key: class(verdict).into(),
            })
            .collect(),
        groups,
        left_out: (pairs.len() > rows).then(|| {
            format!(
                "These are the first {rows} of {} comparisons; all of them: `effects` of `wirecost report RUN_DIR --json`.",
                pairs.len()
            )
        }),
    }
}

fn field(doc: &Document, effect: &EffectResult, family: usize) -> Field {
    let rounds_done = doc.rounds_done;
    let text = ratio(effect);
    let (ratio, interval) = match text.split_once(' ') {
        Some((ratio, interval)) if interval.starts_with('[') => {
            (Some(ratio.to_owned()), Some(interval.to_owned()))
        }
        _ => (effect.ratio.map(|_| text), None),
    };
    Field {
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
pub(super) struct Meaning {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    says: String,
}

/// What every verdict means, with this run's margin.
pub(super) fn meanings(low: f64, high: f64) -> Vec<Meaning> {
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
