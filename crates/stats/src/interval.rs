//! Confidence intervals of a mean.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

/// A confidence interval, ends included; at 95 % unless the function that returns it says otherwise.
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

/// Student's t interval of the mean of `n` values at `1 - alpha`.
pub(crate) fn of_mean(mean: f64, sd: f64, n: usize, alpha: f64) -> Option<Interval> {
    let freedom = n.checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let half = t_upper(alpha / 2.0, freedom) * sd / (n as f64).sqrt();
    Some(Interval {
        low: mean - half,
        high: mean + half,
    })
}

/// The value that a t variable of `freedom` degrees exceeds with probability `tail`, 0 < `tail` <= 0.5.
pub(crate) fn t_upper(tail: f64, freedom: f64) -> f64 {
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else {
        return f64::INFINITY;
    };
    // From the lower tail: 1 - tail would lose the digits of a small one. Far out the library's
    // inverse is wrong by a factor, its tail is not. Newton's steps on the logarithm of the tail,
    // which is nearly straight in the quantile's logarithm, fix that.
    let mut t = -student.inverse_cdf(tail);
    for _ in 0..STEPS {
        let here = student.sf(t);
        let slope = -student.pdf(t) * t / here;
        let step = (tail / here).ln() / slope;
        if !step.is_finite() {
            break;
        }
        t *= step.clamp(-2.0, 2.0).exp();
        if step.abs() < 1e-12 {
            break;
        }
    }
    t
}

/// Newton's steps at most: two suffice near the centre, a dozen in the far tail of one degree of freedom.
const STEPS: usize = 40;

/// Probability that a t variable of `freedom` degrees exceeds `t`.
pub(crate) fn t_tail(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |student| student.sf(t))
}

/// The standard normal distribution function.
pub(crate) fn phi(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The upper tail of the standard normal distribution, `1 - phi(z)` without the loss of digits.
pub(crate) fn phi_upper(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The quantile function of the standard normal distribution, inverse of [`phi`].
pub(crate) fn phi_inverse(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

impl Interval {
    /// Both ends mapped by an increasing function.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            low: f(self.low),
            high: f(self.high),
        }
    }

    /// Whether `value` lies in the interval, ends included.
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_t_are_scipys_far_into_the_tail() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../golden/methods.json")).expect("JSON");
        for entry in golden["t_quantiles"].as_array().expect("a list") {
            let number = |key: &str| entry[key].as_f64().expect("a number");
            let ours = t_upper(number("tail"), number("freedom"));
            assert!(
                (ours / number("t") - 1.0).abs() < 1e-8,
                "{ours} is not {entry}"
            );
        }
    }
}
