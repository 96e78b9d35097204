//! Whether a measured comparison agrees with a published one.

use serde::Serialize;
use wirecost_model::metric::Direction;
use wirecost_model::published::{PublishedValue, Rule};

use crate::interval::{self, Interval};
use crate::rules::{Pbench, PbenchOutcome, pbench, trimmed, worst_of};
use crate::sequential::Stopping;
use crate::verdict::Margin;

/// How a measured comparison relates to a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The whole interval is on the published figure's side of the margin, in the same direction.
    Agrees,
    /// No part of the interval is on that side.
    Differs,
    /// Part of the interval is on that side: more rounds are needed.
    CannotTell,
    /// The comparison was not measured, or its cells differ in something else.
    NotComparable,
}

/// Compares a published figure with a measured interval.
///
/// A published ratio lies above the margin `1 + worth`, below its reciprocal, or between the two,
/// ends included. The measured ratio agrees if its whole interval lies there too. Of a published
/// difference only the sign is compared, since the figures themselves belong to the publisher's
/// machines; `interval` is then of the difference. A published difference of 0 differs from one with
/// a sign. [`PublishedValue::AtMost`] is compared as it stands, without a margin.
pub fn agreement(published: PublishedValue, interval: Option<Interval>, worth: f64) -> Agreement {
    let Some(Interval { low, high }) = interval else {
        return Agreement::CannotTell;
    };
    let margin = Margin::of(worth);
    // The published side as an interval; its ends are excluded where `open`.
    let (from, to, open) = match (published, published.ratio()) {
        (_, Some(ratio)) if ratio > margin.high => (margin.high, f64::INFINITY, true),
        (_, Some(ratio)) if ratio < margin.low => (f64::NEG_INFINITY, margin.low, true),
        (_, Some(_)) => (margin.low, margin.high, false),
        (PublishedValue::AtMost(most), None) => (f64::NEG_INFINITY, most, false),
        (PublishedValue::Difference(by), None) if by < 0.0 => (f64::NEG_INFINITY, 0.0, true),
        // No sign: one that is measured differs, and none proves that there is none.
        (PublishedValue::Difference(0.0), None) => (0.0, 0.0, false),
        (_, None) => (0.0, f64::INFINITY, true),
    };
    let inside = if open {
        low > from && high < to
    } else {
        low >= from && high <= to
    };
    let outside = if open {
        high <= from || low >= to
    } else {
        high < from || low > to
    };
    match (inside, outside) {
        (true, _) => Agreement::Agrees,
        (_, true) => Agreement::Differs,
        _ => Agreement::CannotTell,
    }
}

/// A cell's figure by round; rounds ascending.
pub type Column = [(u32, f64)];

/// Figures of both cells in the rounds that both have.
fn both<'a>(from: &'a Column, to: &'a Column) -> impl Iterator<Item = (f64, f64)> + 'a {
    crate::observed::join(from.iter().copied(), to.iter().copied())
}

/// Logarithms of `to / from`, one per round in which both have a figure above 0.
pub fn logs(from: &Column, to: &Column) -> Vec<f64> {
    both(from, to)
        .filter(|(from, to)| *from > 0.0 && *to > 0.0)
        .map(|(from, to)| to.ln() - from.ln())
        .collect()
}

/// The mean of `to - from`, paired within rounds, with its 95 % Student's t interval; the interval needs two pairs.
pub fn difference(
    from: &Column,
    to: &Column,
    stopping: Stopping,
) -> Option<(f64, Option<Interval>)> {
    let differences: Vec<f64> = both(from, to).map(|(from, to)| to - from).collect();
    let (mean, sd) = interval::moments(&differences)?;
    let interval =
        sd.and_then(|sd| interval::of_mean(mean, sd, differences.len(), stopping.alpha()));
    Some((mean, interval))
}

/// The figure that a study's rule computes from a cell's runs; `None` where the rule gives none.
pub fn by_rule(rule: Rule, values: &[f64], better: Direction) -> Option<f64> {
    match rule {
        Rule::Mean => interval::moments(values).map(|(mean, _)| mean),
        Rule::Trimmed => trimmed(values),
        Rule::WorstOf => worst_of(values, better),
        Rule::ThreeWithin5Percent => {
            let sets = Pbench {
                samples: 3,
                ..Pbench::default()
            };
            match pbench(values, sets).outcome {
                PbenchOutcome::Settled { mean, .. } => Some(mean),
                PbenchOutcome::NeverSettled | PbenchOutcome::RanOut => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(published: PublishedValue, low: f64, high: f64) -> Agreement {
        agreement(published, Some(Interval { low, high }), 0.05)
    }

    #[test]
    fn a_ratio_agrees_on_its_side_of_the_margin() {
        let faster = PublishedValue::Ratio(2.03);
        assert_eq!(of(faster, 1.06, 1.2), Agreement::Agrees);
        assert_eq!(of(faster, 0.9, 1.05), Agreement::Differs);
        assert_eq!(of(faster, 1.01, 1.2), Agreement::CannotTell);
        let slower = PublishedValue::Values([7.4, 4.6]);
        assert_eq!(of(slower, 0.5, 0.7), Agreement::Agrees);
        assert_eq!(of(slower, 1.1, 1.2), Agreement::Differs);
        let same = PublishedValue::Ratio(1.0);
        assert_eq!(of(same, 0.97, 1.04), Agreement::Agrees);
        assert_eq!(of(same, 1.06, 1.2), Agreement::Differs);
        assert_eq!(of(same, 0.9, 1.01), Agreement::CannotTell);
    }

    #[test]
    fn of_a_difference_the_sign_is_compared_and_a_bound_as_it_stands() {
        let more = PublishedValue::Difference(60.0);
        assert_eq!(of(more, 0.1, 3.0), Agreement::Agrees);
        assert_eq!(of(more, -2.0, -0.1), Agreement::Differs);
        assert_eq!(of(more, -1.0, 1.0), Agreement::CannotTell);
        assert_eq!(
            of(PublishedValue::Difference(-4.0), -9.0, -1.0),
            Agreement::Agrees
        );
        let none = PublishedValue::Difference(0.0);
        assert_eq!(of(none, 0.1, 3.0), Agreement::Differs);
        assert_eq!(of(none, -3.0, -0.1), Agreement::Differs);
        assert_eq!(of(none, -1.0, 1.0), Agreement::CannotTell);
        let bound = PublishedValue::AtMost(2.0);
        assert_eq!(of(bound, -9.0, 2.0), Agreement::Agrees);
        assert_eq!(of(bound, 2.1, 3.0), Agreement::Differs);
        assert_eq!(of(bound, 1.0, 3.0), Agreement::CannotTell);
    }

    #[test]
    fn without_an_interval_nothing_can_be_told() {
        let ratio = PublishedValue::Ratio(2.0);
        assert_eq!(agreement(ratio, None, 0.05), Agreement::CannotTell);
    }

    #[test]
    fn differences_are_paired_within_rounds() {
        let from = [(0, 1.0), (1, 10.0), (3, 5.0)];
        let to = [(0, 3.0), (1, 12.0), (2, 99.0)];
        let (mean, interval) = difference(&from, &to, Stopping::Fixed).expect("pairs");
        assert!((mean - 2.0).abs() < 1e-12);
        let interval = interval.expect("two pairs");
        assert!((interval.high - interval.low).abs() < 1e-9, "no spread");
        assert_eq!(logs(&from, &to).len(), 2);
        assert_eq!(difference(&from, &[(7, 1.0)], Stopping::Fixed), None);
    }

    #[test]
    fn rules_make_one_figure_of_several_runs() {
        let runs = [9.0, 1.0, 4.0, 6.0];
        let of = |rule, runs: &[f64]| by_rule(rule, runs, Direction::Lower);
        assert_eq!(of(Rule::Mean, &runs), Some(5.0));
        assert_eq!(of(Rule::Trimmed, &runs), Some(5.0));
        assert_eq!(of(Rule::WorstOf, &runs), Some(9.0));
        assert_eq!(of(Rule::ThreeWithin5Percent, &runs), None);
        let steady = of(Rule::ThreeWithin5Percent, &[1.0, 5.0, 9.0, 4.0, 4.1, 3.9]);
        assert!((steady.expect("the second set") - 4.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn an_interval_agrees_with_at_most_one_of_the_three_sides(
            low in 0.1f64..3.0, wide in 0.0f64..2.0,
        ) {
            let sides = [0.5, 1.0, 2.0].map(|ratio| of(PublishedValue::Ratio(ratio), low, low + wide));
            let agree = sides.iter().filter(|one| **one == Agreement::Agrees).count();
            let differ = sides.iter().filter(|one| **one == Agreement::Differs).count();
            prop_assert!(agree <= 1);
            prop_assert!(agree == 0 || differ == 2);
        }
    }
}
