//! The verdict that follows from an interval and the margin.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;

use crate::interval::Interval;

/// The margin: ratios that are too close to 1 to be worth it, ends included.
///
/// Symmetric on the log scale, as the ratios are: a gain of 5 % and its reversal are equally large,
/// so `worth` 0.05 is from 1/1.05 to 1.05.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// `1 / (1 + worth)`.
    pub low: f64,
    /// `1 + worth`.
    pub high: f64,
}

impl Margin {
    /// The margin of a change of `worth`, a fraction from 0.
    pub fn of(worth: f64) -> Self {
        Self {
            low: 1.0 / (1.0 + worth),
            high: 1.0 + worth,
        }
    }
}

/// The verdict on a ratio `to / from`, from its 95 % interval.
///
/// | the whole interval | verdict |
/// |---|---|
/// | is beyond the margin, on the better or the worse side | pays, costs |
/// | is within the margin, its ends included | makes no difference, whether or not it excludes 1 |
/// | excludes 1 and straddles the margin | gains, loses |
/// | anything else, or there is none | cannot tell yet |
pub fn verdict(interval: Option<Interval>, better: Direction, worth: f64) -> Verdict {
    let Some(Interval { low, high }) = interval else {
        return Verdict::CannotTellYet;
    };
    let margin = Margin::of(worth);
    let side = |up: Verdict, down: Verdict, is_up: bool| match (better, is_up) {
        (Direction::Higher, true) | (Direction::Lower, false) => up,
        _ => down,
    };
    if low >= margin.low && high <= margin.high {
        Verdict::MakesNoDifference
    } else if low > margin.high || high < margin.low {
        side(Verdict::Pays, Verdict::Costs, low > margin.high)
    } else if low > 1.0 || high < 1.0 {
        side(Verdict::Gains, Verdict::Loses, low > 1.0)
    } else {
        Verdict::CannotTellYet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Higher, Lower};
    use Verdict::{CannotTellYet, Costs, Gains, Loses, MakesNoDifference, Pays};
    use proptest::prelude::*;

    #[test]
    fn the_table_of_cases() {
        for (low, high, higher, lower) in [
            (1.10, 1.20, Pays, Costs),
            (1.0501, 1.20, Pays, Costs),
            (1.05, 1.20, Gains, Loses),
            (1.01, 1.20, Gains, Loses),
            (1.01, 1.05, MakesNoDifference, MakesNoDifference),
            (1.0, 1.20, CannotTellYet, CannotTellYet),
            (0.99, 1.20, CannotTellYet, CannotTellYet),
            (0.50, 2.00, CannotTellYet, CannotTellYet),
            (1.0 / 1.05, 1.05, MakesNoDifference, MakesNoDifference),
            (0.97, 0.99, MakesNoDifference, MakesNoDifference),
            (0.90, 0.99, Loses, Gains),
            (0.90, 0.953, Loses, Gains),
            // Beyond 1/1.05 = 0.952, and not only beyond 0.95: the margin is a ratio.
            (0.90, 0.952, Costs, Pays),
            (1.0, 1.0, MakesNoDifference, MakesNoDifference),
        ] {
            let interval = Some(Interval { low, high });
            assert_eq!(verdict(interval, Higher, 0.05), higher, "[{low}, {high}]");
            assert_eq!(verdict(interval, Lower, 0.05), lower, "[{low}, {high}]");
        }
    }

    #[test]
    fn without_an_interval_nothing_can_be_told() {
        assert_eq!(verdict(None, Higher, 0.05), CannotTellYet);
    }

    #[test]
    fn where_any_change_is_worth_it_the_sign_decides() {
        let interval = |low, high| Some(Interval { low, high });
        assert_eq!(verdict(interval(1.001, 1.002), Higher, 0.0), Pays);
        assert_eq!(verdict(interval(0.999, 1.002), Higher, 0.0), CannotTellYet);
    }

    fn mirrored(verdict: Verdict) -> Verdict {
        match verdict {
            Pays => Costs,
            Costs => Pays,
            Gains => Loses,
            Loses => Gains,
            MakesNoDifference | CannotTellYet | Verdict::NotComparable => verdict,
        }
    }

    proptest! {
        #[test]
        fn the_other_direction_mirrors_the_verdict(low in 0.5f64..2.0, width in 0.0f64..0.5, worth in 0.0f64..0.5) {
            let interval = Some(Interval { low, high: low + width });
            prop_assert_eq!(
                verdict(interval, Lower, worth),
                mirrored(verdict(interval, Higher, worth))
            );
        }

        #[test]
        fn swapping_the_levels_mirrors_the_verdict(low in 0.5f64..2.0, width in 0.0f64..0.5, worth in 0.0f64..0.5) {
            let high = low + width;
            let swapped = Some(Interval { low: 1.0 / high, high: 1.0 / low });
            prop_assert_eq!(
                verdict(swapped, Higher, worth),
                mirrored(verdict(Some(Interval { low, high }), Higher, worth))
            );
        }

        #[test]
        fn a_narrower_interval_never_turns_a_verdict_round(low in 0.5f64..2.0, width in 0.0f64..0.5, worth in 0.0f64..0.5) {
            let wide = verdict(Some(Interval { low, high: low + width }), Higher, worth);
            let narrow = verdict(Some(Interval { low: low + width / 4.0, high: low + width / 2.0 }), Higher, worth);
            let good = |verdict| matches!(verdict, Pays | Gains);
            let bad = |verdict| matches!(verdict, Costs | Loses);
            prop_assert!(!(good(wide) && bad(narrow) || bad(wide) && good(narrow)));
        }
    }
}
