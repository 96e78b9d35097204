//! The cells as the charts need them, and the state of samples.

use std::collections::BTreeMap;

use wirecost_model::record::Run;
use wirecost_model::sample::{Mark, Sample};
use wirecost_stats::Observed;

use crate::render::words;
use crate::result::document::{CellResult, Document};
use crate::result::gathered::CellSums;
use crate::result::thinned::every_nth_round;

/// A cell as the charts need it.
#[derive(Debug)]
pub(super) struct CellView<'a> {
    pub(super) result: &'a CellResult,
    /// The cell's levels in words: `guest MTU 1500, vxlan, offload none`.
    pub(super) label: String,
    /// The cell's samples that are drawn, by round.
    pub(super) samples: Vec<&'a Sample>,
    /// Sums and columns over all samples of the cell.
    pub(super) sums: &'a CellSums,
    pub(super) observed: &'a Observed,
}

/// Whether a sample counts, and whether it is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Valid,
    Marked,
    Invalid,
}

/// Every cell, with about `most` samples at most over all cells.
pub(super) fn of<'a>(doc: &'a Document, run: &'a Run, most: usize) -> Vec<CellView<'a>> {
    let mut by_cell: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in every_nth_round(&run.samples, most) {
        by_cell.entry(sample.cell).or_default().push(sample);
    }
    doc.cells
        .iter()
        .map(|result| {
            let mut samples = by_cell.remove(&result.cell).unwrap_or_default();
            samples.sort_by_key(|sample| sample.round);
            CellView {
                result,
                label: words::cell(doc, result),
                samples,
                sums: &doc.gathered.cells[&result.cell],
                observed: &doc.gathered.observed,
            }
        })
        .collect()
}

impl State {
    pub(super) const fn of(sample: &Sample) -> Self {
        match sample {
            Sample {
                invalid: Some(_), ..
            } => Self::Invalid,
            Sample { marks, .. } if !marks.is_empty() => Self::Marked,
            _ => Self::Valid,
        }
    }
}

/// Why a sample is not valid, and its marks; empty for most samples.
pub(super) fn remarks(sample: &Sample) -> String {
    let mut remarks: Vec<String> = Vec::new();
    if let Some(invalid) = &sample.invalid {
        remarks.push(format!("not valid: {}", invalid.reason()));
    }
    let attempts = sample.failed_attempts.iter();
    remarks.extend(attempts.map(|one| format!("an attempt not valid: {}", one.invalid.reason())));
    remarks.extend(sample.marks.iter().map(mark));
    remarks.join("; ")
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::ForeignLoad { cores, .. } => format!("foreign load of {cores:.2} cores"),
        Mark::Steal { host, fraction, .. } => {
            format!("{:.1}% of host {host} stolen", fraction * 100.0)
        }
        Mark::BacklogDrops { host, packets } => {
            format!("{packets} packets dropped from host {host}'s backlog")
        }
        Mark::GeneratorBound { load, host, end } => {
            format!(
                "generator-bound: the threads of {load}'s {} on host {host} never waited",
                end.words()
            )
        }
        Mark::CoresMoved {
            cpus: [a, b],
            before_ns,
            after_ns,
            ..
        } => {
            format!(
                "cores moved: a cache line took {before_ns:.0} ns from core {a} to {b} and back before, {after_ns:.0} after"
            )
        }
    }
}
