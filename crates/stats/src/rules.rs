//! Rules of other tools, by name, applied to the same samples. Reports show them next to the
//! verdicts; they never decide one.

mod netperf;
mod pbench;

pub use netperf::{Netperf, NetperfLevel, NetperfResult, netperf};
pub use pbench::{Pbench, PbenchOutcome, PbenchResult, pbench};

use wirecost_model::metric::Direction;

/// `trimmed`: the mean without the highest and the lowest value. `None` below three values.
pub fn trimmed(values: &[f64]) -> Option<f64> {
    let inner = values.len().checked_sub(2).filter(|&inner| inner > 0)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted[1..=inner].iter().sum::<f64>() / inner as f64)
}

/// `worst-of`: the worst value. `None` without one.
pub fn worst_of(values: &[f64], better: Direction) -> Option<f64> {
    let worse = match better {
        Direction::Higher => f64::min,
        Direction::Lower => f64::max,
    };
    values.iter().copied().reduce(worse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trimming_drops_one_at_each_end() {
        assert_eq!(trimmed(&[9.0, 1.0, 4.0, 6.0]), Some(5.0));
        assert_eq!(trimmed(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_worst_depends_on_the_direction() {
        let values = [3.0, 1.0, 2.0];
        assert_eq!(worst_of(&values, Direction::Higher), Some(1.0));
        assert_eq!(worst_of(&values, Direction::Lower), Some(3.0));
        assert_eq!(worst_of(&[], Direction::Lower), None);
    }

    proptest! {
        #[test]
        fn neither_depends_on_the_order(values in proptest::collection::vec(0.0f64..9.0, 3..20)) {
            let mut turned = values.clone();
            turned.reverse();
            let (a, b) = (trimmed(&values).expect("three"), trimmed(&turned).expect("three"));
            prop_assert!((a - b).abs() < 1e-12);
            prop_assert_eq!(worst_of(&values, Direction::Lower), worst_of(&turned, Direction::Lower));
        }
    }
}
