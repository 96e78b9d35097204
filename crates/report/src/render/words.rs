//! Factors, levels, cells, figures and cores in words.

use wirecost_model::cell::Factor;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Levels;

use crate::result::document::{CellResult, Document};

pub(crate) use wirecost_answer::names::{change, condition, contrast, count, factor, level};

/// A factor's name as the head of a column, in several lines where it has several words.
pub(crate) fn column(key: &str) -> String {
    match key {
        "encapsulation" => "encap-\nsulation".into(),
        other => factor(other).replace(' ', "\n"),
    }
}

/// Levels in words, in the order of `factors`, those of other factors last: `vxlan, offload none`.
pub(crate) fn levels(factors: &[Factor], levels: &Levels) -> String {
    let varied = factors.iter().map(|factor| factor.key.as_str());
    let constant = levels
        .keys()
        .map(String::as_str)
        .filter(|key| factors.iter().all(|factor| factor.key != *key));
    varied
        .chain(constant)
        .filter_map(|key| Some(level(key, levels.get(key)?)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A cell by its varied levels; where nothing was varied, by guest MTU, encapsulation and offload.
pub(crate) fn cell(doc: &Document, cell: &CellResult) -> String {
    if !cell.levels.is_empty() {
        return self::levels(&doc.factors, &cell.levels);
    }
    let known = |key: &str| matches!(key, "guest_mtu" | "encapsulation" | "offload");
    let levels = cell.all_levels.iter().filter(|(key, _)| known(key));
    let levels = levels.map(|(key, level)| (key.clone(), level.clone()));
    self::levels(&[], &levels.collect())
}

/// The varied levels of the cell with that number; those of the twin are followed by `(self-test)`.
pub(crate) fn cell_numbered(doc: &Document, number: u32) -> String {
    let Some(cell) = doc.measured().find(|result| result.cell == number) else {
        return String::new();
    };
    let levels = self::levels(&doc.factors, &cell.levels);
    let twin = doc.self_test.as_ref().map(|test| test.twin.cell);
    match levels.as_str() {
        _ if twin != Some(number) => levels,
        "" => "self-test".into(),
        levels => format!("{levels} (self-test)"),
    }
}

/// A figure in words, with the load's name where there are several loads: `ping p99 latency`.
pub(crate) fn measured(doc: &Document, load: &str, metric: Metric) -> String {
    let workload = crate::result::loads::named(doc)
        .into_iter()
        .find_map(|(name, workload)| (name == load).then_some(workload));
    let words = workload.map_or(metric.words(), |workload| metric.words_of(workload));
    figure_of(doc.several_loads(), load, words)
}

/// A figure's words, with the load's name where there are `several`.
pub(crate) fn figure_of(several: bool, load: &str, words: &str) -> String {
    if several {
        format!("{load} {words}")
    } else {
        words.to_owned()
    }
}

/// Cores in words: `core 0`, `cores 0-3, 6`.
pub(crate) fn cores(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    let runs: Vec<String> = cpus
        .chunk_by(|a, b| a + 1 == *b)
        .filter_map(|run| match run {
            [] => None,
            [one] => Some(one.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    let noun = if cpus.len() == 1 { "core" } else { "cores" };
    format!("{noun} {}", runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_in_runs() {
        assert_eq!(cores(&[1]), "core 1");
        assert_eq!(cores(&[0, 1, 2, 5, 7, 8]), "cores 0-2, 5, 7-8");
    }
}
