//! A result printed for a terminal: where it ran, a table of cells, one line per effect, what it
//! comes to, and what has to be known about the record.

mod notes;
mod page;
mod short;
mod table;
mod verdicts;
mod words;

use std::fmt::Write as _;

use wirecost_model::plan::Cores;

use crate::document::Document;
use page::{Page, Style};

/// What to print for. Whether colour is wanted (`NO_COLOR`, a pipe) the caller decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Columns. Below 40 it is printed for 40.
    pub width: usize,
    /// Whether ANSI colours are used.
    pub colour: bool,
}

/// Prints a result. Every line fits the width, save for what has no space to break at (a path).
pub fn terminal(doc: &Document, options: Terminal) -> String {
    let mut page = Page::new(options);
    head(doc, &mut page);
    page.gap();
    table::print(doc, &mut page);
    notes::published(doc, &mut page);
    verdicts::print(doc, &mut page);
    page.heading("In short");
    for sentence in short::sentences(doc) {
        page.paragraph(&sentence);
    }
    page.gap();
    notes::oddities(doc, &mut page);
    notes::outcome(doc, &mut page);
    notes::footer(doc, &mut page);
    page.finish()
}

fn head(doc: &Document, page: &mut Page) {
    let title = format!(
        "{}: {}, {} of {} s",
        doc.name,
        words::count(doc.cells.len(), "cell"),
        words::count(doc.rounds_planned as usize, "round"),
        doc.repeat.seconds
    );
    let title = page.paint(Style::Bold, &title);
    page.paragraph(&title);
    page.paragraph(
        "Network namespaces on this machine: the cost of its software stack, not of a NIC.",
    );
    let mut place = format!(
        "Linux {}, {}{}; {}",
        doc.environment.kernel,
        doc.environment.cpu_model,
        if doc.environment.virtual_machine {
            " (virtual machine)"
        } else {
            ""
        },
        cores(doc)
    );
    if let (Some(seconds), Some(share)) = (doc.seconds, doc.measured_share) {
        // Writing to a string does not fail.
        let _ = write!(
            place,
            "; {seconds:.0} s, {:.0}% of it measured",
            share * 100.0
        );
    }
    page.paragraph(&place);
}

fn cores(doc: &Document) -> String {
    let environment = &doc.environment;
    match doc.cores {
        Cores::Shared => format!(
            "both hosts share {}, so CPU is the machine's",
            words::cores(&environment.cpus)
        ),
        Cores::Split => environment
            .hosts
            .iter()
            .map(|(name, host)| format!("host {name} on {}", words::cores(&host.cpus)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
