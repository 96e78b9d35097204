//! The search for the highest dirty rate at which pre-copy converges, between two rates that were tried.

use wirecost_model::machine_move::{DirtyLimit, MachineMove, MoveOutcome};

/// Ratio of the two rates at which the search ends.
const FINAL_RATIO: f64 = 1.1;
/// Upper bound on the moves, the first one included.
const MAX_MOVES: u32 = 30;
/// Lowest rate that is tried, bits per second.
const LOWEST: f64 = 1e5;
/// A machine that converges but writes less than this share of the dirty rate that was asked for cannot write faster.
const REACHED: f64 = 0.8;
/// Shortest move that tells how fast a machine writes, seconds: in a shorter one its thread may not have been
/// scheduled at once.
const LONG_ENOUGH_S: f64 = 0.05;
/// Number of slow moves in a row which tell that a machine cannot write faster: in a single one its thread may have
/// been preempted.
const SLOW_MOVES: u32 = 2;
/// From this rate on the search ends, bits per second: no machine writes faster.
const HIGHEST: f64 = 1e12;

/// What the search knows after some moves. Rates are in bits per second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Search {
    /// Highest rate at which pre-copy converged.
    converges: Option<f64>,
    /// Lowest rate at which pre-copy did not converge.
    fails: Option<f64>,
    moves: u32,
    /// Moves in a row in which the machine wrote less than [`REACHED`] of the dirty rate that was asked for.
    slow: u32,
}

impl Search {
    /// Takes the result of a move at `rate` into account. Returns the rate of the next move; `None`: the search is
    /// over.
    pub(crate) fn next(&mut self, rate: f64, moved: &MachineMove) -> Option<f64> {
        self.moves += 1;
        if moved.outcome == MoveOutcome::Moved {
            let slow = moved.total_s >= LONG_ENOUGH_S && moved.dirty_reached < REACHED * rate;
            self.slow = if slow { self.slow + 1 } else { 0 };
            self.converges = Some(self.converges.map_or(rate, |known| known.max(rate)));
        } else {
            self.fails = Some(self.fails.map_or(rate, |known| known.min(rate)));
        }
        let bandwidth = moved.bandwidth * 8.0;
        let next = match (self.converges, self.fails) {
            (Some(low), Some(high)) if high <= low * FINAL_RATIO => None,
            (Some(low), Some(high)) => Some((low * high).sqrt()),
            (Some(low), None) => Some((2.0 * low).max(bandwidth)),
            (None, Some(high)) => Some(high / 2.0).filter(|rate| *rate >= LOWEST),
            (None, None) => None,
        };
        let over = self.slow >= SLOW_MOVES || rate >= HIGHEST;
        next.filter(|_| !over && self.moves < MAX_MOVES)
    }

    /// The two rates, as far as moves have shown them.
    pub(crate) fn limit(&self) -> DirtyLimit {
        DirtyLimit {
            converges: self.converges,
            fails: self.fails,
            moves: self.moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches where pre-copy converges below a limit, and the machine writes no faster than it can.
    fn found(first: f64, limit: f64, able: f64, bandwidth: f64) -> DirtyLimit {
        let (mut search, mut rate) = (Search::default(), first);
        loop {
            let reached = rate.min(able);
            let outcome = if reached < limit {
                MoveOutcome::Moved
            } else {
                MoveOutcome::NotConverged
            };
            let moved = MachineMove {
                outcome,
                dirty_reached: reached,
                bandwidth: bandwidth / 8.0,
                total_s: 1.0,
                ..MachineMove::default()
            };
            match search.next(rate, &moved) {
                Some(next) => rate = next,
                None => return search.limit(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_limit_lies_between_two_rates_a_tenth_apart(
            first in 1e6f64..1e10, limit in 1e6f64..1e10, bandwidth in 1e8f64..1e10,
        ) {
            let found = found(first, limit, f64::INFINITY, bandwidth);
            let (low, high) = (found.converges.expect("one"), found.fails.expect("one"));
            prop_assert!(low < limit && limit <= high && high <= low * FINAL_RATIO, "{found:?}");
            prop_assert!(found.moves <= MAX_MOVES);
        }
    }

    #[test]
    fn one_move_in_which_the_machine_was_not_scheduled_ends_nothing() {
        let slow = MachineMove {
            outcome: MoveOutcome::Moved,
            dirty_reached: 3e8,
            total_s: 1.0,
            ..MachineMove::default()
        };
        let mut search = Search::default();
        assert_eq!(search.next(4e8, &slow), Some(8e8));
        assert_eq!(search.next(8e8, &slow), None);
    }

    #[test]
    fn a_machine_that_cannot_write_fast_enough_to_fail_has_no_upper_end() {
        let none = found(1e8, f64::INFINITY, 3e9, 1e9);
        assert!(none.converges.is_some_and(|low| low >= 3e9), "{none:?}");
        assert_eq!(none.fails, None);
        let hopeless = found(1e8, 0.0, f64::INFINITY, 1e9);
        assert_eq!(hopeless.converges, None);
        assert!(hopeless.fails.is_some_and(|high| high < 2.0 * LOWEST));
    }
}
