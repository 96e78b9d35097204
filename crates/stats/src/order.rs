//! The random order of one round.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The order in which the cells `0..cells` are measured in `round` (from 0) of a run with `seed`.
///
/// This is part of the record's contract: the order of every round can be worked out again from
/// the seed in `run.json`, and will not change with a version of this program.
///
/// - Numbers: the 64-bit little-endian words of a `ChaCha8` key stream (block counter and nonce 0).
///   Key bytes 0 to 7 are `seed`, 8 to 11 `round`, both little-endian; the rest is 0.
/// - Shuffle (Fisher-Yates, Knuth TAOCP 2, algorithm 3.4.2 P): for `i` from `cells - 1` down to 1,
///   swap places `i` and `j`. `j` is the next number modulo `i + 1`; numbers from the last,
///   incomplete multiple of `i + 1` below 2^64 - 1 are passed over, so that every `j` is equally likely.
pub fn order(cells: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&round.to_le_bytes());
    let mut numbers = ChaCha8Rng::from_seed(key);

    let mut order: Vec<usize> = (0..cells).collect();
    for i in (1..cells).rev() {
        order.swap(i, below(&mut numbers, i as u64 + 1) as usize);
    }
    order
}

/// A number below `end`, each equally likely.
pub(crate) fn below(numbers: &mut ChaCha8Rng, end: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % end;
    loop {
        let number = numbers.next_u64();
        if number < limit {
            return number % end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_cell_comes_once(cells in 0usize..200, round: u32, seed: u64) {
            let mut sorted = order(cells, round, seed);
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..cells).collect::<Vec<_>>());
        }

        #[test]
        fn the_same_seed_gives_the_same_order(cells in 0usize..50, round: u32, seed: u64) {
            prop_assert_eq!(order(cells, round, seed), order(cells, round, seed));
        }
    }

    #[test]
    fn every_place_is_equally_likely_for_every_cell() {
        let (cells, rounds) = (4, 4000);
        let mut counts = [[0u32; 4]; 4];
        for round in 0..rounds {
            for (place, cell) in order(cells, round, 7).into_iter().enumerate() {
                counts[cell][place] += 1;
            }
        }
        // 1000 expected, standard deviation 27: five of them.
        for count in counts.iter().flatten() {
            assert!((865..=1135).contains(count), "{counts:?}");
        }
    }
}
