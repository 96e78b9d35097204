//! A result printed for a terminal: the answer, a table of cells, the verdicts, what has to be known about the record.

mod compare;
mod matrix;
mod notes;
mod page;
mod rules;
mod table;
mod verdicts;
mod wakeups;

use crate::result::document::Document;
use crate::result::run::RunResult;
use crate::say::format::{Detail, Format, FormatError, Terminal, put};
use crate::say::{answer, effects, notes as text, trust, until};
use page::{Page, Style, glue};
use std::io::Write;

pub use compare::comparison_terminal;
pub(crate) use rules::Rules;
pub use rules::rules;

/// Effects that depend on another factor's level, of which so many are told.
const DEPENDENCES: usize = 4;

/// Text for a terminal.
#[derive(Debug)]
pub struct Text;

impl Format<RunResult> for Text {
    fn option(&self) -> &'static str {
        "text"
    }

    fn help(&self) -> &'static str {
        "Text for a terminal"
    }

    fn write(
        &self,
        result: &RunResult,
        options: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &terminal(&result.document, options))
    }
}

/// Prints a result. Every line fits the width, save for what has no space to break at (a path).
pub fn terminal(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    head(doc, &mut page);
    if options.detail == Detail::Answer {
        return page.finish();
    }
    let full = options.detail == Detail::Full;
    notes::comparisons(doc, full, &mut page);
    page.gap();
    table::print(doc, full, &mut page);
    if full {
        wakeups::print(doc, &mut page);
        notes::published(doc, &mut page);
        verdicts::print(doc, &mut page);
        dependences(doc, &mut page);
        notes::findings(doc, &mut page);
        rules::print(doc, &mut page);
        page.gap();
        page.paragraph(&text::how_to_read(doc));
    } else if doc
        .published
        .as_ref()
        .is_none_or(|one| one.tally.all() == 0)
    {
        matrix::print(doc, &mut page);
    }
    notes::oddities(doc, full, &mut page);
    if full {
        page.gap();
        page.paragraph(text::measures(doc));
    } else {
        page.paragraph(&text::only_in_full(doc));
    }
    page.paragraph(&text::place(doc, full));
    page.paragraph(&format!("Record: {}", glue(&doc.run_dir)));
    page.finish()
}

/// Where one factor's effect depends on another's level.
fn dependences(doc: &Document, page: &mut Page) {
    let depends = effects::dependences(doc, false);
    for sentence in depends.iter().take(DEPENDENCES) {
        page.paragraph(&format!("{sentence}."));
    }
    if depends.len() > DEPENDENCES {
        let more = depends.len() - DEPENDENCES;
        page.paragraph(&format!("{more} more such dependences are in the report."));
    }
    page.gap();
}

/// The answer, and whether to believe it; of a doubtful run that comes first.
fn head(doc: &Document, page: &mut Page) {
    if let Some((label, why)) = trust::line(doc) {
        page.paragraph(&format!("{} {why}", page.paint(Style::Bad, label)));
    }
    let title = page.paint(Style::Bold, &text::title(doc));
    if let Some(sentence) = text::behind(doc) {
        page.paragraph(&page.paint_words(Style::Bad, &sentence));
    }
    for said in answer::sentences(doc, 'x') {
        let lead = page.paint_words(Style::Bold, &said.lead);
        page.paragraph(&format!("{lead} {}", said.rest.replace(" %", &glue(" %"))));
    }
    if let Some(sentence) = until::sentence(doc) {
        page.paragraph(&sentence);
    }
    // Of a doubtful run the first line says it.
    match trust::line(doc) {
        Some(_) => page.paragraph(&format!("{title}.")),
        None => page.paragraph(&format!("{} {title}.", trust::sentence(doc))),
    }
}
