//! What stands around the verdicts: published figures, invalid and marked samples, the outcome,
//! where the record lies and how a verdict is read.

use std::collections::BTreeMap;

use wirecost_stats::Margin;

use super::page::{Page, Style, glue};
use super::words;
use crate::document::{Document, Ending};

/// Lines of invalid samples before the rest is only counted.
const INVALID_LINES: usize = 8;

pub(super) fn published(doc: &Document, page: &mut Page) {
    let Some(published) = &doc.published else {
        return;
    };
    page.gap();
    page.paragraph(&format!("Published: {}", published.source));
    for ratio in &published.ratios {
        let mut what = words::contrast(&ratio.factor, &ratio.from, &ratio.to);
        if !ratio.where_.is_empty() {
            what.push_str(", ");
            what.push_str(&words::levels(&doc.factors, &ratio.where_));
        }
        let here = words::ratio_and_interval(ratio.here, ratio.low, ratio.high)
            .map_or_else(|| "here not measured".into(), |here| format!("here {here}"));
        page.paragraph(&format!(
            "{what}: {} {}",
            glue(&format!("published {},", words::ratio(ratio.published))),
            glue(&here)
        ));
    }
    for note in &published.notes {
        page.paragraph(&format!(
            "Published for {}: {}",
            words::levels(&doc.factors, &note.levels),
            note.note
        ));
    }
}

pub(super) fn oddities(doc: &Document, page: &mut Page) {
    invalid(doc, page);
    if !doc.marks.is_empty() {
        let marked: u32 = doc.cells.iter().map(|cell| cell.marked).sum();
        let kinds: Vec<String> = doc
            .marks
            .iter()
            .map(|mark| format!("{} {}", mark.kind.replace('-', " "), mark.samples))
            .collect();
        page.paragraph(&format!(
            "{marked} of {} may have been disturbed, and count all the same: {}.",
            words::count(doc.samples as usize, "sample"),
            kinds.join(", ")
        ));
    }
    for warning in &doc.warnings {
        let label = page.paint(Style::Worse, "Warning:");
        page.paragraph(&format!("{label} {warning}."));
    }
}

fn invalid(doc: &Document, page: &mut Page) {
    if doc.invalid.is_empty() {
        return;
    }
    let label = format!(
        "{} of {} not valid, in no verdict:",
        doc.invalid.len(),
        words::count(doc.samples as usize, "sample")
    );
    page.paragraph(&page.paint(Style::Worse, &label));
    let mut alike: BTreeMap<(u32, &str), Vec<u32>> = BTreeMap::new();
    for sample in &doc.invalid {
        alike
            .entry((sample.cell, &sample.reason))
            .or_default()
            .push(sample.round + 1);
    }
    for ((cell, reason), rounds) in alike.iter().take(INVALID_LINES) {
        let levels = doc.cells.iter().find(|result| result.cell == *cell);
        let levels = levels.map_or_else(String::new, |result| {
            words::levels(&doc.factors, &result.levels)
        });
        let place = if levels.is_empty() {
            String::new()
        } else {
            format!("{levels}, ")
        };
        let rounds: Vec<String> = rounds.iter().map(ToString::to_string).collect();
        let noun = if rounds.len() == 1 { "round" } else { "rounds" };
        page.paragraph(&format!("- {place}{noun} {}: {reason}", rounds.join(", ")));
    }
    if alike.len() > INVALID_LINES {
        page.paragraph(&format!(
            "- and {} more, in the record",
            alike.len() - INVALID_LINES
        ));
    }
}

pub(super) fn outcome(doc: &Document, page: &mut Page) {
    let how = match doc.outcome {
        Ending::Complete => return,
        Ending::Interrupted => "interrupted",
        Ending::Failed => "failed",
        Ending::NoEnd => "the record has no end: the run was killed, or is still going",
    };
    let reason = doc
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(" ({reason})"));
    let label = format!(
        "Stopped after {} of {}:",
        doc.rounds_done,
        words::count(doc.rounds_planned as usize, "round")
    );
    let label = page.paint(Style::Bad, &label);
    page.paragraph(&format!("{label} {how}{reason}."));
}

pub(super) fn footer(doc: &Document, page: &mut Page) {
    page.gap();
    let margin = Margin::of(doc.repeat.worth);
    page.paragraph(&format!(
        "How to read: x is the ratio paired within rounds, [ ] its 95% interval. pays, costs: all of it outside {:.2} to \
         {:.2}; makes no difference: all of it within; gains, loses: beyond 1, perhaps less than worth; cannot tell yet: \
         more rounds are needed.",
        margin.low, margin.high
    ));
    page.paragraph(&format!("Record: {}", glue(&doc.run_dir)));
}
