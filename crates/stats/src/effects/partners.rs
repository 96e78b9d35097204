//! Which cells a cell is compared with.

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::{Cell, Experiment, Factor};

/// The cells at a factor's other levels, found by the levels of the other factors. One has levels of
/// fewer factors than another where some mean nothing to it, so they are kept by which they have:
/// a few kinds, whatever the number of cells.
pub(super) struct Partners<'a> {
    key: &'a str,
    kinds: Vec<LevelGroup<'a>>,
}

/// Cells with levels of the same factors.
struct LevelGroup<'a> {
    factors: Vec<&'a str>,
    /// By the levels of the factors that a kind of first cells has in common with it.
    by_levels: BTreeMap<(Vec<&'a str>, Vec<&'a str>), Vec<Partner<'a>>>,
}

/// The number of the level, that of the cell, and the cell.
type Partner<'a> = (usize, u32, &'a Cell);

/// The factors that a cell has levels of, but for one.
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

    /// Those that agree with a cell at the first level in every factor that both have a level of, in the
    /// order of levels and cells.
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
