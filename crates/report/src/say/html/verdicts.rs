//! The table of verdicts, and what the page filters it by.

use serde::Serialize;
use wirecost_model::metric::Metric;

use super::chart::Limits;
use crate::result::document::Document;
use crate::say::verdicts::{ALL, Said, class, compared, said, sign, word};
use crate::say::{effects, words};

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
    verdicts: Vec<Option<Said>>,
}

pub(super) fn table(doc: &Document, limits: Limits) -> Verdicts {
    let rows = limits.rows;
    let mut groups: Vec<Group> = Vec::new();
    let family = effects::family(doc);
    let pairs = compared(doc);
    for pair in pairs.iter().take(rows) {
        let change = pair.change;
        let contrast = words::contrast(&change.factor, &change.from, &change.to);
        let verdicts = pair.effects.iter();
        let line = Line {
            place: pair.place.clone(),
            verdicts: verdicts
                .map(|effect| Some(said(doc, (*effect)?, family)))
                .collect(),
        };
        match groups.iter_mut().find(|group| group.contrast == contrast) {
            Some(group) => group.rows.push(line),
            None => groups.push(Group {
                factor: change.factor.clone(),
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
