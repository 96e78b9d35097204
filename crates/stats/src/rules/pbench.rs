//! pbench's rule: repeat a set of samples until its standard deviation is small.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::interval::moments;

/// The rule of `pbench-fio`, `pbench-uperf` and the like: a set of samples counts if its population
/// standard deviation is within a share of its mean. Otherwise the whole set is discarded and
/// measured anew, up to a number of times (options `--samples`, `--max-stddev`, `--max-failures`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pbench {
    /// Samples of a set, at least 2.
    pub samples: u32,
    /// Largest standard deviation allowed, a fraction of the mean.
    pub within: f64,
    /// Largest number of sets.
    pub sets: u32,
}

/// The defaults in pbench's agent/bench-scripts/pbench-uperf: five samples within 5 %, six sets.
impl Default for Pbench {
    fn default() -> Self {
        Self {
            samples: 5,
            within: 0.05,
            sets: 6,
        }
    }
}

/// Outcome of the rule on a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum PbenchOutcome {
    /// A set was steady enough.
    Settled {
        /// Mean of the set: the result.
        mean: f64,
        /// Population standard deviation of the set as a fraction of its mean.
        relative_sd: f64,
    },
    /// No set was steady enough, and no more are allowed: the rule reports a failure.
    NeverSettled,
    /// The samples ended before the rule did.
    RanOut,
}

/// Result of the rule on a cell's samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PbenchResult {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: PbenchOutcome,
    /// Complete sets that were examined.
    pub sets: u32,
    /// Samples that the rule would have taken for these sets.
    pub samples: u32,
    /// Chance (0..=1) that a set settles, given normal noise with the spread of all the cell's
    /// samples; absent below two samples.
    pub chance: Option<f64>,
    /// Samples that the rule takes on average at that chance, discarded sets included.
    pub expected_samples: Option<f64>,
}

/// Applies the rule to a cell's valid samples in the order in which they were taken. Multiply
/// counts of samples by the time of one sample for a time.
pub fn pbench(values: &[f64], rule: Pbench) -> PbenchResult {
    let size = rule.samples.max(2);
    let mut sets = 0;
    let mut outcome = PbenchOutcome::RanOut;
    for set in values.chunks_exact(size as usize).take(rule.sets as usize) {
        sets += 1;
        if let Some((mean, relative_sd)) = population(set)
            && relative_sd <= rule.within
        {
            outcome = PbenchOutcome::Settled { mean, relative_sd };
            break;
        }
    }
    if outcome == PbenchOutcome::RanOut && sets == rule.sets {
        outcome = PbenchOutcome::NeverSettled;
    }
    let chance = chance(values, size, rule.within);
    PbenchResult {
        outcome,
        sets,
        samples: sets * size,
        chance,
        expected_samples: chance.map(|chance| {
            // Sets measured: the first one always, each next one if all before it were discarded.
            let mut sets = 0.0;
            let mut all_failed = 1.0;
            for _ in 0..rule.sets {
                sets += all_failed;
                all_failed *= 1.0 - chance;
            }
            sets * f64::from(size)
        }),
    }
}

/// Mean, and population standard deviation as a fraction of the mean.
fn population(set: &[f64]) -> Option<(f64, f64)> {
    let (mean, Some(sd)) = moments(set)? else {
        return None;
    };
    let n = set.len() as f64;
    (mean > 0.0).then(|| (mean, sd * ((n - 1.0) / n).sqrt() / mean))
}

fn chance(values: &[f64], size: u32, within: f64) -> Option<f64> {
    let (mean, Some(sd)) = moments(values)? else {
        return None;
    };
    if sd <= 0.0 {
        return Some(1.0);
    }
    // n s^2 / sigma^2 of a population variance s^2 is chi-squared with n - 1 degrees of freedom.
    let n = f64::from(size);
    let chi_squared = ChiSquared::new(n - 1.0).ok()?;
    Some(chi_squared.cdf(n * (within * mean / sd).powi(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Pbench = Pbench {
        samples: 3,
        within: 0.05,
        sets: 2,
    };

    #[test]
    fn a_set_that_does_not_settle_is_set_aside_as_a_whole() {
        let result = pbench(&[1.0, 2.0, 1.0, 5.0, 5.1, 4.9], RULE);
        assert_eq!((result.sets, result.samples), (2, 6));
        assert!(
            matches!(result.outcome, PbenchOutcome::Settled { mean, .. } if (mean - 5.0).abs() < 1e-12)
        );
    }

    #[test]
    fn a_set_that_never_settles_is_a_failure_and_too_few_samples_are_not() {
        let wild = [1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 1.0];
        assert_eq!(pbench(&wild, RULE).outcome, PbenchOutcome::NeverSettled);
        assert_eq!(pbench(&wild[..5], RULE).outcome, PbenchOutcome::RanOut);
        assert_eq!(pbench(&[], RULE).chance, None);
    }

    #[test]
    fn the_deviation_is_that_of_the_population() {
        // 1 +- 0.05 has a sample deviation of 0.0707, a population deviation of 0.05.
        let rule = Pbench {
            samples: 2,
            within: 0.0501,
            sets: 1,
        };
        assert!(matches!(
            pbench(&[0.95, 1.05], rule).outcome,
            PbenchOutcome::Settled { .. }
        ));
    }

    #[test]
    fn steady_samples_take_one_set_and_wild_ones_all() {
        let steady = pbench(&[1.0, 1.001, 0.999, 1.0, 1.001], RULE);
        assert!((steady.expected_samples.expect("spread") - 3.0).abs() < 0.01);
        let wild = pbench(&[1.0, 9.0, 1.0, 9.0], RULE);
        assert!((wild.expected_samples.expect("spread") - 6.0).abs() < 0.1);
    }
}
