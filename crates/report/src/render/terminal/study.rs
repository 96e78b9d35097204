//! Published comparisons with measured ones, each a paragraph that begins with whether they agree.

use super::page::{Page, Style, nonbreaking};
use crate::render::study;
use crate::result::document::Document;

/// Prints published comparisons with measured ones; in full with the study's rule and all remarks.
pub(super) fn print(doc: &Document, full: bool, page: &mut Page) {
    let Some(published) = &doc.published else {
        return;
    };
    if published.tally.all() == 0 {
        return;
    }
    page.heading(study::HEADING);
    for row in study::rows(doc, published) {
        let style = match row.verdict {
            "agrees" => Style::Better,
            "differs" => Style::Worse,
            _ => Style::Dim,
        };
        let verdict = page.paint(style, &format!("{:<15}", row.verdict));
        let mut said = vec![format!("{verdict} {}:", row.what)];
        if !row.published.is_empty() {
            said.push(nonbreaking(&format!("published {},", row.published)));
        }
        said.push(nonbreaking(&format!("here {}", row.here)));
        if full && !row.ruled.is_empty() {
            said.push(format!("(by their rule {})", row.ruled));
        }
        if !row.remark.is_empty() && (full || row.verdict == "not comparable") {
            said.push(format!("- {}", row.remark));
        }
        page.paragraph(&said.join(" "));
    }
    for sentence in study::notes(doc, published) {
        page.paragraph(&sentence);
    }
}
