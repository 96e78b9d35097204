//! The results of other tools' stopping rules, printed for a terminal.

use super::page::Page;
use super::section;
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::render::{notes, rules as words};
use crate::result::document::Document;
use crate::result::run::RunResult;
use std::io::Write;

/// The format of these results.
#[derive(Debug)]
pub(crate) struct Rules;

impl Format<RunResult> for Rules {
    fn option(&self) -> &'static str {
        "rules"
    }

    fn help(&self) -> &'static str {
        "What the rules of other tools make of the same samples (pbench, trimmed, worst-of, netperf)"
    }

    fn write(
        &self,
        result: &RunResult,
        options: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &rules(&result.document, options))
    }
}

/// Prints the results of other tools' stopping rules on a run's samples.
pub fn rules(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    page.paragraph(&notes::title(doc));
    section::print(&words::section(doc), &mut page);
    page.finish()
}
