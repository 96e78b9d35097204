//! Detects two modes: good and bad runs of the same cell.

use serde::Serialize;

use super::dip::{dip, dip_p};
use crate::interval::moments;

/// p of the dip up to which two modes are reported. Values with one mode and tails reach it far
/// less often than one time in a hundred ([`dip_p`]).
const ALPHA: f64 = 0.01;

/// Ashman's D above which two modes are cleanly separated: Ashman, Bird and Zepf, "Detecting bimodality in
/// astronomical datasets", Astron. J. 108 (1994) 2348.
const CLEAN: f64 = 2.0;

/// The two modes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoModes {
    /// Number of values.
    pub n: u32,
    /// Hartigan's dip of the values.
    pub dip: f64,
    /// p of the dip against the uniform distribution; 0.001 stands for 0.001 or less.
    pub p: f64,
    /// The share of values in the lower mode.
    pub low_share: f64,
    /// Mean of the lower mode, in the values' own unit.
    pub low: f64,
    /// Mean of the higher mode.
    pub high: f64,
    /// Ashman's D: the distance of the two means relative to the spread within the modes; `None`
    /// where there is no spread.
    pub ashman_d: Option<f64>,
}

/// The two modes of the values, where the dip has a p of at most 0.01 and the modes are cleanly
/// separated. The values are split where the sum of squares is least (Otsu's and k-means'
/// criterion). `None` where there is one mode, and below ten values. With ten to twenty values,
/// only modes of about equal weight and far from each other are found.
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

/// Index at which to split the sorted values for the least sum of squares about the two means:
/// where the sum of squares between the means is largest.
fn divided(sorted: &[f64]) -> Option<usize> {
    let (mean, _) = moments(sorted)?;
    let n = sorted.len();
    let (mut below, mut best) = (0.0, None);
    for at in 1..n {
        // Relative to the mean of all, so that no digits are lost; the sums of both sides are then
        // equal but for the sign.
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
