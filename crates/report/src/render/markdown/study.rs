//! A published study compared with a run of its plan, as a section of Markdown; docs/studies.md is made of these.

use std::io::Write;

use super::{Page, text};
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::render::{adaptive, notes, study, trust};
use crate::result::document::Document;
use crate::result::run::RunResult;

/// The format of that section.
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
    page.answer(doc);
    if let Some(sentence) = adaptive::sentence(doc) {
        page.line(&format!("- {}", text(&sentence)));
    }
    match study::section(doc) {
        Some(section) => page.section(Some(&section)),
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
