//! Stopping rules of other tools, a paragraph per cell.

use super::page::Page;
use crate::result::document::Document;
use crate::result::run::RunResult;
use crate::say::format::{Format, FormatError, Terminal, put};
use crate::say::rules::{by_netperf, by_pbench, gbps, meanings};
use crate::say::{notes, words};
use std::io::Write;

/// What stopping rules of other tools say, as text.
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

/// Prints what stopping rules of other tools make of a run's samples.
pub fn rules(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    page.paragraph(&notes::title(doc));
    print(doc, &mut page);
    page.finish()
}

/// A paragraph per cell, and what they mean.
pub(super) fn print(doc: &Document, page: &mut Page) {
    page.heading(
        "Stopping rules of other tools on the same throughput samples, Gbit/s; none decides a verdict",
    );
    for cell in &doc.other_rules.cells {
        let name = words::cell_numbered(doc, cell.cell);
        let name = if name.is_empty() {
            format!("cell {}", cell.cell)
        } else {
            name
        };
        page.paragraph(&format!(
            "{name}: pbench {}; trimmed {}; worst-of {}; netperf {}",
            by_pbench(cell),
            gbps(cell.trimmed_gbps),
            gbps(cell.worst_of_gbps),
            by_netperf(cell)
        ));
    }
    page.gap();
    for meaning in meanings(doc) {
        page.paragraph(&meaning);
    }
}
