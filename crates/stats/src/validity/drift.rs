//! Monotone trend of one figure over another: over rounds it means drift, over foreign load disturbance.

use std::cmp::Ordering;

use serde::Serialize;

use crate::bootstrap::quantile;
use crate::exact::{inversions, two_sided};
use crate::interval::phi_upper;
use crate::validity::pairs::{self, Score};

/// Points above which the normal approximation replaces the exact distribution, ties or not.
const EXACT: usize = 100;

/// Points up to which every pair is examined: half a million slopes.
const EACH_PAIR: usize = 1000;

/// A monotone trend and its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Number of points.
    pub n: u32,
    /// Kendall's tau-b, -1 to 1.
    pub tau: f64,
    /// Two-sided p that there is no trend.
    pub p: f64,
    /// Theil and Sen's slope: the median of all pairwise slopes, in units of y per unit of x.
    pub slope: f64,
}

/// The test of Mann ("Nonparametric tests against trend", Econometrica 13 (1945) 245) and Kendall,
/// with the slope of Theil (1950) and Sen ("Estimates of the regression coefficient based on
/// Kendall's tau", JASA 63 (1968) 1379).
///
/// p is exact without ties up to 100 points; else by the normal approximation with the variance
/// corrected for ties (Kendall, "Rank correlation methods", chapter 4). `None` below 4 points, with
/// which no p below 0.08 exists, and where x or y is constant.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 4 {
        return None;
    }
    let (
        Score {
            difference: score,
            tied_x,
            tied_y,
        },
        slopes,
    ) = if n <= EACH_PAIR {
        each_pair(points)
    } else {
        (pairs::score(points), Vec::new())
    };
    let pairs = (n * (n - 1) / 2) as i64;
    if tied_x == pairs || tied_y == pairs {
        return None;
    }
    let tau = score as f64 / ((pairs - tied_x) as f64 * (pairs - tied_y) as f64).sqrt();
    let p = if tied_x + tied_y == 0 && n <= EXACT {
        // Without ties the number of falling pairs follows from the score.
        two_sided(&inversions(n), ((pairs - score) / 2) as usize)
    } else {
        let xs: Vec<f64> = points.iter().map(|point| point.0).collect();
        let ys: Vec<f64> = points.iter().map(|point| point.1).collect();
        (2.0 * phi_upper(score.unsigned_abs() as f64 / variance(&xs, &ys).sqrt())).min(1.0)
    };
    Some(Trend {
        n: n as u32,
        tau,
        p,
        slope: if n <= EACH_PAIR {
            quantile(&slopes, 0.5)
        } else {
            pairs::median_slope(points)
        },
    })
}

/// Kendall's score and ties, and all slopes, ascending.
fn each_pair(points: &[(f64, f64)]) -> (Score, Vec<f64>) {
    let (mut score, mut slopes) = (0i64, Vec::new());
    let (mut tied_x, mut tied_y) = (0i64, 0i64);
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            let (dx, dy) = (b.0 - a.0, b.1 - a.1);
            if dx == 0.0 {
                tied_x += 1;
            } else {
                slopes.push(dy / dx);
            }
            if dy == 0.0 {
                tied_y += 1;
            }
            let sign = dx * dy;
            if sign > 0.0 {
                score += 1;
            } else if sign < 0.0 {
                score -= 1;
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let score = Score {
        difference: score,
        tied_x,
        tied_y,
    };
    (score, slopes)
}

/// Variance of Kendall's score without a trend, corrected for ties.
fn variance(xs: &[f64], ys: &[f64]) -> f64 {
    let n = xs.len() as f64;
    let sums = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let groups = sorted
            .chunk_by(|a, b| a.partial_cmp(b) == Some(Ordering::Equal))
            .map(|group| group.len() as f64);
        groups.fold((0.0, 0.0, 0.0), |(two, three, five), t| {
            let pairs = t * (t - 1.0);
            (
                two + pairs,
                three + pairs * (t - 2.0),
                five + pairs * (2.0 * t + 5.0),
            )
        })
    };
    let (x, y) = (sums(xs), sums(ys));
    let all = n * (n - 1.0);
    (all * (2.0 * n + 5.0) - x.2 - y.2) / 18.0
        + x.0 * y.0 / (2.0 * all)
        + x.1 * y.1 / (9.0 * all * (n - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_straight_rise_is_one_of_two_in_n_factorial() {
        let points: Vec<_> = (0..5).map(|i| (f64::from(i), f64::from(i) * 3.0)).collect();
        let trend = trend(&points).expect("points");
        assert_eq!((trend.tau, trend.slope), (1.0, 3.0));
        assert!((trend.p - 2.0 / 120.0).abs() < 1e-12);
    }

    #[test]
    fn constant_figures_have_no_trend() {
        assert_eq!(trend(&[(0.0, 1.0); 6]), None);
        assert_eq!(trend(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), None);
    }

    proptest! {
        /// Few different values, so that every kind of tie is there.
        #[test]
        fn many_points_come_to_what_each_of_their_pairs_says(
            points in proptest::collection::vec((0u8..9, -6i8..6), 4..60),
        ) {
            let points: Vec<(f64, f64)> =
                points.iter().map(|(x, y)| (f64::from(*x), f64::from(*y) * 0.25)).collect();
            let (score, slopes) = each_pair(&points);
            prop_assert_eq!(pairs::score(&points), score);
            if !slopes.is_empty() {
                let at = (slopes.len() - 1) / 2;
                let found = pairs::median_slope(&points);
                prop_assert!((found - slopes[at]).abs() < 1e-9, "{found}, {slopes:?}");
            }
        }

        #[test]
        fn turning_a_figure_round_mirrors_its_trend(
            ys in proptest::collection::vec(-1.0f64..1.0, 4..30),
        ) {
            let up: Vec<_> = ys.iter().enumerate().map(|(i, y)| (i as f64, *y)).collect();
            let down: Vec<_> = up.iter().map(|(x, y)| (*x, -y)).collect();
            if let (Some(a), Some(b)) = (trend(&up), trend(&down)) {
                prop_assert!((a.tau + b.tau).abs() < 1e-12 && (a.slope + b.slope).abs() < 1e-9);
                prop_assert!((a.p - b.p).abs() < 1e-9 && a.p > 0.0 && a.p <= 1.0);
            }
        }
    }
}
