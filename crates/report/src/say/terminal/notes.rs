//! What stands around the verdicts: published figures, invalid and marked samples, the outcome,
//! where the record lies and how a verdict is read.

use super::page::{Page, Style, glue};
use crate::result::document::Document;
use crate::result::trust::marked;
use crate::say::{digits, effects, notes, study, validity};

/// Lines of invalid samples before the rest is only counted.
const INVALID_LINES: usize = 4;

pub(super) fn published(doc: &Document, page: &mut Page) {
    let Some(published) = &doc.published else {
        return;
    };
    page.gap();
    page.paragraph(&format!("Published: {}", published.source));
    for ratio in &published.ratios {
        let what = notes::published_contrast(doc, ratio);
        let here = digits::ratio_and_interval(ratio.here, ratio.low, ratio.high)
            .map_or_else(|| "here not measured".into(), |here| format!("here {here}"));
        page.paragraph(&format!(
            "{what}: {} {}",
            glue(&format!("published {},", digits::ratio(ratio.published))),
            glue(&here)
        ));
    }
    for note in &published.notes {
        page.paragraph(&notes::published_note(doc, note));
    }
}

/// Published comparisons beside measured ones; in full with what has to be known of each.
pub(super) fn comparisons(doc: &Document, full: bool, page: &mut Page) {
    let Some(published) = &doc.published else {
        return;
    };
    if published.tally.all() == 0 {
        return;
    }
    page.heading("Published beside measured here");
    for row in study::rows(published) {
        let style = match row.verdict {
            "agrees" => Style::Better,
            "differs" => Style::Worse,
            _ => Style::Dim,
        };
        let verdict = page.paint(style, &format!("{:<15}", row.verdict));
        let mut said = vec![format!("{verdict} {}:", row.what)];
        if !row.published.is_empty() {
            said.push(glue(&format!("published {},", row.published)));
        }
        said.push(glue(&format!("here {}", row.here)));
        if full && !row.ruled.is_empty() {
            said.push(format!("(by their rule {})", row.ruled));
        }
        if !row.remark.is_empty() && (full || row.verdict == "not comparable") {
            said.push(format!("- {}", row.remark));
        }
        page.paragraph(&said.join(" "));
    }
    for sentence in study::around(doc, published) {
        page.paragraph(&sentence);
    }
}

/// What speaks against the result, each finding.
pub(super) fn findings(doc: &Document, page: &mut Page) {
    for sentence in validity::sentences(doc) {
        page.paragraph(&sentence);
    }
    for sentence in effects::for_all(doc) {
        page.paragraph(&sentence);
    }
}

/// What is odd about the record; in short or in full.
pub(super) fn oddities(doc: &Document, full: bool, page: &mut Page) {
    let most = if full { usize::MAX } else { INVALID_LINES };
    if let Some(label) = notes::invalid(doc) {
        page.paragraph(&page.paint(Style::Worse, &label));
        let alike = notes::invalid_first(doc);
        for line in alike.iter().take(most) {
            page.paragraph(&format!("- {line}"));
        }
        if alike.len() > most {
            page.paragraph(&format!("- and {} more, in the record", alike.len() - most));
        }
    }
    if let Some(sentence) = validity::missing(doc) {
        page.paragraph(&sentence);
    }
    if let Some(sentence) = marked(doc).filter(|_| full) {
        page.paragraph(&sentence);
    }
    for warning in &doc.warnings {
        let label = page.paint(Style::Worse, "Warning:");
        // In short: what it is; what follows from it is in full.
        let said = match warning.split_once(": ") {
            Some((what, _)) if !full => format!("{what} (--full says more)"),
            _ => warning.clone(),
        };
        page.paragraph(&format!("{label} {said}."));
    }
}
