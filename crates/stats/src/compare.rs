//! Comparison of two runs. Their rounds are not paired, so each run has its own spread.

use serde::Serialize;

use crate::hodges_lehmann::{mann_whitney, shift};
use crate::interval::{Interval, moments, t_upper};
use crate::ratio::has_log;

/// The figures of one run as a multiple of those of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unpaired {
    /// Samples of the run compared with.
    pub from_samples: u32,
    /// Samples of the run compared.
    pub to_samples: u32,
    /// Ratio of the geometric means, `to / from`; absent where a run has no sample.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio: Welch's t on the logarithms ("The generalization of Student's problem",
    /// Biometrika 34 (1947) 28). Absent where a run has a single sample.
    pub interval: Option<Interval>,
    /// Two-sided p of Welch's t that the runs do not differ.
    pub p: Option<f64>,
    /// Satterthwaite's degrees of freedom.
    pub freedom: Option<f64>,
    /// Hodges and Lehmann's shift of the logarithms, as a ratio `to / from`: a few outliers hardly move it.
    pub rank_ratio: Option<f64>,
    /// 95 % interval of `rank_ratio` from the rank-sum test; absent with too few samples (4 against 4 are enough).
    pub rank_interval: Option<Interval>,
    /// Exact two-sided p of Mann and Whitney's test.
    pub rank_p: Option<f64>,
}

/// Compares the samples of two runs; figures that are not positive and finite are left out.
///
/// Whatever else differs between the runs - the hour, the machine's state - cannot be distinguished
/// from the change in question: the interval covers the noise within runs only.
pub fn compare(from: &[f64], to: &[f64]) -> Unpaired {
    compare_by_welch(from, to).0
}

/// The comparison, and the parts of Welch's test from which its p at a margin is computed.
pub(crate) fn compare_by_welch(from: &[f64], to: &[f64]) -> (Unpaired, Option<Welch>) {
    let logs = |values: &[f64]| -> Vec<f64> {
        let figures = values.iter().copied().filter(|&value| has_log(value));
        figures.map(f64::ln).collect()
    };
    let (from, to) = (logs(from), logs(to));
    let (a, b) = (moments(&from), moments(&to));
    let welch = a.zip(b).and_then(|((mean_a, sd_a), (mean_b, sd_b))| {
        Welch::of(mean_b - mean_a, (sd_a?, from.len()), (sd_b?, to.len()))
    });
    let ranks = shift(&from, &to, 0.05);
    let unpaired = Unpaired {
        from_samples: from.len() as u32,
        to_samples: to.len() as u32,
        ratio: a.zip(b).map(|((a, _), (b, _))| (b - a).exp()),
        interval: welch.as_ref().map(|welch| welch.interval.map(f64::exp)),
        p: welch.as_ref().map(|welch| welch.p),
        freedom: welch.as_ref().map(|welch| welch.freedom),
        rank_ratio: ranks.map(|centre| centre.estimate.exp()),
        rank_interval: ranks.and_then(|centre| Some(centre.interval?.map(f64::exp))),
        rank_p: mann_whitney(&from, &to),
    };
    (unpaired, welch)
}

pub(crate) struct Welch {
    /// Difference of the means of the logarithms.
    pub(crate) difference: f64,
    /// Standard error of the difference.
    pub(crate) error: f64,
    pub(crate) freedom: f64,
    interval: Interval,
    p: f64,
}

impl Welch {
    fn of(difference: f64, a: (f64, usize), b: (f64, usize)) -> Option<Self> {
        let part = |(sd, n): (f64, usize)| sd * sd / n as f64;
        let (va, vb) = (part(a), part(b));
        let error = (va + vb).sqrt();
        if error <= 0.0 {
            // Without any spread, the smaller sample's degrees of freedom are the cautious choice.
            let freedom = (a.1.min(b.1).checked_sub(1)?) as f64;
            return Some(Self {
                difference,
                error,
                interval: Interval {
                    low: difference,
                    high: difference,
                },
                p: if difference == 0.0 { 1.0 } else { 0.0 },
                freedom,
            });
        }
        let share = |v: f64, n: usize| v * v / (n as f64 - 1.0);
        let freedom = (va + vb).powi(2) / (share(va, a.1) + share(vb, b.1));
        let half = t_upper(0.025, freedom) * error;
        Some(Self {
            difference,
            error,
            interval: Interval {
                low: difference - half,
                high: difference + half,
            },
            p: 2.0 * crate::interval::t_tail(difference.abs() / error, freedom),
            freedom,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn single_samples_have_a_ratio_and_none_has_nothing() {
        let one = compare(&[2.0], &[3.0]);
        assert!((one.ratio.expect("both") - 1.5).abs() < 1e-12 && one.interval.is_none());
        assert_eq!(compare(&[], &[3.0]).ratio, None);
        assert_eq!(compare(&[0.0, f64::NAN], &[3.0]).from_samples, 0);
    }

    #[test]
    fn without_any_spread_the_interval_is_the_ratio() {
        let same = compare(&[2.0; 4], &[3.0; 4]);
        assert_eq!(same.interval.map(|i| i.high - i.low), Some(0.0));
        assert_eq!(same.p, Some(0.0));
    }

    proptest! {
        #[test]
        fn swapping_the_runs_gives_the_reciprocal_and_the_unit_does_not_matter(
            from in proptest::collection::vec(0.5f64..2.0, 4..12), to in proptest::collection::vec(0.5f64..2.0, 4..12),
            unit in 1e-3f64..1e3,
        ) {
            let a = compare(&from, &to);
            let scaled = |values: &[f64]| values.iter().map(|v| v * unit).collect::<Vec<_>>();
            let b = compare(&scaled(&to), &scaled(&from));
            let close = |x: Option<f64>, y: Option<f64>| (x.unwrap_or(0.0) - y.unwrap_or(0.0)).abs() < 1e-7;
            prop_assert!(close(a.ratio, b.ratio.map(f64::recip)));
            prop_assert!(close(a.interval.map(|i| i.low), b.interval.map(|i| 1.0 / i.high)));
            prop_assert!(close(a.rank_interval.map(|i| i.low), b.rank_interval.map(|i| 1.0 / i.high)));
            prop_assert!(close(a.p, b.p) && close(a.rank_p, b.rank_p));
        }
    }
}
