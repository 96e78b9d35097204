//! Rates of counted events - retransmits, drops, lost datagrams - with intervals.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::interval::{Interval, t_upper};

/// A rate over several rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Total number of events.
    pub count: u64,
    /// Events per unit of exposure (a second, a packet).
    pub rate: f64,
    /// 95 % interval of the rate.
    pub interval: Interval,
    /// Ratio of the counts' variance over the rounds to that of independent events (Pearson's
    /// chi-squared over its degrees of freedom); absent below two rounds and without events.
    pub dispersion: Option<f64>,
}

/// The rate of events from each round's count and exposure (seconds, packets), which must be above 0;
/// rounds whose exposure is not are left out. `None` where none is left.
///
/// The interval is Garwood's exact one for a Poisson count ("Fiducial limits for the Poisson
/// distribution", Biometrika 28 (1936) 437). Losses come in bursts: where the counts are
/// overdispersed, the interval is instead that of the log rate with the error scaled by the root of
/// the dispersion (quasi-likelihood: McCullagh and Nelder, "Generalized Linear Models", 1989,
/// section 6.2) and Student's t, where that is wider.
pub fn rate(rounds: &[(u64, f64)]) -> Option<Rate> {
    let rounds: Vec<(u64, f64)> = rounds
        .iter()
        .copied()
        .filter(|&(_, exposure)| exposure > 0.0 && exposure.is_finite())
        .collect();
    let exposure: f64 = rounds.iter().map(|round| round.1).sum();
    if rounds.is_empty() {
        return None;
    }
    let count: u64 = rounds.iter().map(|round| round.0).sum();
    let rate = count as f64 / exposure;
    let exact = garwood(count).map(|events| events / exposure);
    let freedom = (rounds.len() - 1) as f64;
    let dispersion = (freedom > 0.0 && count > 0).then(|| {
        let squares = rounds.iter().map(|&(events, exposure)| {
            let expected = rate * exposure;
            (events as f64 - expected).powi(2) / expected
        });
        squares.sum::<f64>() / freedom
    });
    let interval = match dispersion.filter(|&dispersion| dispersion > 1.0) {
        Some(dispersion) => {
            let factor = (t_upper(0.025, freedom) * (dispersion / count as f64).sqrt()).exp();
            Interval {
                low: exact.low.min(rate / factor),
                high: exact.high.max(rate * factor),
            }
        }
        None => exact,
    };
    Some(Rate {
        count,
        rate,
        interval,
        dispersion,
    })
}

/// The exact 95 % interval of a Poisson mean.
fn garwood(count: u64) -> Interval {
    let half_quantile = |p: f64, freedom: f64| {
        ChiSquared::new(freedom).map_or(f64::NAN, |chi| chi.inverse_cdf(p) / 2.0)
    };
    let twice = 2.0 * count as f64;
    Interval {
        low: if count == 0 {
            0.0
        } else {
            half_quantile(0.025, twice)
        },
        high: half_quantile(0.975, twice + 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_event_still_has_an_upper_end() {
        let none = rate(&[(0, 10.0), (0, 10.0)]).expect("exposure");
        assert_eq!(
            (none.rate, none.interval.low, none.dispersion),
            (0.0, 0.0, None)
        );
        // -ln 0.025 events.
        assert!((none.interval.high - 3.688_879_454 / 20.0).abs() < 1e-8);
        assert_eq!(rate(&[(3, 0.0)]), None);
    }

    #[test]
    fn bursts_widen_the_interval() {
        let even = rate(&[(10, 1.0); 6]).expect("exposure");
        let bursts =
            rate(&[(0, 1.0), (0, 1.0), (60, 1.0), (0, 1.0), (0, 1.0), (0, 1.0)]).expect("exposure");
        assert!(bursts.dispersion > Some(10.0) && even.dispersion == Some(0.0));
        assert!(
            bursts.interval.low < even.interval.low && bursts.interval.high > even.interval.high
        );
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_rate_and_scales_with_the_unit(
            rounds in proptest::collection::vec((0u64..50, 0.5f64..2.0), 1..10), unit in 0.1f64..10.0,
        ) {
            let a = rate(&rounds).expect("exposure");
            prop_assert!(a.interval.holds(a.rate));
            let scaled: Vec<_> = rounds.iter().map(|&(n, t)| (n, t * unit)).collect();
            let b = rate(&scaled).expect("exposure");
            prop_assert!((a.interval.high / unit - b.interval.high).abs() < 1e-6 * a.interval.high);
        }
    }
}
