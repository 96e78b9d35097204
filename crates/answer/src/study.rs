//! Whether a published study was reproduced, in one sentence.

use serde::Serialize;

/// How many published comparisons a reproduction agrees with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Comparisons where the measurement agrees.
    pub agrees: u32,
    /// Comparisons where the measurement differs.
    pub differs: u32,
    /// Comparisons whose intervals are too wide to tell.
    pub cannot_tell: u32,
    /// Comparisons that were not measured here, or whose cells differ in something else.
    pub not_comparable: u32,
}

impl Tally {
    /// The number of published comparisons.
    pub const fn all(self) -> u32 {
        self.agrees + self.differs + self.cannot_tell + self.not_comparable
    }

    /// The outcome, without the full stop:
    /// `Reproduced in part: 4 of 6 published comparisons agree, 1 differs, 1 is inconclusive`. A study is reproduced
    /// where none differs and more agree than are inconclusive; in part where more agree than differ.
    pub fn sentence(self) -> String {
        let decided = self.agrees + self.differs;
        let word = if decided == 0 {
            "Whether it is reproduced is not known"
        } else if self.differs == 0 && self.agrees > self.cannot_tell {
            "Reproduced"
        } else if self.agrees > self.differs {
            "Reproduced in part"
        } else {
            "Not reproduced"
        };
        let mut said = vec![format!(
            "{} of {} published comparison{} agree{}",
            self.agrees,
            self.all(),
            if self.all() == 1 { "" } else { "s" },
            if self.agrees == 1 { "s" } else { "" },
        )];
        let parts = [
            (self.differs, "differs", "differ"),
            (self.cannot_tell, "is inconclusive", "are inconclusive"),
            (
                self.not_comparable,
                "is not comparable",
                "are not comparable",
            ),
        ];
        for (count, one, many) in parts {
            match count {
                0 => {}
                1 => said.push(format!("1 {one}")),
                count => said.push(format!("{count} {many}")),
            }
        }
        format!("{word}: {}", said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(agrees: u32, differs: u32, cannot_tell: u32, not_comparable: u32) -> String {
        let tally = Tally {
            agrees,
            differs,
            cannot_tell,
            not_comparable,
        };
        tally.sentence()
    }

    #[test]
    fn the_sentence_counts_every_comparison() {
        assert_eq!(
            said(4, 1, 1, 2),
            "Reproduced in part: 4 of 8 published comparisons agree, 1 differs, 1 is inconclusive, 2 are not comparable"
        );
        assert_eq!(
            said(3, 0, 1, 0),
            "Reproduced: 3 of 4 published comparisons agree, 1 is inconclusive"
        );
        assert_eq!(
            said(1, 0, 2, 0),
            "Reproduced in part: 1 of 3 published comparisons agrees, 2 are inconclusive"
        );
        assert_eq!(
            said(1, 2, 0, 1),
            "Not reproduced: 1 of 4 published comparisons agrees, 2 differ, 1 is not comparable"
        );
        assert_eq!(
            said(0, 0, 1, 0),
            "Whether it is reproduced is not known: 0 of 1 published comparison agree, 1 is inconclusive"
        );
    }
}
