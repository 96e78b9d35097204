//! Sets of places (combinations of the other factors' levels) in few words: `through VXLAN without offloads`.

use std::collections::BTreeSet;

/// One thing that a place has a level of.
#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    /// The factor's key.
    pub(crate) key: String,
    /// The levels that occur.
    pub(crate) levels: Vec<String>,
}

/// A level of each dimension by number; `None` where a dimension means nothing there.
pub(crate) type Place = Vec<Option<usize>>;

/// Places whose level of each dimension is one of these.
type Cover = Vec<BTreeSet<usize>>;

/// A list of dimensions with the levels they have.
pub(crate) type Condition = Vec<(usize, Vec<usize>)>;

/// More parts than this are not words any more.
const PARTS: usize = 2;

/// The conditions that hold in exactly the places of `set` among `all`: one to [`PARTS`] alternatives, each a list of
/// dimensions with the levels they have. An empty list is everywhere. `None` where that takes more.
pub(crate) fn conditions(
    dimensions: &[Dimension],
    all: &[Place],
    set: &BTreeSet<usize>,
) -> Option<Vec<Condition>> {
    let mut left = set.clone();
    let mut parts = Vec::new();
    while let Some(&seed) = left.first() {
        if parts.len() == PARTS {
            return None;
        }
        let covers = orders(dimensions.len()).map(|order| grow(dimensions, all, set, seed, &order));
        let covered = |cover: &Cover| left.iter().filter(|&&at| holds(cover, &all[at])).count();
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

/// A cover without the levels that add nothing to what is left: what was told already is not told again.
fn trimmed(
    dimensions: &[Dimension],
    all: &[Place],
    mut cover: Cover,
    left: &BTreeSet<usize>,
) -> Cover {
    let covered = |cover: &Cover| left.iter().filter(|&&at| holds(cover, &all[at])).count();
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

/// The dimensions that a cover restricts.
fn bound(dimensions: &[Dimension], cover: &Cover) -> Vec<(usize, Vec<usize>)> {
    cover
        .iter()
        .enumerate()
        .filter(|(at, levels)| levels.len() < dimensions[*at].levels.len())
        .map(|(at, levels)| (at, levels.iter().copied().collect()))
        .collect()
}

/// How many dimensions it leaves free.
fn free(dimensions: &[Dimension], cover: &Cover) -> usize {
    dimensions.len() - bound(dimensions, cover).len()
}

fn holds(cover: &Cover, place: &Place) -> bool {
    let mut each = cover.iter().zip(place);
    each.all(|(levels, level)| level.is_none_or(|level| levels.contains(&level)))
}

/// The largest cover around a place that holds nothing outside of the set, its dimensions widened in this order.
fn grow(
    dimensions: &[Dimension],
    all: &[Place],
    set: &BTreeSet<usize>,
    seed: usize,
    order: &[usize],
) -> Cover {
    let levels = |at: usize| 0..dimensions[at].levels.len();
    let fits =
        |cover: &Cover| (0..all.len()).all(|at| set.contains(&at) || !holds(cover, &all[at]));
    let mut cover: Cover = all[seed]
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

/// Orders in which dimensions are widened: each of them first once, forwards and backwards.
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

    fn square() -> (Vec<Dimension>, Vec<Place>) {
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
