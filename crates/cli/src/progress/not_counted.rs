//! Samples of a run that do not count: how many, and each reason once.

use std::collections::BTreeSet;

/// Samples that do not count.
#[derive(Default)]
pub(super) struct NotCounted {
    /// Those of this round.
    in_round: u32,
    /// Why.
    reasons: BTreeSet<String>,
    /// Cells, and why without the numbers: in another round of the same cell they are measured anew.
    without_numbers: BTreeSet<(u32, String)>,
}

impl NotCounted {
    pub(super) const fn begin_round(&mut self) {
        self.in_round = 0;
    }

    /// Adds one of a cell, and returns whether its reason is a new one.
    pub(super) fn add(&mut self, cell: u32, reason: &str) -> bool {
        self.in_round += 1;
        let without_numbers = reason.replace(|sign: char| sign.is_ascii_digit(), "");
        let is_new = self.reasons.insert(reason.to_owned());
        self.without_numbers.insert((cell, without_numbers)) && is_new
    }

    /// `, 3 samples do not count`; empty where all of this round count.
    pub(super) fn text(&self) -> String {
        match self.in_round {
            0 => String::new(),
            1 => ", 1 sample does not count".to_owned(),
            several => format!(", {several} samples do not count"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_new_once_in_a_cell_whatever_its_numbers_and_every_sample_is_counted() {
        let mut not_counted = NotCounted::default();
        assert_eq!(not_counted.text(), "");
        assert!(not_counted.add(1, "host 10.0.0.1: nothing came for 4.9 s"));
        assert_eq!(not_counted.text(), ", 1 sample does not count");
        assert!(!not_counted.add(1, "host 10.0.0.1: nothing came for 5.0 s"));
        assert!(not_counted.add(2, "host 10.0.0.2: nothing came for 5.1 s"));
        assert!(not_counted.add(1, "no geneve device"));
        assert!(!not_counted.add(2, "no geneve device"));
        assert_eq!(not_counted.text(), ", 5 samples do not count");
    }
}
