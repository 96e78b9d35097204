//! A result printed for a terminal: where it ran, a table of cells, one line per effect, what it
//! comes to, and what has to be known about the record.

mod compare;
mod notes;
mod page;
mod rules;
mod table;
mod verdicts;
mod wakeups;

use crate::document::Document;
use crate::format::{Format, FormatError, RunResult, Terminal};
use crate::{effects, notes as text, self_test, short, trust, until};
use page::{Page, Style};

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

    fn print(&self, result: &RunResult, options: Terminal) -> Result<String, FormatError> {
        Ok(terminal(&result.document, options))
    }
}

/// Prints a result. Every line fits the width, save for what has no space to break at (a path).
pub fn terminal(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    head(doc, &mut page);
    page.gap();
    table::print(doc, &mut page);
    wakeups::print(doc, &mut page);
    notes::published(doc, &mut page);
    verdicts::print(doc, &mut page);
    page.heading("In short");
    for sentence in short::sentences(doc, 'x') {
        page.paragraph(&sentence);
    }
    let depends = effects::dependences(doc, false);
    for sentence in depends.iter().take(DEPENDENCES) {
        page.paragraph(&format!("{sentence}."));
    }
    if depends.len() > DEPENDENCES {
        let more = depends.len() - DEPENDENCES;
        page.paragraph(&format!("{more} more such dependences are in the report."));
    }
    page.gap();
    notes::oddities(doc, &mut page);
    notes::footer(doc, &mut page);
    page.finish()
}

fn head(doc: &Document, page: &mut Page) {
    if let Some((label, why)) = trust::line(doc) {
        page.paragraph(&format!("{} {why}", page.paint(Style::Bad, label)));
    }
    let title = page.paint(Style::Bold, &text::title(doc));
    page.paragraph(&title);
    page.paragraph(text::LAB);
    page.paragraph(&text::place(doc));
    if let Some(sentence) = text::behind(doc) {
        page.paragraph(&page.paint_words(Style::Bad, &sentence));
    }
    if let Some(alarm) = self_test::alarm(doc, 'x') {
        page.paragraph(&page.paint_words(Style::Bad, &alarm));
    }
    if let Some(sentence) = until::sentence(doc) {
        page.paragraph(&sentence);
    }
}
