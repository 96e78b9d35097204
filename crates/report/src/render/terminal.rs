//! A result printed for a terminal: the answer, a table of cells, the verdicts, caveats.

mod compare;
mod matrix;
mod page;
mod rules;
mod section;
mod study;
mod table;
mod verdicts;

use crate::render::format::{Detail, Format, FormatError, Terminal, put};
use crate::render::table::ShownIn;
use crate::render::{
    adaptive, answer, caveats, cells, effects, notes as text, published, rules as rules_of, trust,
    wakeups,
};
use crate::result::document::Document;
use crate::result::run::RunResult;
use page::{Page, Style, nonbreaking};
use std::io::Write;

pub use compare::comparison_terminal;
pub(crate) use rules::Rules;
pub use rules::rules;

/// Most sentences about effects that depend on another factor's level.
const DEPENDENCES: usize = 4;

/// The format of text for a terminal.
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

/// Prints a result. Every line fits the width, except where there is no space to break at (a path).
pub fn terminal(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    head(doc, &mut page);
    if options.detail == Detail::Answer {
        return page.finish();
    }
    let full = options.detail == Detail::Full;
    let is_study = doc
        .published
        .as_ref()
        .is_some_and(|one| one.tally.all() > 0);
    study::print(doc, full, &mut page);
    page.gap();
    let most = if full {
        ShownIn::InFull
    } else {
        ShownIn::Always
    };
    let cells = cells::section(doc).for_form(most);
    for mut table in cells.tables {
        if !full {
            table.meanings.clear();
        }
        section::table(&table, &mut page);
    }
    if full {
        for meaning in &cells.meanings {
            page.paragraph(meaning);
        }
        // A study's comparisons are printed above.
        let published = published::section(doc).filter(|_| !is_study);
        let sections = [wakeups::section(doc), published];
        for part in sections.iter().flatten() {
            section::print(part, &mut page);
        }
        verdicts::print(doc, &mut page);
        if let Some(depends) = effects::section(doc, false, DEPENDENCES) {
            section::print(&depends, &mut page);
        }
        section::print(&rules_of::section(doc), &mut page);
        page.gap();
        page.paragraph(&text::how_to_read(doc));
    } else if !is_study {
        matrix::print(doc, &mut page);
    }
    if let Some(caveats) = caveats::section(doc, full) {
        if full {
            section::print(&caveats, &mut page);
        } else {
            section::items(&caveats.items, &mut page);
        }
    }
    if full {
        page.gap();
        page.paragraph(&text::measures(doc));
    } else {
        page.paragraph(&text::only_in_full(doc));
    }
    page.paragraph(&text::place(doc, full));
    page.paragraph(&format!("Record: {}", nonbreaking(&doc.run_dir)));
    page.finish()
}

/// Prints the answer, and whether the run can be relied on; for a doubtful run, the latter first.
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
        page.paragraph(&format!(
            "{lead} {}",
            said.rest.replace(" %", &nonbreaking(" %"))
        ));
    }
    if let Some(sentence) = adaptive::sentence(doc) {
        page.paragraph(&sentence);
    }
    // The first line of a doubtful run says so already.
    match trust::line(doc) {
        Some(_) => page.paragraph(&format!("{title}.")),
        None => page.paragraph(&format!("{} {title}.", trust::sentence(doc))),
    }
}
