//! Describes sets of places (combinations of factor levels) in few words: `through VXLAN without offloads`.

use std::collections::BTreeSet;

/// A factor of which each place has a level.
#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    /// The factor's key.
    pub(crate) key: String,
    /// The labels of its levels that occur.
    pub(crate) levels: Vec<String>,
}

/// For each dimension the index of the place's level; `None` where the dimension does not apply to it.
pub(crate) type LevelIndices = Vec<Option<usize>>;

/// For each dimension the levels that a place may have.
type LevelSets = Vec<BTreeSet<usize>>;

/// The dimensions that are restricted, by index, each with the levels that it may have.
pub(crate) type Condition = Vec<(usize, Vec<usize>)>;

/// Most alternatives in a description; a set that takes more is not described.
const PARTS: usize = 2;

/// The conditions that hold in exactly the places of `set` (indices into `all`): one to [`PARTS`] alternatives. An
/// empty condition holds everywhere. `None` where more alternatives would be needed.
pub(crate) fn conditions(
    dimensions: &[Dimension],
    all: &[LevelIndices],
    set: &BTreeSet<usize>,
) -> Option<Vec<Condition>> {
    let mut left = set.clone();
    let mut parts = Vec::new();
    while let Some(&seed) = left.first() {
        if parts.len() == PARTS {
            return None;
        }
        let covers = orders(dimensions.len()).map(|order| grow(dimensions, all, set, seed, &order));
        let covered = |cover: &LevelSets| left.iter().filter(|&&at| holds(cover, &all[at])).count();
        let best = covers.reduce(|best, other| {
            let better = (covered(&other), free(dimensions, &other))
                > (covered(&best), free(dimensions, &best));
            if better { other } else { best }
        })?;
        let best = trimmed(dimensions, all, best, &left);
        left.retain(|&at| !holds(&best, &all[at]));
        parts.push(bound(dimensions, &best));
    }
    Some(parts)
}

/// The cover without levels that add no place of `left`: places that an earlier alternative covers are not named again.
fn trimmed(
    dimensions: &[Dimension],
    all: &[LevelIndices],
    mut cover: LevelSets,
    left: &BTreeSet<usize>,
) -> LevelSets {
    let covered = |cover: &LevelSets| left.iter().filter(|&&at| holds(cover, &all[at])).count();
    for (at, levels) in bound(dimensions, &cover) {
        for level in levels {
            let mut less = cover.clone();
            less[at].remove(&level);
            if !less[at].is_empty() && covered(&less) == covered(&cover) {
                cover = less;
            }
        }
    }
    cover
}

/// The dimensions that a cover restricts, with their levels.
fn bound(dimensions: &[Dimension], cover: &LevelSets) -> Vec<(usize, Vec<usize>)> {
    cover
        .iter()
        .enumerate()
        .filter(|(at, levels)| levels.len() < dimensions[*at].levels.len())
        .map(|(at, levels)| (at, levels.iter().copied().collect()))
        .collect()
}

/// How many dimensions the cover does not restrict.
fn free(dimensions: &[Dimension], cover: &LevelSets) -> usize {
    dimensions.len() - bound(dimensions, cover).len()
}

fn holds(cover: &LevelSets, place: &LevelIndices) -> bool {
    let mut each = cover.iter().zip(place);
    each.all(|(levels, level)| level.is_none_or(|level| levels.contains(&level)))
}

/// A maximal cover around the place `seed` that holds no place outside of `set`; dimensions are widened in this order.
fn grow(
    dimensions: &[Dimension],
    all: &[LevelIndices],
    set: &BTreeSet<usize>,
    seed: usize,
    order: &[usize],
) -> LevelSets {
    let levels = |at: usize| 0..dimensions[at].levels.len();
    let fits =
        |cover: &LevelSets| (0..all.len()).all(|at| set.contains(&at) || !holds(cover, &all[at]));
    let mut cover: LevelSets = all[seed]
        .iter()
        .enumerate()
        .map(|(at, level)| level.map_or_else(|| levels(at).collect(), |level| [level].into()))
        .collect();
    for &at in order {
        for level in levels(at) {
            let mut wider = cover.clone();
            wider[at].insert(level);
            if fits(&wider) {
                cover = wider;
            }
        }
    }
    cover
}

/// The orders in which [`grow`] widens dimensions: every rotation, forwards and backwards.
fn orders(n: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..n.max(1)).flat_map(move |first| {
        let forwards: Vec<usize> = (0..n).map(|at| (first + at) % n).collect();
        let mut backwards = forwards.clone();
        backwards.reverse();
        [forwards, backwards]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square() -> (Vec<Dimension>, Vec<LevelIndices>) {
        let dimension = |key: &str| Dimension {
            key: key.into(),
            levels: vec!["0".into(), "1".into()],
        };
        let places = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let places = places.map(|(a, b)| vec![Some(a), Some(b)]);
        (vec![dimension("a"), dimension("b")], places.to_vec())
    }

    #[test]
    fn a_set_is_told_by_the_fewest_conditions() {
        let (dimensions, places) = square();
        let of = |set: &[usize]| conditions(&dimensions, &places, &set.iter().copied().collect());
        assert_eq!(of(&[0, 1, 2, 3]), Some(vec![vec![]]));
        assert_eq!(of(&[2, 3]), Some(vec![vec![(0, vec![1])]]));
        assert_eq!(of(&[1]), Some(vec![vec![(0, vec![0]), (1, vec![1])]]));
        // Either of two conditions.
        assert_eq!(
            of(&[1, 2, 3]),
            Some(vec![vec![(1, vec![1])], vec![(0, vec![1])]])
        );
    }
}
