//! The table of verdicts, with the keys that the page filters it by.

use serde::Serialize;
use wirecost_model::metric::Metric;

use super::chart::Limits;
use crate::render::verdicts::{ALL, VerdictText, class, compared, sign, verdict_text, word};
use crate::render::{effects, words};
use crate::result::document::Document;

/// The table of verdicts: a row for each comparison, a column for each figure.
#[derive(Debug, Serialize)]
pub(super) struct Verdicts {
    /// The figures, one for each column.
    metrics: Vec<FilterOption>,
    /// Number of columns, with the one that names the row.
    columns: usize,
    /// The factors that have effects.
    factors: Vec<FilterOption>,
    /// The verdicts that occur, with their CSS classes as keys.
    words: Vec<FilterOption>,
    /// The rows, grouped by change.
    groups: Vec<Group>,
    /// What the table leaves out, and where to find it.
    left_out: Option<String>,
}

/// A name that is shown, and the key by which the page filters.
#[derive(Debug, Serialize)]
struct FilterOption {
    name: String,
    key: String,
}

/// The key of a figure on the page: `tcp-stream/sender_cpu`.
pub(super) fn figure_key(load: &str, metric: Metric) -> String {
    let metric = serde_json::to_value(metric).ok();
    let metric = metric.as_ref().and_then(|metric| metric.as_str());
    format!("{load}/{}", metric.unwrap_or_default())
}

#[derive(Debug, Serialize)]
struct Group {
    /// The factor's key.
    factor: String,
    /// The change in words: `guest MTU 8900 instead of 1500`.
    contrast: String,
    rows: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    /// Levels of the other factors, in words: `vxlan, offload none`.
    place: String,
    verdicts: Vec<Option<VerdictText>>,
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
                .map(|effect| Some(verdict_text(doc, (*effect)?, family)))
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
        columns: 1 + doc.figures.len(),
        metrics: doc
            .figures
            .iter()
            .map(|figure| FilterOption {
                name: words::measured(doc, &figure.load, figure.metric),
                key: figure_key(&figure.load, figure.metric),
            })
            .collect(),
        factors: doc
            .factors
            .iter()
            .filter(|factor| doc.effects.iter().any(|effect| effect.factor == factor.key))
            .map(|factor| FilterOption {
                name: words::factor(&factor.key).into_owned(),
                key: factor.key.clone(),
            })
            .collect(),
        words: ALL
            .into_iter()
            .filter(|verdict| doc.effects.iter().any(|effect| effect.verdict == *verdict))
            .map(|verdict| FilterOption {
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
