//! How many rounds a verdict needs.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::Aim;
use super::boundary::{IN_A_ROW, SEQUENTIAL_ALPHA, critical, information};
use crate::interval::{moments, phi, phi_inverse, t_upper};

/// Rounds beyond which a forecast is of no use.
const NEVER: u32 = 100_000;

/// Points at which the distribution of the spread is taken.
const POINTS: usize = 64;

/// What is to be expected of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Standard deviation of the log ratios so far.
    pub spread: f64,
    /// Rounds with which the effect is settled with the chance asked for, if the spread and the
    /// ratio are as they look now. `None`: more than is practical.
    pub rounds: Option<u32>,
    /// The same if the spread is at the upper end of its one-sided 80 % confidence interval.
    pub cautious: Option<u32>,
}

/// What to expect from the log ratios so far; `None` below two pairs. `chance` as in
/// [`rounds_needed`].
pub fn forecast(logs: &[f64], aim: &Aim, chance: f64) -> Option<Forecast> {
    let (mean, Some(spread)) = moments(logs)? else {
        return None;
    };
    let freedom = (logs.len() - 1) as f64;
    let fifth = ChiSquared::new(freedom).ok()?.inverse_cdf(0.2);
    let wider = spread * (freedom / fifth).sqrt();
    Some(Forecast {
        spread,
        rounds: rounds_needed(spread, mean.exp(), aim, chance),
        cautious: rounds_needed(wider, mean.exp(), aim, chance),
    })
}

/// The rounds with which an effect is settled with a probability of `chance` (0 to 1), given the
/// standard deviation `spread` of the log ratios and the true `ratio` (1 is no effect). The least
/// rounds of `aim` are minded, the most are not: what comes back may be more. `None` where it is
/// more than 100,000.
///
/// Normal log ratios are assumed. `spread` is about the
/// relative standard deviation of one sample times the square root of two.
pub fn rounds_needed(spread: f64, ratio: f64, aim: &Aim, chance: f64) -> Option<u32> {
    let enough = |rounds: u32| chance_settled(rounds, spread, ratio, aim) >= chance;
    let mut high = aim.min_rounds.max(2);
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

/// The chance that an effect is settled by a number of rounds: that there was an answer as many rounds
/// earlier as it has to hold ([`IN_A_ROW`]; that it then does hold is nearly certain). 0 for fewer.
pub fn chance_settled(rounds: u32, spread: f64, ratio: f64, aim: &Aim) -> f64 {
    let n = f64::from(rounds) - (IN_A_ROW - 1) as f64;
    if n < 2.0 {
        return 0.0;
    }
    let freedom = n - 1.0;
    let effect = ratio.ln();
    let (wanted, margin) = (aim.precision.ln_1p(), aim.worth.ln_1p());
    let quantile = t_upper(SEQUENTIAL_ALPHA / 2.0, freedom);
    let error = spread / n.sqrt();
    let chances = (0..POINTS).map(|point| {
        let z = phi_inverse((point as f64 + 0.5) / POINTS as f64);
        let seen = error * spread_seen(z, freedom);
        let half = quantile * seen;
        if half <= wanted {
            return 1.0;
        }
        // That the run ends somewhere is not known here: the width alone is the information.
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
