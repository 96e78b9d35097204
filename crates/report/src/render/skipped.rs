//! Skipped cells in words.

use super::words;
use crate::result::document::{CellResult, Document};

/// A sentence for every reason: `Skipped, cannot be built here: gre: REASON.`
pub(crate) fn sentences(doc: &Document) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&CellResult>)> = Vec::new();
    for cell in &doc.cells {
        let Some(reason) = &cell.skipped else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((reason, vec![cell])),
        }
    }
    let sentence = |(reason, cells): (&str, Vec<&CellResult>)| {
        let which = which(doc, &cells);
        let reason = reason.trim_end_matches('.');
        format!("Skipped, cannot be built here: {which}: {reason}.")
    };
    groups.into_iter().map(sentence).collect()
}

/// Names cells by the levels of one factor if these match exactly the skipped cells, else one by one.
fn which(doc: &Document, skipped: &[&CellResult]) -> String {
    if skipped.len() == doc.cells.len() && skipped.len() > 1 {
        return "every cell".into();
    }
    let by_factor = doc.factors.iter().find_map(|factor| {
        let has = |cells: &[&CellResult], level: &String| {
            let mut cells = cells.iter();
            cells.any(|cell| cell.levels.get(&factor.key) == Some(level))
        };
        let levels = factor.levels.iter().filter(|level| has(skipped, level));
        let levels: Vec<&String> = levels.collect();
        let is_named = |cell: &&CellResult| {
            let own = cell.levels.get(&factor.key);
            own.is_some_and(|own| levels.contains(&own))
        };
        // A skipped cell to which the factor does not apply cannot be named by it.
        let named = doc.cells.iter().filter(is_named).count();
        let exact = named == skipped.len() && skipped.iter().all(is_named);
        let words: Vec<String> = levels
            .iter()
            .map(|level| words::level(&factor.key, level))
            .collect();
        exact.then(|| words.join(", "))
    });
    by_factor.unwrap_or_else(|| {
        let names = skipped.iter().map(|cell| words::cell(doc, cell));
        names.collect::<Vec<_>>().join("; ")
    })
}
