//! Forecast of the rounds that a verdict needs.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::StoppingCriterion;
use super::boundary::{IN_A_ROW, SEQUENTIAL_ALPHA, critical, information};
use crate::interval::{moments, phi, phi_inverse, t_upper};

/// Rounds above which a forecast is useless.
const NEVER: u32 = 100_000;

/// Number of quantiles by which the distribution of the estimated spread is integrated.
const POINTS: usize = 64;

/// What to expect of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Standard deviation of the log ratios so far.
    pub spread: f64,
    /// Rounds by which the effect is settled with the chance asked for, if the true spread and
    /// ratio are as estimated now. `None`: more than is practical.
    pub rounds: Option<u32>,
    /// The same if the true spread is the upper end of its one-sided 80 % confidence interval.
    pub cautious: Option<u32>,
}

/// The forecast from the log ratios so far; `None` below two pairs. `chance` as in [`rounds_needed`].
pub fn forecast(logs: &[f64], criterion: &StoppingCriterion, chance: f64) -> Option<Forecast> {
    let (mean, Some(spread)) = moments(logs)? else {
        return None;
    };
    let freedom = (logs.len() - 1) as f64;
    let fifth = ChiSquared::new(freedom).ok()?.inverse_cdf(0.2);
    let wider = spread * (freedom / fifth).sqrt();
    Some(Forecast {
        spread,
        rounds: rounds_needed(spread, mean.exp(), criterion, chance),
        cautious: rounds_needed(wider, mean.exp(), criterion, chance),
    })
}

/// The rounds by which an effect is settled with a probability of `chance` (0 to 1), given the
/// standard deviation `spread` of the log ratios and the true `ratio` (1 is no effect).
/// `criterion.min_rounds` is respected, `criterion.max_rounds` is not: the result may exceed it. `None` where
/// it is more than 100,000.
///
/// Log ratios are assumed to be normal. `spread` is about the relative standard deviation of one sample times the
/// square root of two.
pub fn rounds_needed(
    spread: f64,
    ratio: f64,
    criterion: &StoppingCriterion,
    chance: f64,
) -> Option<u32> {
    let enough = |rounds: u32| chance_settled(rounds, spread, ratio, criterion) >= chance;
    let mut high = criterion.min_rounds.max(2);
    let mut low = high - 1;
    while !enough(high) {
        low = high;
        high = high.checked_mul(2).filter(|&rounds| rounds <= NEVER)?;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The chance (0..=1) that an effect is settled by a number of rounds: that there was an answer
/// [`IN_A_ROW`] - 1 rounds earlier (that it then holds is nearly certain). 0 for fewer than four
/// rounds.
pub fn chance_settled(rounds: u32, spread: f64, ratio: f64, criterion: &StoppingCriterion) -> f64 {
    let n = f64::from(rounds) - (IN_A_ROW - 1) as f64;
    if n < 2.0 {
        return 0.0;
    }
    let freedom = n - 1.0;
    let effect = ratio.ln();
    let (wanted, margin) = (criterion.precision.ln_1p(), criterion.worth.ln_1p());
    let quantile = t_upper(SEQUENTIAL_ALPHA / 2.0, freedom);
    let error = spread / n.sqrt();
    let chances = (0..POINTS).map(|point| {
        let z = phi_inverse((point as f64 + 0.5) / POINTS as f64);
        let seen = error * spread_seen(z, freedom);
        let half = quantile * seen;
        if half <= wanted {
            return 1.0;
        }
        // The round at which the run ends is not known here: only the width gives information.
        let reach = critical(information(half, wanted, 0, u32::MAX), freedom) * seen;
        let beyond = |side: f64| phi((side * effect - margin - reach) / error);
        let within =
            phi((margin - reach - effect) / error) - phi((reach - margin - effect) / error);
        beyond(1.0) + beyond(-1.0) + within.max(0.0)
    });
    chances.sum::<f64>() / POINTS as f64
}

/// The `z` quantile of the ratio of a sample's standard deviation to the true one: the root of a
/// chi-squared variable over its degrees of freedom (Wilson and Hilferty, PNAS 17 (1931) 684).
fn spread_seen(z: f64, freedom: f64) -> f64 {
    let ninth = 2.0 / (9.0 * freedom);
    (1.0 - ninth + z * ninth.sqrt()).max(0.0).powf(1.5)
}
