//! What limits the answer: the line, what cannot be determined, what is not comparable.

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::effect::Verdict;

use crate::aspect::Kind;
use crate::dimension::{self, Dimension, LevelIndices};
use crate::{JudgedEffect, Question, names};

/// Share of what its line carries from which on a cell fills the line.
pub const FULL: f64 = 0.95;

/// The advice where only noise stands in the way of a verdict; *not known yet* implies it.
const MORE_ROUNDS: &str = "more rounds are needed";

pub(crate) fn sentences(question: &Question) -> Vec<String> {
    let open: Vec<String> = [undecided(question), not_comparable(question)]
        .into_iter()
        .flatten()
        .collect();
    let all = names::count(question.effects.len(), "comparison");
    let open = (!open.is_empty()).then(|| format!("Of {all} {}.", open.join(", ")));
    line(question).into_iter().chain(open).collect()
}

/// Which cells the line limits.
fn line(question: &Question) -> Option<String> {
    let full = |share: Option<f64>| share.is_some_and(|share| share >= FULL);
    let cells = &question.cells;
    let filled: BTreeSet<usize> = (0..cells.len())
        .filter(|&at| full(cells[at].line_share))
        .collect();
    if filled.is_empty() || cells.len() < 2 {
        return None;
    }
    let tells = "compare CPU there, not throughput";
    if filled.len() == cells.len() {
        return Some(format!(
            "The line limits all {} cells: {tells}.",
            cells.len()
        ));
    }
    let dimensions: Vec<Dimension> = question
        .factors
        .iter()
        .map(|factor| Dimension {
            key: factor.key.clone(),
            levels: factor.levels.clone(),
        })
        .collect();
    let places: Vec<LevelIndices> = cells
        .iter()
        .map(|cell| {
            let level = |dimension: &Dimension| {
                let level = cell.levels.get(&dimension.key)?;
                dimension.levels.iter().position(|known| known == level)
            };
            dimensions.iter().map(level).collect()
        })
        .collect();
    let count = format!("{} of {} cells", filled.len(), cells.len());
    let which = dimension::conditions(&dimensions, &places, &filled).map(|parts| {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| question.conditions("", &dimensions, part))
            .collect();
        format!(" ({})", parts.join(" or "))
    });
    Some(format!(
        "The line limits {count}{}: {tells}.",
        which.unwrap_or_default()
    ))
}

/// How many comparisons have no verdict yet, and what helps.
fn undecided(question: &Question) -> Option<String> {
    let is_undecided = |judged: &&JudgedEffect| judged.verdict == Verdict::CannotTellYet;
    let undecided: Vec<&JudgedEffect> = question.effects.iter().filter(is_undecided).collect();
    let count = undecided.len();
    if count == 0 {
        return None;
    }
    let cpu = undecided
        .iter()
        .all(|judged| Kind::of(judged.effect.metric) == Some(Kind::Cpu));
    let mut advice: BTreeMap<&str, usize> = BTreeMap::new();
    for judged in &undecided {
        *advice
            .entry(judged.no_ratio.unwrap_or(MORE_ROUNDS))
            .or_default() += 1;
    }
    let mut said: Vec<String> = match advice.len() {
        1 => advice.keys().map(|&why| why.to_owned()).collect(),
        _ => advice.iter().map(|(why, n)| format!("{why} {n}")).collect(),
    };
    if said == [MORE_ROUNDS] {
        said.clear();
    }
    if cpu {
        said.push("all of them CPU".into());
    }
    let said = match &said[..] {
        [] => String::new(),
        said => format!(" ({})", said.join(", ")),
    };
    Some(format!("{count} {} not known yet{said}", are(count)))
}

/// How many comparisons are not comparable, and what differs in them.
fn not_comparable(question: &Question) -> Option<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for judged in question
        .effects
        .iter()
        .filter(|judged| judged.verdict == Verdict::NotComparable)
    {
        let kind = judged
            .effect
            .not_comparable
            .as_ref()
            .map(|why| names::kind(why.kind));
        *kinds
            .entry(kind.unwrap_or("something else differs"))
            .or_default() += 1;
    }
    let count: usize = kinds.values().sum();
    let each: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| match kinds.len() {
            1 => (*kind).to_owned(),
            _ => format!("{kind} {n}"),
        })
        .collect();
    (count > 0).then(|| {
        let each = each.join(", ");
        format!("{count} {} not comparable ({each})", are(count))
    })
}

const fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
