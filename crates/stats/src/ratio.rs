//! The paired ratio of two cells.

use serde::Serialize;
use thiserror::Error;

use crate::interval::{self, Interval};
use crate::sequential::Stopping;

/// The ratio `to / from` of two cells over the rounds in which both were measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedRatio {
    /// Pairs, one per round.
    pub pairs: u32,
    /// Geometric mean of `to / from`; absent without a pair.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval; absent below two pairs.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; absent below two pairs.
    pub high: Option<f64>,
}

impl PairedRatio {
    /// From the finite logarithms of the ratios. `stopping` selects the level of the interval: it
    /// depends on how the number of rounds was decided.
    pub fn of_logs(logs: &[f64], stopping: Stopping) -> Self {
        let moments = interval::moments(logs);
        let interval = moments
            .and_then(|(mean, sd)| interval::of_mean(mean, sd?, logs.len(), stopping.alpha()));
        Self {
            pairs: logs.len() as u32,
            ratio: moments.map(|(mean, _)| mean.exp()),
            low: interval.map(|interval| interval.low.exp()),
            high: interval.map(|interval| interval.high.exp()),
        }
    }

    /// The 95 % interval; `None` below two pairs.
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval {
            low: self.low?,
            high: self.high?,
        })
    }
}

/// Why figures have no ratio.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RatioError {
    /// The two levels have different numbers of figures.
    #[error("{from} figures cannot be paired with {to}")]
    Unpaired {
        /// Figures of the level compared with.
        from: usize,
        /// Figures of the level compared.
        to: usize,
    },
    /// A figure has no logarithm.
    #[error("pair {pair} holds {value}, which is not a positive finite figure")]
    NotPositive {
        /// Index of the pair.
        pair: usize,
        /// The figure.
        value: f64,
    },
}

/// The geometric mean of `to[i] / from[i]` with its 95 % interval: Student's t on the logarithms
/// of the ratios, `n - 1` degrees of freedom.
///
/// The logarithm makes it symmetric: swapping `from` and `to` gives the reciprocal. The pairs are
/// taken as independent and the log ratios as about normal.
///
/// # Errors
/// Slices of different length; a figure that is zero, negative, infinite or not a number.
pub fn paired_ratio(from: &[f64], to: &[f64]) -> Result<PairedRatio, RatioError> {
    paired_ratio_stopped(from, to, Stopping::Fixed)
}

/// [`paired_ratio`] of a number of pairs that was decided as `stopping` says.
///
/// # Errors
/// As [`paired_ratio`].
pub fn paired_ratio_stopped(
    from: &[f64],
    to: &[f64],
    stopping: Stopping,
) -> Result<PairedRatio, RatioError> {
    if from.len() != to.len() {
        return Err(RatioError::Unpaired {
            from: from.len(),
            to: to.len(),
        });
    }
    let mut logs = Vec::with_capacity(from.len());
    for (pair, (&from, &to)) in from.iter().zip(to).enumerate() {
        if let Some(value) = [from, to].into_iter().find(|&value| !has_log(value)) {
            return Err(RatioError::NotPositive { pair, value });
        }
        logs.push(to.ln() - from.ln());
    }
    Ok(PairedRatio::of_logs(&logs, stopping))
}

/// Whether a figure has a logarithm: positive and finite.
pub(crate) fn has_log(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => (a / b - 1.0).abs() < 1e-9,
            (None, None) => true,
            _ => false,
        }
    }

    fn rounds() -> impl Strategy<Value = Vec<(f64, f64)>> {
        proptest::collection::vec((0.1f64..10.0, 0.1f64..10.0), 2..12)
    }

    fn ratio(pairs: &[(f64, f64)]) -> PairedRatio {
        let (from, to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        paired_ratio(&from, &to).expect("positive figures")
    }

    #[test]
    fn figures_without_a_logarithm_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                paired_ratio(&[1.0, 1.0], &[1.0, bad]),
                Err(RatioError::NotPositive { pair: 1, .. })
            ));
            assert!(paired_ratio(&[bad], &[1.0]).is_err());
        }
        assert_eq!(
            paired_ratio(&[1.0], &[]),
            Err(RatioError::Unpaired { from: 1, to: 0 })
        );
    }

    #[test]
    fn one_pair_has_a_ratio_and_no_interval_and_none_has_neither() {
        let one = ratio(&[(2.0, 3.0)]);
        assert!(close(one.ratio, Some(1.5)));
        assert_eq!(one.interval(), None);
        assert_eq!(ratio(&[]).ratio, None);
    }

    proptest! {
        #[test]
        fn the_unit_does_not_matter(pairs in rounds(), scale in 1e-6f64..1e6) {
            let scaled: Vec<_> = pairs.iter().map(|(a, b)| (a * scale, b * scale)).collect();
            let (a, b) = (ratio(&pairs), ratio(&scaled));
            prop_assert!(close(a.ratio, b.ratio) && close(a.low, b.low) && close(a.high, b.high));
        }

        #[test]
        fn what_slows_a_whole_round_cancels(pairs in rounds(), drift in 0.1f64..10.0) {
            let mut drifted = pairs.clone();
            drifted[0] = (drifted[0].0 * drift, drifted[0].1 * drift);
            let (a, b) = (ratio(&pairs), ratio(&drifted));
            prop_assert!(close(a.ratio, b.ratio) && close(a.low, b.low) && close(a.high, b.high));
        }

        #[test]
        fn swapping_the_levels_gives_the_reciprocal(pairs in rounds()) {
            let swapped: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let (a, b) = (ratio(&pairs), ratio(&swapped));
            prop_assert!(close(a.ratio, b.ratio.map(f64::recip)));
            prop_assert!(close(a.low, b.high.map(f64::recip)));
            prop_assert!(close(a.high, b.low.map(f64::recip)));
        }

        #[test]
        fn the_order_of_rounds_does_not_matter(pairs in rounds(), by in 0usize..12) {
            let mut turned = pairs.clone();
            turned.rotate_left(by % pairs.len());
            turned.reverse();
            let (a, b) = (ratio(&pairs), ratio(&turned));
            prop_assert!(close(a.ratio, b.ratio) && close(a.low, b.low) && close(a.high, b.high));
        }

        #[test]
        fn the_interval_holds_the_ratio(pairs in rounds()) {
            let a = ratio(&pairs);
            prop_assert!(a.low <= a.ratio && a.ratio <= a.high);
        }
    }
}
