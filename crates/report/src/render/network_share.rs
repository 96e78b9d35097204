//! The network's share of storage latency, in words.

use super::digits::{micros, micros_and_interval};
use super::words;
use crate::result::document::{CellLoad, CellResult, Document, NetworkChange, NetworkShare};

/// The beginning of the sentences.
pub(crate) const LEAD: &str = "The network's share:";

/// Most changes that a sentence names.
const CHANGES: usize = 4;

/// A sentence for each load that has a window at its target: the share in its first cell, and what other levels change.
pub(crate) fn sentences(doc: &Document) -> Vec<String> {
    let mut told: Vec<&str> = Vec::new();
    let mut sentences = Vec::new();
    for cell in &doc.cells {
        for load in &cell.loads {
            if let Some(share) = &load.network
                && !told.contains(&load.name.as_str())
            {
                told.push(&load.name);
                sentences.push(sentence(doc, cell, load, share));
            }
        }
    }
    sentences
}

fn sentence(doc: &Document, cell: &CellResult, load: &CellLoad, share: &NetworkShare) -> String {
    let of = if told_apart(doc) {
        format!(" of {}", load.name)
    } else {
        String::new()
    };
    let place = match words::cell(doc, cell).as_str() {
        "" => String::new(),
        levels => format!(" ({levels})"),
    };
    let mut said = format!(
        "of {} us at the median{of}{place}, {} us are the network's",
        micros(share.latency_us.mean),
        micros_and_interval(&share.network_us),
    );
    let from_here = doc
        .network_changes
        .iter()
        .filter(|change| change.load == load.name && change.cells[0] == cell.cell);
    let changes: Vec<String> = from_here.take(CHANGES).map(change).collect();
    if !changes.is_empty() {
        said.push_str("; ");
        said.push_str(&changes.join(", "));
    }
    said.push('.');
    said
}

/// Whether several loads have a network's share, so that each has to be named.
fn told_apart(doc: &Document) -> bool {
    let with = doc.cells.iter().flat_map(|cell| &cell.loads);
    let mut names = with
        .filter(|load| load.network.is_some())
        .map(|load| &load.name);
    let first = names.next();
    names.any(|name| Some(name) != first)
}

fn change(change: &NetworkChange) -> String {
    let level = words::level(&change.factor, &change.to);
    let added = &change.added_us;
    if added.mean < 0.0 {
        // Changing the sign swaps the ends of the interval.
        let mut taken = *added;
        taken.mean = -added.mean;
        (taken.low, taken.high) = (added.high.map(|end| -end), added.low.map(|end| -end));
        format!("{level} takes {} us off", micros_and_interval(&taken))
    } else {
        format!("{level} adds {} us", micros_and_interval(added))
    }
}
