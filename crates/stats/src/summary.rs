//! Summary statistics of a cell's samples.

use serde::Serialize;

use crate::interval;

/// The spread of one figure over a cell's valid samples, in the figure's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of samples.
    pub n: u32,
    /// The middle value, or the mean of the two middle values.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Sample standard deviation (n - 1); absent below two samples.
    pub sd: Option<f64>,
    /// `sd / mean`, a fraction; absent below two samples and where the mean is not positive.
    pub relative_sd: Option<f64>,
    /// Lower end of the 95 % Student's t interval of the mean; absent below two samples.
    pub low: Option<f64>,
    /// Upper end of that interval; absent below two samples.
    pub high: Option<f64>,
}

/// Summarises finite values; others are left out. `None` where none is left.
pub fn summary(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
    let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (mean, sd) = interval::moments(&values)?;
    let n = values.len();
    let interval = sd.and_then(|sd| interval::of_mean(mean, sd, n, 0.05));
    Some(Summary {
        n: n as u32,
        median: f64::midpoint(values[(n - 1) / 2], values[n / 2]),
        mean,
        min: values[0],
        max: values[n - 1],
        sd,
        relative_sd: sd.filter(|_| mean > 0.0).map(|sd| sd / mean),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_summary_and_one_value_has_no_spread() {
        assert_eq!(summary([]), None);
        assert_eq!(summary([f64::NAN]), None);
        let one = summary([3.0]).expect("one value");
        assert_eq!((one.n, one.median, one.sd, one.low), (1, 3.0, None, None));
    }

    #[test]
    fn zeros_have_a_spread_and_no_relative_one() {
        let zeros = summary([0.0, 0.0]).expect("two values");
        assert_eq!((zeros.sd, zeros.relative_sd), (Some(0.0), None));
    }

    proptest! {
        #[test]
        fn the_figures_are_in_order(values in proptest::collection::vec(0.1f64..10.0, 2..20)) {
            let s = summary(values.iter().copied()).expect("values");
            prop_assert!(s.min <= s.median && s.median <= s.max);
            prop_assert!(s.low <= Some(s.mean) && Some(s.mean) <= s.high);
            prop_assert_eq!(s.n as usize, values.len());
        }
    }
}
