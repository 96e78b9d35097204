//! Curves: factors with many numeric levels, where most of the gain is reached early or the figure makes a step.

use wirecost_model::curve::{Curve, Knee, Step};

use crate::interval::{self, Interval};
use crate::published::Column;

/// Least number of levels for which a curve is examined.
pub const MIN_LEVELS: usize = 6;
/// Share of the whole gain that counts as most of it.
pub const KNEE_GAIN_SHARE: f64 = 0.8;
/// Share of the distance from the first level to the last within which [`KNEE_GAIN_SHARE`] of the gain must be
/// reached to be a knee. A straight line takes [`KNEE_GAIN_SHARE`] of the distance.
pub const KNEE_DISTANCE_SHARE: f64 = 0.6;

/// A numeric level, and its figures by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The level as a number above 0, ascending from point to point.
    pub at: f64,
    /// Rounds, ascending, and the figure of each, above 0.
    pub column: Vec<(u32, f64)>,
}

/// Looks for a knee and for steps; `worth` is the margin as a fraction. Every statement rests on
/// 95 % intervals for the whole curve (Bonferroni), paired within rounds:
///
/// - a knee only where the last level exceeds the first by more than the margin, and the knee's
///   level and every later one have more than [`KNEE_GAIN_SHARE`] of that gain;
/// - a step down where a level is lower than the one before by more than the margin;
/// - a step up where a level is higher, by more than the margin, than the change before it
///   extrapolates to on the logarithmic scale: the gain of larger frames flattens out, and does not
///   begin anew.
pub fn curve(points: &[Point], worth: f64) -> Curve {
    if points.len() < MIN_LEVELS {
        return Curve::default();
    }
    let rounds = in_all(points);
    let logs: Vec<Vec<f64>> = points
        .iter()
        .map(|point| logs_of(&point.column, &rounds))
        .collect();
    let tests = 2 * points.len();
    let margin = worth.ln_1p();
    Curve {
        knee: knee(points, &logs, margin, tests),
        steps: steps(points, &logs, margin, tests),
    }
}

/// Rounds in which every level has a figure above 0.
fn in_all(points: &[Point]) -> Vec<u32> {
    let has = |column: &Column, round: u32| {
        let found = column.binary_search_by_key(&round, |(known, _)| *known);
        found.is_ok_and(|at| column[at].1 > 0.0)
    };
    let first = points[0].column.iter().map(|(round, _)| *round);
    first
        .filter(|round| points.iter().all(|point| has(&point.column, *round)))
        .collect()
}

fn logs_of(column: &Column, rounds: &[u32]) -> Vec<f64> {
    let of_rounds = column
        .iter()
        .filter(|(round, _)| rounds.binary_search(round).is_ok());
    of_rounds.map(|(_, value)| value.ln()).collect()
}

/// Mean over the rounds and interval of one combination of levels, Bonferroni-corrected for `tests` tests.
fn mean(rounds: usize, tests: usize, of: impl Fn(usize) -> f64) -> Option<(f64, Interval)> {
    let values: Vec<f64> = (0..rounds).map(of).collect();
    let (mean, sd) = interval::moments(&values)?;
    let interval = interval::of_mean(mean, sd?, rounds, 0.05 / tests as f64)?;
    Some((mean, interval))
}

fn knee(points: &[Point], logs: &[Vec<f64>], margin: f64, tests: usize) -> Option<Knee> {
    let (first, last) = (logs.first()?, logs.last()?);
    let rounds = first.len();
    let (whole, interval) = mean(rounds, tests, |round| last[round] - first[round])?;
    if interval.low <= margin {
        return None;
    }
    let beyond = |level: &Vec<f64>| {
        let of = |round: usize| {
            (level[round] - first[round]) - KNEE_GAIN_SHARE * (last[round] - first[round])
        };
        mean(rounds, tests, of).is_some_and(|(_, interval)| interval.low > 0.0)
    };
    // From the last level to the first: the last level has the whole gain.
    let inner = &logs[1..logs.len() - 1];
    let behind = inner.iter().rev().take_while(|level| beyond(level)).count();
    let at = logs.len() - 1 - behind;
    let (low, high) = (points.first()?.at, points.last()?.at);
    let way = (points[at].at - low) / (high - low);
    let (gain, _) = mean(rounds, tests, |round| logs[at][round] - first[round])?;
    (behind > 0 && way <= KNEE_DISTANCE_SHARE).then(|| Knee {
        at: points[at].at,
        share: gain / whole,
        total_gain: whole.exp(),
    })
}

fn steps(points: &[Point], logs: &[Vec<f64>], margin: f64, tests: usize) -> Vec<Step> {
    let rounds = logs.first().map_or(0, Vec::len);
    let change = |at: usize, round: usize| logs[at + 1][round] - logs[at][round];
    let width = |at: usize| (points[at + 1].at / points[at].at).ln();
    let is_step = |at: usize| {
        let down = mean(rounds, tests, |round| change(at, round))
            .is_some_and(|(_, interval)| interval.high < -margin);
        let up = at > 0
            && mean(rounds, tests, |round| {
                change(at, round) - change(at - 1, round).max(0.0) * width(at) / width(at - 1)
            })
            .is_some_and(|(_, interval)| interval.low > margin);
        down || up
    };
    (0..points.len() - 1)
        .filter(|at| is_step(*at))
        .filter_map(|at| {
            let (mean, _) = mean(rounds, tests, |round| change(at, round))?;
            Some(Step {
                from: points[at].at,
                to: points[at + 1].at,
                ratio: mean.exp(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEVELS: [f64; 12] = [
        1500.0, 1800.0, 2000.0, 2200.0, 2500.0, 3000.0, 4000.0, 5000.0, 6000.0, 7000.0, 8000.0,
        9000.0,
    ];

    /// Noise of about so many percent, the same in every run of the tests.
    fn noise(round: u32, level: usize, percent: f64) -> f64 {
        let mixed = (round as usize * 7919 + level * 104_729) % 1013;
        1.0 + (mixed as f64 / 506.0 - 1.0) * percent / 100.0
    }

    fn points(of: impl Fn(f64) -> f64, percent: f64) -> Vec<Point> {
        let column = |level: usize, at: f64| {
            let rounds = 0..10u32;
            rounds
                .map(|round| (round, of(at) * noise(round, level, percent)))
                .collect()
        };
        let levels = LEVELS.into_iter().enumerate();
        levels
            .map(|(level, at)| Point {
                at,
                column: column(level, at),
            })
            .collect()
    }

    /// What frames cost: so much each, and so much a byte.
    fn per_frame(at: f64) -> f64 {
        1.0 / (4000.0 / at + 1.0)
    }

    /// Three quarters of the gain by 3000, and then nearly flat.
    fn bent(at: f64) -> f64 {
        if at < 3000.0 {
            at / 1500.0
        } else {
            2.0 * (at / 3000.0).powf(0.05)
        }
    }

    #[test]
    fn a_knee_is_found_where_the_curve_bends() {
        let knee = curve(&points(bent, 1.0), 0.05).knee.expect("a knee");
        assert!((3000.0..=4000.0).contains(&knee.at), "{knee:?}");
        assert!(
            knee.share > KNEE_GAIN_SHARE && knee.share < 1.05,
            "{knee:?}"
        );
        assert!(
            (knee.total_gain / bent(9000.0) - 1.0).abs() < 0.03,
            "{knee:?}"
        );
    }

    #[test]
    fn a_smooth_curve_has_no_step() {
        assert_eq!(curve(&points(per_frame, 1.0), 0.05).steps, []);
        assert_eq!(curve(&points(bent, 0.5), 0.05).steps, []);
    }

    #[test]
    fn a_straight_or_flat_line_has_no_knee() {
        assert_eq!(curve(&points(|at| at, 1.0), 0.05).knee, None);
        assert_eq!(curve(&points(|_| 5.0, 1.0), 0.05), Curve::default());
        assert_eq!(
            curve(&points(|at| 1.0 / at, 1.0), 0.05).knee,
            None,
            "a loss"
        );
    }

    #[test]
    fn a_step_is_found_in_either_direction() {
        let up = |at: f64| per_frame(at) * if at > 2000.0 { 1.3 } else { 1.0 };
        let found = curve(&points(up, 1.0), 0.05).steps;
        let [step] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((step.from, step.to), (2000.0, 2200.0));
        assert!(step.ratio > 1.2);
        let down = |at: f64| per_frame(at) * if at > 4000.0 { 0.7 } else { 1.0 };
        let found = curve(&points(down, 1.0), 0.05).steps;
        assert_eq!((found[0].from, found[0].to), (4000.0, 5000.0));
        assert!(found[0].ratio < 0.9, "{found:?}");
    }

    #[test]
    fn nothing_is_claimed_that_the_intervals_do_not_carry() {
        let found = curve(&points(bent, 60.0), 0.05);
        assert_eq!(found, Curve::default());
        // One round has no interval.
        let mut few = points(bent, 0.0);
        for point in &mut few {
            point.column.truncate(1);
        }
        assert_eq!(curve(&few, 0.05), Curve::default());
        assert_eq!(curve(&points(bent, 1.0)[..5], 0.05), Curve::default());
    }

    #[test]
    fn a_round_that_a_level_lacks_is_left_out() {
        let mut points = points(bent, 1.0);
        points[3].column.remove(0);
        points[5].column.clear();
        assert_eq!(curve(&points, 0.05), Curve::default(), "no round has all");
    }

    proptest! {
        #[test]
        fn a_flat_curve_hardly_ever_has_anything(seed in 0u32..200, percent in 0.5f64..20.0) {
            let flat = LEVELS.iter().enumerate().map(|(level, at)| Point {
                at: *at,
                column: (0..8).map(|round| (round, noise(round + seed * 31, level + seed as usize, percent))).collect(),
            });
            let found = curve(&flat.collect::<Vec<_>>(), 0.05);
            prop_assert!(found.knee.is_none());
        }
    }
}
