//! Published comparisons with measured ones, in words.

use wirecost_answer::FULL;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Levels;
use wirecost_model::published::{Outcome, PublishedValue};
use wirecost_stats::published::Agreement;

use super::section::Section;
use super::table::{NONE, Table};
use super::{digits, notes};
use crate::result::document::{ComparisonResult, Document, PublishedResult};

/// A comparison as the row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is compared, and the figure.
    pub(crate) what: String,
    /// The published value; empty for a comparison that the study did not make.
    pub(crate) published: String,
    /// The measured value, with its interval.
    pub(crate) here: String,
    /// The value that the study's rule gives for the samples measured here; may be empty.
    pub(crate) ruled: String,
    /// Whether measured and published value agree.
    pub(crate) verdict: &'static str,
    /// Why the comparison is not comparable, and caveats; may be empty.
    pub(crate) remark: String,
}

/// The heading above the comparisons.
pub(crate) const HEADING: &str = "Published beside measured here";

/// Verdict for a comparison that the study did not make.
const BESIDE: &str = "not published";

/// Every comparison, followed by what was published and is not measured here.
pub(crate) fn rows(doc: &Document, published: &PublishedResult) -> Vec<Row> {
    let measured = published.comparisons.iter().map(|one| {
        let mut row = row(one);
        if fills_the_line(doc, one) {
            let remark = "here the line limits both, so this is the headers' share of it";
            let before = std::mem::take(&mut row.remark);
            let parts = [before.as_str(), remark];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            row.remark = parts.collect::<Vec<_>>().join("; ");
        }
        row
    });
    let others = published.unmeasured.iter().map(|one| Row {
        what: one.what.clone(),
        published: String::new(),
        here: "not measured".into(),
        ruled: String::new(),
        verdict: verdict(Some(Agreement::NotComparable)),
        remark: one.why.clone(),
    });
    measured.chain(others).collect()
}

/// Whether a comparison is of the throughput of two cells that both fill the line.
fn fills_the_line(doc: &Document, one: &ComparisonResult) -> bool {
    let is_full = |levels: &Levels| {
        let mut cells = doc.cells.iter();
        let cell = cells.find(|cell| {
            let mut levels = levels.iter();
            levels.all(|(key, level)| cell.levels.get(key) == Some(level))
        });
        cell.and_then(|cell| Some(cell.throughput_gbps?.median / cell.line_limit_gbps?))
            .is_some_and(|share| share >= FULL)
    };
    one.metric == Outcome::Of(Metric::Throughput) && one.cells.iter().all(is_full)
}

pub(crate) const fn verdict(agreement: Option<Agreement>) -> &'static str {
    match agreement {
        Some(Agreement::Agrees) => "agrees",
        Some(Agreement::Differs) => "differs",
        Some(Agreement::CannotTell) => "cannot tell",
        Some(Agreement::NotComparable) => "not comparable",
        None => BESIDE,
    }
}

fn row(one: &ComparisonResult) -> Row {
    let unit = if one.is_difference {
        format!(", difference in {}", one.unit)
    } else {
        String::new()
    };
    let remarks = [one.reason.clone(), one.note.clone()];
    Row {
        what: format!("{} ({}{unit})", one.what, one.metric),
        published: published(one),
        here: here(one),
        ruled: one
            .ruled()
            .map_or_else(String::new, |ruled| amount(one, ruled)),
        verdict: verdict(one.agreement),
        remark: remarks.into_iter().flatten().collect::<Vec<_>>().join("; "),
    }
}

/// The published value: `x2.03 (4.6, 9.33)`, `+60.0`, `at most +2.0`, followed by `, inferred` where it is inferred.
fn published(one: &ComparisonResult) -> String {
    let Some(value) = one.published else {
        return String::new();
    };
    let said = match value {
        PublishedValue::Values([from, to]) => {
            format!("{} ({from}, {to})", digits::ratio(to / from))
        }
        PublishedValue::Ratio(ratio) => digits::ratio(ratio),
        PublishedValue::Difference(by) => amount(one, by),
        PublishedValue::AtMost(by) => format!("at most {}", amount(one, by)),
    };
    if one.inferred {
        format!("{said}, inferred")
    } else {
        said
    }
}

/// The measured value with its interval, and the figures of both cells: `x1.95 [1.90, 2.01] (4.12, 8.03)`.
fn here(one: &ComparisonResult) -> String {
    let measured = if one.is_difference {
        one.here.map(|here| {
            let ends = one.low.zip(one.high);
            let ends = ends.map(|(low, high)| format!(" [{}, {}]", signed(low), signed(high)));
            signed(here) + &ends.unwrap_or_default()
        })
    } else {
        digits::ratio_and_interval(one.here, one.low, one.high)
    };
    let Some(measured) = measured else {
        return "not measured".into();
    };
    match one.figures {
        [Some(from), Some(to)] => format!("{measured} ({}, {})", plain(from), plain(to)),
        _ => measured,
    }
}

/// A value of the comparison as text: a ratio or a difference.
fn amount(one: &ComparisonResult, value: f64) -> String {
    if one.is_difference {
        signed(value)
    } else {
        digits::ratio(value)
    }
}

/// A difference with its sign and about three digits: `+12.0`, `-0.35`.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", plain(value.abs()))
}

/// A figure with about three digits.
pub(crate) fn plain(value: f64) -> String {
    match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A section with a row for each comparison; `None` where the plan has none.
pub(crate) fn section(doc: &Document) -> Option<Section> {
    let published = doc.published.as_ref()?;
    if published.tally.all() == 0 {
        return None;
    }
    let heads = [
        "comparison",
        "published#",
        "here#",
        "by their rule#",
        "verdict",
        "remark",
    ];
    let mut table = Table::new("", heads);
    let times = |field: String| match field.strip_prefix('x') {
        Some(ratio) => format!("×{ratio}"),
        None if field.is_empty() => NONE.into(),
        None => field,
    };
    for row in rows(doc, published) {
        let fields = vec![
            row.what,
            times(row.published),
            times(row.here),
            times(row.ruled),
            row.verdict.into(),
            row.remark,
        ];
        table.row(None, fields);
    }
    let title = published.title.iter().cloned();
    Some(Section {
        heading: HEADING.into(),
        sentences: title.chain([published.source.clone()]).collect(),
        tables: vec![table.finish("`published` of `wirecost report RUN_DIR --json`.")],
        meanings: notes(doc, published),
        ..Section::default()
    })
}

/// Notes on the comparisons: how they are judged, the study's rule, scaling, datapath, and where a comparison differs
/// both environments.
pub(crate) fn notes(doc: &Document, published: &PublishedResult) -> Vec<String> {
    let mut said = Vec::new();
    if published.comparisons.is_empty() {
        return said;
    }
    said.push(format!(
        "A comparison agrees if its whole interval is in the published direction and on the published side of the margin, {}; \
         of a published difference the sign is compared.",
        wirecost_model::units::format_fraction(doc.repeat.worth)
    ));
    if let Some(rule) = published.rule {
        said.push(format!(
            "Their rule, applied to the samples here, beside our ratio: {}.",
            rule.words()
        ));
    }
    if let Some(scaled) = &published.scaled {
        said.push(format!("Scaled: {scaled}."));
    }
    if let Some(datapath) = &published.datapath {
        said.push(format!("Datapath: {datapath}."));
    }
    if published.tally.differs > 0
        && let Some(theirs) = &published.environment
    {
        said.push(format!(
            "What differs in the environment: theirs was {theirs}. Here: {}. {}",
            notes::place(doc, true),
            notes::measures(doc)
        ));
    }
    said
}

/// Whether the study was reproduced, as the first sentence of the answer: `Reproduced in part: ...`.
pub(crate) fn sentence(doc: &Document) -> Option<String> {
    doc.published.as_ref()?.sentence.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(published: Option<PublishedValue>, is_difference: bool) -> ComparisonResult {
        ComparisonResult {
            what: "VXLAN instead of VLAN".into(),
            metric: Outcome::Of(Metric::SenderCpu),
            unit: "% of a core per Gbit/s",
            cells: [Levels::new(), Levels::new()],
            published,
            inferred: false,
            note: None,
            here: Some(1.5),
            low: Some(1.25),
            high: Some(1.8),
            is_difference,
            figures: [Some(10.0), Some(11.5)],
            by_rule: [Some(10.0), Some(12.0)],
            rounds: 5,
            agreement: published.map(|_| Agreement::Agrees),
            reason: None,
        }
    }

    #[test]
    fn ratios_and_differences_are_said_as_they_were_published() {
        let ratio = row(&comparison(Some(PublishedValue::Values([4.0, 8.0])), false));
        assert_eq!(ratio.what, "VXLAN instead of VLAN (sender CPU per Gbit/s)");
        assert_eq!(ratio.published, "x2.00 (4, 8)");
        assert_eq!(ratio.here, "x1.50 [1.25, 1.80] (10.0, 11.5)");
        assert_eq!((ratio.ruled.as_str(), ratio.verdict), ("x1.20", "agrees"));
        let most = row(&comparison(Some(PublishedValue::AtMost(2.0)), true));
        assert_eq!(
            most.what,
            "VXLAN instead of VLAN (sender CPU per Gbit/s, difference in % of a core per Gbit/s)"
        );
        assert_eq!(most.published, "at most +2.00");
        assert_eq!(most.here, "+1.50 [+1.25, +1.80] (10.0, 11.5)");
        assert_eq!(most.ruled, "+2.00");
    }

    #[test]
    fn what_was_not_published_has_no_verdict() {
        let own = row(&comparison(None, false));
        assert_eq!((own.published.as_str(), own.verdict), ("", BESIDE));
    }
}
