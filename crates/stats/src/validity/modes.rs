//! Two modes: good runs and bad runs of the same cell.

use serde::Serialize;

use super::dip::{dip, dip_p};
use crate::interval::moments;

/// p of the dip at which a second mode is called one. Among values with one mode and tails it is
/// reached far less often than one in a hundred ([`dip_p`]).
const ALPHA: f64 = 0.01;

/// Ashman's D above which two modes are clean apart: Ashman, Bird and Zepf, "Detecting bimodality in
/// astronomical datasets", Astron. J. 108 (1994) 2348.
const CLEAN: f64 = 2.0;

/// A sample that falls into two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoModes {
    /// Values.
    pub n: u32,
    /// Hartigan's dip.
    pub dip: f64,
    /// Its p against the uniform distribution; 0.001 stands for that and less.
    pub p: f64,
    /// The share of values in the lower mode.
    pub low_share: f64,
    /// Mean of the lower mode, in the values' own unit.
    pub low: f64,
    /// Mean of the higher mode.
    pub high: f64,
    /// Ashman's D: the distance of the two means in units of their spread; `None` where they have none.
    pub ashman_d: Option<f64>,
}

/// Two modes, where the dip finds them at p of at most 0.01 and they are clean apart. The values are
/// divided where that leaves the least sum of squares (Otsu's and k-means' criterion). `None` below
/// ten values: with fewer nothing can be said. With ten to twenty, only modes of about equal weight
/// and far apart are found.
pub fn two_modes(values: &[f64]) -> Option<TwoModes> {
    let n = values.len();
    let dip = dip(values)?;
    let p = dip_p(dip, n).filter(|&p| p <= ALPHA)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = divided(&sorted)?;
    let (low, low_sd) = moments(&sorted[..at])?;
    let (high, high_sd) = moments(&sorted[at..])?;
    let spread = low_sd.unwrap_or(0.0).hypot(high_sd.unwrap_or(0.0));
    let ashman_d = (spread > 0.0).then(|| std::f64::consts::SQRT_2 * (high - low) / spread);
    if ashman_d.is_some_and(|d| d <= CLEAN) {
        return None;
    }
    Some(TwoModes {
        n: n as u32,
        dip,
        p,
        low_share: at as f64 / n as f64,
        low,
        high,
        ashman_d,
    })
}

/// Where the sorted values fall into two with the least sum of squares about either mean: where the squares of the means
/// themselves are most.
fn divided(sorted: &[f64]) -> Option<usize> {
    let (mean, _) = moments(sorted)?;
    let n = sorted.len();
    let (mut below, mut best) = (0.0, None);
    for at in 1..n {
        // About the mean of all, so that no digits are lost; both sides then sum to the same.
        below += sorted[at - 1] - mean;
        let between = below * below * (1.0 / at as f64 + 1.0 / (n - at) as f64);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_and_bad_runs_are_told_apart() {
        let values: Vec<f64> = (0..24)
            .map(|i| if i % 3 == 0 { 30.0 } else { 70.0 } + f64::from(i % 5))
            .collect();
        let modes = two_modes(&values).expect("two");
        assert!((modes.low_share - 1.0 / 3.0).abs() < 1e-12);
        assert!(modes.low < 35.0 && modes.high > 69.0 && modes.ashman_d > Some(2.0));
    }

    #[test]
    fn one_mode_is_none_and_few_values_say_nothing() {
        let even: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(two_modes(&even), None);
        assert_eq!(two_modes(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]), None);
    }
}
