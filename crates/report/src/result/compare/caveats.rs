//! Caveats of a comparison: what a reader has to know about the two runs.

use wirecost_model::plan::Cores;

use super::Compared;
use super::matching::{MatchedCells, MissingFactor, UnsharedFactor};
use crate::result::document::{Document, Ending};
use crate::result::{core_distance, trust};
use wirecost_answer::names as words;

/// The caveats of both runs and of each, in sentences.
pub(super) fn caveats(
    before: Compared<'_>,
    after: Compared<'_>,
    matching: &MatchedCells<'_>,
) -> Vec<String> {
    let heads = [&before.run.head, &after.run.head];
    let mut all = Vec::new();
    if before.run == after.run {
        all.push("both are the same run".to_owned());
    }
    if heads[0].experiment.plan.cores != heads[1].experiment.plan.cores {
        let shared = |side: Compared<'_>| side.run.head.experiment.plan.cores == Cores::Shared;
        let which = if shared(before) { "before" } else { "after" };
        all.push(format!(
            "the hosts shared their cores {which} only: CPU is the machine's in one run and a host's in the other, \
             and is not compared"
        ));
    }
    all.extend(core_distance::between(before.document, after.document));
    all.extend(matching.unshared.iter().filter_map(unshared));
    let mut sides = [before, after].map(|side| of_side(side.document));
    // A note on both runs is given once.
    let both: Vec<String> = sides[0]
        .iter()
        .filter(|note| sides[1].contains(note))
        .cloned()
        .collect();
    for (notes, which) in sides.iter_mut().zip(["before", "after"]) {
        notes.retain(|note| !both.contains(note));
        all.extend(notes.iter().map(|note| format!("{which}: {note}")));
    }
    all.extend(both.iter().map(|note| format!("both: {note}")));
    all
}

fn unshared(unshared: &UnsharedFactor) -> Option<String> {
    let (run, other) = if unshared.unknown_before {
        ("before", "after")
    } else {
        ("after", "before")
    };
    let factor = words::factor(&unshared.key);
    let unknown = format!("the record of the run {run} lacks the factor {factor}");
    match &unshared.what {
        MissingFactor::Had(levels) if levels.is_empty() => None,
        MissingFactor::Had(levels) => Some(format!(
            "{unknown}: its cells count as {}, which is what was built",
            levels.join(" and ")
        )),
        MissingFactor::Constant(level) => Some(format!(
            "{unknown}, which is {level} in every cell {other}: cells are matched without it"
        )),
        MissingFactor::Varied => Some(format!(
            "{unknown}, which was varied {other}: it is not known which of these levels it had"
        )),
    }
}

fn of_side(doc: &Document) -> Vec<String> {
    let mut all = Vec::new();
    if doc.outcome != Ending::Complete
        && let Some((label, why)) = trust::stopped(doc)
    {
        all.push(format!("{label} {}", why.trim_end_matches('.')));
    }
    if !doc.invalid.is_empty() {
        let samples = words::count(doc.samples as usize, "sample");
        all.push(format!(
            "{} of {samples} not valid, left out",
            doc.invalid.len()
        ));
    }
    let marked = trust::marked(doc);
    all.extend(marked.map(|marked| marked.trim_end_matches('.').to_owned()));
    all.extend(doc.warnings.iter().cloned());
    all
}
