//! The section of caveats: what a reader has to know before relying on a run's verdicts.

use super::section::{Item, Section};
use super::{effects, notes, validity};
use crate::result::document::Document;
use crate::result::trust::marked;

/// Lines of invalid samples, and of failed attempts, in the short form; the rest is only counted.
const INVALID_LINES: usize = 4;

/// Invalid, missing and marked samples, findings, warnings; the short form leaves out marks and findings. `None` where
/// there are no caveats.
pub(crate) fn section(doc: &Document, full: bool) -> Option<Section> {
    let mut items = Vec::new();
    let invalid = notes::invalid(doc)
        .map(|lead| (lead, notes::first_lines(doc, notes::invalid_of_built(doc))));
    let again = notes::measured_again(doc)
        .map(|lead| (lead, notes::first_lines(doc, doc.measured_again.iter())));
    for (lead, mut lines) in invalid.into_iter().chain(again) {
        let more = lines.len().saturating_sub(INVALID_LINES);
        if !full && more > 0 {
            lines.truncate(INVALID_LINES);
            lines.push(format!("and {more} more, in the record"));
        }
        items.push(Item {
            lead,
            text: String::new(),
            lines,
        });
    }
    items.extend(validity::missing(doc).map(Item::of));
    if full {
        let said = marked(doc).into_iter().chain(validity::sentences(doc));
        items.extend(said.chain(effects::general_remarks(doc)).map(Item::of));
    }
    items.extend(doc.warnings.iter().map(|warning| {
        // The short form has the warning's subject; what follows from it is in the full form.
        let text = match warning.split_once(": ") {
            Some((what, _)) if !full => format!("{what} (--full says more)."),
            _ => format!("{warning}."),
        };
        Item {
            lead: "Warning:".into(),
            text,
            lines: Vec::new(),
        }
    }));
    (!items.is_empty()).then(|| Section {
        heading: "Caveats".into(),
        items,
        ..Section::default()
    })
}
