//! A published study beside a run of its plan, as a section of Markdown: what docs/studies.md is made of.

use std::io::Write;

use super::{Page, text};
use crate::result::document::{Document, PublishedResult};
use crate::result::run::RunResult;
use crate::say::format::{Format, FormatError, Terminal, put};
use crate::say::{answer, notes, study, trust, until};

/// The section.
#[derive(Debug)]
pub(crate) struct Study;

impl Format<RunResult> for Study {
    fn option(&self) -> &'static str {
        "study"
    }

    fn help(&self) -> &'static str {
        "Published comparisons beside what was measured, as a section of Markdown"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &section(&result.document))
    }
}

fn section(doc: &Document) -> String {
    let mut page = Page::default();
    let title = doc.published.as_ref().and_then(|one| one.title.as_ref());
    page.line(&format!("## {}", text(title.unwrap_or(&doc.name))));
    page.paragraph(&format!("`wirecost study {}`", doc.name));
    if let Some((label, why)) = trust::line(doc) {
        page.paragraph(&format!("**{label}** {}", text(&why)));
    }
    page.gap();
    for said in answer::sentences(doc, '×') {
        let lead = match said.lead.as_str() {
            "" => String::new(),
            lead => format!("**{}** ", text(lead)),
        };
        page.line(&format!("- {lead}{}", text(&said.rest)));
    }
    page.line(&format!("- {}", text(&trust::sentence(doc))));
    if let Some(sentence) = until::sentence(doc) {
        page.line(&format!("- {}", text(&sentence)));
    }
    match doc.published.as_ref().filter(|one| one.tally.all() > 0) {
        Some(published) => {
            page.paragraph(&text(&format!("Published: {}", published.source)));
            comparisons(doc, published, &mut page);
        }
        None => page.paragraph("The plan of this run has no published comparisons."),
    }
    page.paragraph(&text(&format!(
        "{}. {}. Started {}, seed {}, wirecost {}.",
        notes::title(doc),
        notes::place(doc, true),
        doc.started,
        doc.seed,
        doc.program_version
    )));
    page.0
}

/// Published comparisons beside measured ones.
pub(super) fn comparisons(doc: &Document, published: &PublishedResult, page: &mut Page) {
    let heads = [
        "comparison",
        "published#",
        "here#",
        "by their rule#",
        "verdict",
    ];
    let times = |field: String| text(&field.replace(" x", " ×").replacen('x', "×", 1));
    let rows = study::rows(published).into_iter().map(|row| {
        let what = match row.remark.as_str() {
            "" => text(&row.what),
            remark => format!("{}. {}", text(&row.what), text(remark)),
        };
        let figure = |field: String| match field.as_str() {
            "" => "–".to_owned(),
            "not measured" => field,
            _ => times(field),
        };
        vec![
            what,
            figure(row.published),
            figure(row.here),
            figure(row.ruled),
            row.verdict.to_owned(),
        ]
    });
    page.table(&heads.map(str::to_owned), rows);
    for sentence in study::around(doc, published) {
        page.paragraph(&text(&sentence));
    }
}
