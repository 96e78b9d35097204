//! Exact null distributions of rank statistics: the probability of each value of the statistic.
//!
//! Probabilities instead of counts: 2^60 and 60! do not fit into integers, and a relative error of
//! 1e-13 does not matter to a p-value.

use std::cmp::Ordering;

/// Distribution of Wilcoxon's signed-rank statistic W of `n` pairs without ties; the index is W, 0 to n (n + 1) / 2.
pub(crate) fn signed_rank(n: usize) -> Vec<f64> {
    let mut p = vec![0.0; n * (n + 1) / 2 + 1];
    p[0] = 1.0;
    let mut top = 0;
    for rank in 1..=n {
        top += rank;
        for w in (0..=top).rev() {
            let with = if w >= rank { p[w - rank] } else { 0.0 };
            p[w] = f64::midpoint(p[w], with);
        }
    }
    p
}

/// Distribution of the sum of `take` of these integer ranks, each choice equally likely; the index
/// is the sum. Ties are carried by doubled midranks.
pub(crate) fn rank_sum(ranks: &[usize], take: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    // by_size[k][s]: probability that k were taken and sum to s, given the ranks processed so far.
    let mut by_size = vec![vec![0.0; total + 1]; take + 1];
    by_size[0][0] = 1.0;
    for (gone, &rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - gone) as f64;
        for k in (0..=take.min(gone + 1)).rev() {
            for s in (0..=total).rev() {
                // Without replacement: of the places left, take - k are still to be filled.
                let skipped = by_size[k][s] * (1.0 - (take - k) as f64 / left).max(0.0);
                let taken = if k > 0 && s >= rank {
                    by_size[k - 1][s - rank] * (take - k + 1) as f64 / left
                } else {
                    0.0
                };
                by_size[k][s] = skipped + taken;
            }
        }
    }
    by_size.swap_remove(take)
}

/// Distribution of the inversions of a random permutation of `n`; the index is their number, 0 to n (n - 1) / 2.
pub(crate) fn inversions(n: usize) -> Vec<f64> {
    let mut p = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; p.len() + size - 1];
        let mut window = 0.0;
        for (k, slot) in next.iter_mut().enumerate() {
            window += p.get(k).copied().unwrap_or(0.0);
            if k >= size {
                window -= p.get(k - size).copied().unwrap_or(0.0);
            }
            *slot = window / size as f64;
        }
        p = next;
    }
    p
}

/// Ranks from 1, doubled so that midranks of ties are integers.
pub(crate) fn doubled_midranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|value| {
            let below = values.iter().filter(|other| *other < value).count();
            let equal = |other: &&f64| other.partial_cmp(&value) == Some(Ordering::Equal);
            let same = values.iter().filter(equal).count();
            2 * below + same + 1
        })
        .collect()
}

/// Two-sided p of `at`, an index of `p`: twice the smaller tail, `at` included, at most 1.
pub(crate) fn two_sided(p: &[f64], at: usize) -> f64 {
    let low: f64 = p[..=at].iter().sum();
    let high: f64 = p[at..].iter().sum();
    (2.0 * low.min(high)).min(1.0)
}

/// The largest k with P(statistic < k) <= tail: the number of values that may be dropped at either end.
pub(crate) fn droppable(p: &[f64], tail: f64) -> usize {
    let mut below = 0.0;
    for (k, mass) in p.iter().enumerate() {
        below += mass;
        if below > tail {
            return k;
        }
    }
    p.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distribution_sums_to_one() {
        for n in [2, 5, 20, 60] {
            for p in [
                signed_rank(n),
                inversions(n),
                rank_sum(&(1..=n).collect::<Vec<_>>(), n / 2),
            ] {
                assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{n}");
            }
        }
    }

    #[test]
    fn small_cases_by_hand() {
        assert_eq!(signed_rank(2), [0.25; 4]);
        assert_eq!(inversions(3).len(), 4);
        assert!((inversions(3)[1] - 2.0 / 6.0).abs() < 1e-15);
        let sums = rank_sum(&[1, 2, 3], 2);
        assert!((sums[3] - 1.0 / 3.0).abs() < 1e-15 && sums[6].abs() < 1e-15);
    }
}
