//! The self-test in words.

use super::{digits, words};
use crate::result::document::{Document, MetricSelfTest};

/// The warning at the top of a result where the self-test shows an effect; `times` is the sign before ratios: `x` or
/// `×`.
pub(crate) fn warning(doc: &Document, times: char) -> Option<String> {
    let result = doc.self_test.as_ref()?;
    let shown = |beyond: bool| {
        let of = result
            .metrics
            .iter()
            .filter(move |one| one.test.shows_effect && (one.test.beyond_worth || !beyond));
        of.map(|one| figure(doc, one, times)).collect::<Vec<_>>()
    };
    let (beyond, any) = (shown(true), shown(false));
    if !beyond.is_empty() {
        return Some(format!(
            "Do not rely on this run: its first cell, measured twice in every round, differs from itself by more than \
             the margin, in {}.",
            beyond.join(", ")
        ));
    }
    (!any.is_empty()).then(|| {
        format!(
            "The self-test shows an effect where there is none: the first cell, measured twice in every round, differs from \
             itself in {}. By chance that happens to one run in twenty for each figure; effects of this size are no \
             evidence here.",
            any.join(", ")
        )
    })
}

/// The result of a self-test that shows no effect; `None` where it shows one.
pub(crate) fn passed(doc: &Document, times: char) -> Option<String> {
    let result = doc.self_test.as_ref()?;
    if result.metrics.iter().any(|one| one.test.shows_effect) {
        return None;
    }
    let figures: Vec<String> = result
        .metrics
        .iter()
        .map(|one| figure(doc, one, times))
        .collect();
    Some(format!(
        "Self-test: the first cell against itself shows no effect: {}.",
        figures.join(", ")
    ))
}

/// The ratio of one figure: `throughput x1.01 [0.98, 1.04]`.
fn figure(doc: &Document, one: &MetricSelfTest, times: char) -> String {
    let ratio = one.test.ratio;
    let ratio = digits::ratio_and_interval(ratio.ratio, ratio.low, ratio.high);
    let ratio = ratio.unwrap_or_else(|| "without a valid pair".into());
    let ratio = ratio.replacen('x', &times.to_string(), 1);
    format!("{} {ratio}", words::measured(doc, &one.load, one.metric))
}
