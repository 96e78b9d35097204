//! Divides the time of a diagnosis: the check of the path comes first, the measurement gets what is left.

use super::switch::Switch;

/// Fewest rounds of a run.
pub(super) const LEAST_ROUNDS: u32 = 4;
/// Duration of a sample, seconds, including warm-up, proofs, and applying and undoing its change.
const SAMPLE_S: f64 = 1.6;
/// Shortest budget that a plan may have, seconds.
const LEAST_BUDGET_S: f64 = 1.0;

/// What is measured in the time that the check left.
#[derive(Debug)]
pub(super) struct SelectedChanges {
    /// The changes that are tried.
    pub(super) switches: Vec<Switch>,
    /// The changes that there is no time for.
    pub(super) not_tried: Vec<Switch>,
    /// Budget of the measurement, whole seconds.
    pub(super) budget_s: f64,
}

/// Divides changes, the most promising first, into those that fit into the `left` seconds and the others. If any time
/// is left, changes of the load alone are tried, also those that do not fit. If none is left, no change is tried.
pub(super) fn select_changes(all: Vec<Switch>, left: f64) -> SelectedChanges {
    let of_load = all
        .iter()
        .take_while(|switch| switch.level().is_none())
        .count();
    let at_least = if left > 0.0 { of_load } else { 0 };
    let samples = (left / SAMPLE_S / f64::from(LEAST_ROUNDS)) as usize;
    // One sample of a round measures the path as it is.
    let fit = samples.saturating_sub(1).max(at_least);
    let mut switches = all;
    let not_tried = switches.split_off(fit.min(switches.len()));
    SelectedChanges {
        switches,
        not_tried,
        budget_s: left.floor().max(LEAST_BUDGET_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried_in(left: f64) -> (usize, f64) {
        let all = vec![Switch::FourStreams, Switch::LargeBuffers, Switch::Mtu(9000)];
        let SelectedChanges {
            switches,
            not_tried,
            budget_s,
        } = select_changes(all.clone(), left);
        let number = switches.len();
        assert_eq!([switches, not_tried].concat(), all);
        (number, budget_s)
    }

    #[test]
    fn what_only_the_load_does_is_tried_however_short_the_time() {
        assert_eq!(tried_in(3.5), (2, 3.0));
        assert_eq!(tried_in(170.0), (3, 170.0));
    }

    #[test]
    fn where_the_check_took_all_of_the_time_nothing_is_tried() {
        assert_eq!(tried_in(-12.0), (0, 1.0));
    }
}
