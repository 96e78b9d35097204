//! Finds the cells that a cell is compared with.

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::{Cell, Experiment, Factor};

/// Index of the cells at a factor's levels other than the first, by the levels of the other
/// factors. Cells may lack levels of factors that mean nothing to them, so the index is grouped by
/// the set of factors of which cells have a level: a few groups, whatever the number of cells.
pub(super) struct Partners<'a> {
    key: &'a str,
    kinds: Vec<LevelGroup<'a>>,
}

/// Cells that have levels of the same factors.
struct LevelGroup<'a> {
    factors: Vec<&'a str>,
    /// Cells by the factors they share with a kind of first-level cell, and by their levels of these factors.
    by_levels: BTreeMap<(Vec<&'a str>, Vec<&'a str>), Vec<Partner<'a>>>,
}

/// A cell with the index of its level and its own number, by which partners are sorted.
type Partner<'a> = (usize, u32, &'a Cell);

/// The factors of which a cell has a level, without `except`.
fn factors_of<'a>(cell: &'a Cell, except: &str) -> Vec<&'a str> {
    let keys = cell.levels.keys().map(String::as_str);
    keys.filter(|key| *key != except).collect()
}

fn levels_of<'a>(cell: &'a Cell, factors: &[&str]) -> Vec<&'a str> {
    let level = |key: &&str| cell.levels.get(*key).map(String::as_str);
    factors.iter().filter_map(level).collect()
}

fn common<'a>(one: &[&'a str], other: &[&str]) -> Vec<&'a str> {
    one.iter()
        .copied()
        .filter(|key| other.contains(key))
        .collect()
}

impl<'a> Partners<'a> {
    pub(super) fn of(experiment: &'a Experiment, factor: &'a Factor) -> Self {
        let key = factor.key.as_str();
        let mut firsts: BTreeSet<Vec<&str>> = BTreeSet::new();
        let mut kinds: BTreeMap<Vec<&str>, Vec<Partner<'_>>> = BTreeMap::new();
        for cell in &experiment.cells {
            let Some(level) = cell.levels.get(key) else {
                continue;
            };
            let factors = factors_of(cell, key);
            match factor.levels.iter().position(|known| known == level) {
                Some(0) => drop(firsts.insert(factors)),
                Some(level) => {
                    let kind = kinds.entry(factors).or_default();
                    kind.push((level, cell.index, cell));
                }
                None => {}
            }
        }
        let kinds = kinds.into_iter().map(|(factors, partners)| {
            let mut by_levels: BTreeMap<_, Vec<Partner<'_>>> = BTreeMap::new();
            let shared: BTreeSet<Vec<&str>> =
                firsts.iter().map(|first| common(first, &factors)).collect();
            for shared in shared {
                for partner in &partners {
                    let levels = levels_of(partner.2, &shared);
                    let found = by_levels.entry((shared.clone(), levels)).or_default();
                    found.push(*partner);
                }
            }
            LevelGroup { factors, by_levels }
        });
        Self {
            key,
            kinds: kinds.collect(),
        }
    }

    /// The cells that agree with a first-level cell in every factor of which both have a level,
    /// ordered by level and cell.
    pub(super) fn of_cell(&self, from: &'a Cell) -> Vec<&'a Cell> {
        let own = factors_of(from, self.key);
        let mut found: Vec<Partner<'_>> = Vec::new();
        for kind in &self.kinds {
            let shared = common(&own, &kind.factors);
            let levels = levels_of(from, &shared);
            found.extend(kind.by_levels.get(&(shared, levels)).into_iter().flatten());
        }
        found.sort_unstable_by_key(|(level, index, _)| (*level, *index));
        found.into_iter().map(|(_, _, cell)| cell).collect()
    }
}
