//! Confidence intervals of a mean.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A 95 % confidence interval, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Mean and sample standard deviation (n - 1); the deviation needs two values.
pub(crate) fn moments(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
    Some((mean, sd))
}

/// Student's t interval of the mean of `n` values.
pub(crate) fn of_mean(mean: f64, sd: f64, n: usize) -> Option<Interval> {
    let freedom = n.checked_sub(1)? as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    let half = t * sd / (n as f64).sqrt();
    Some(Interval {
        low: mean - half,
        high: mean + half,
    })
}
