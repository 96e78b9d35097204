//! Second opinions on an effect that Student's t has judged.

use serde::Serialize;
use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;

use crate::bootstrap::bootstrap_mean;
use crate::hodges_lehmann::hodges_lehmann;
use crate::interval::Interval;
use crate::ratio::PairedRatio;
use crate::sequential::Stopping;
use crate::verdict::verdict;

/// The method of a second opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Hodges and Lehmann's estimate with the interval of the exact signed-rank test, which a few
    /// outliers hardly move.
    SignedRank,
    /// The studentised bootstrap of the mean, which follows the skewness of the values.
    Bootstrap,
}

/// The result of a second method on the same rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SecondOpinion {
    /// The method.
    pub method: Method,
    /// The method's estimate of the ratio.
    pub ratio: f64,
    /// The method's interval of the ratio.
    pub interval: Interval,
    /// The verdict that this interval gives.
    pub verdict: Verdict,
    /// Whether `verdict` differs from the one by Student's t.
    pub differs: bool,
    /// Whether `ratio` lies outside the t interval: outliers or skewness decide the result.
    pub outside: bool,
}

/// Applies every method for which there are enough rounds: the signed-rank test from 6, the
/// bootstrap from 10 and with a seed.
pub fn second_opinions(
    logs: &[f64],
    better: Direction,
    worth: f64,
    stopping: Stopping,
    seed: Option<u64>,
) -> Vec<SecondOpinion> {
    let alpha = stopping.alpha();
    let first = PairedRatio::of_logs(logs, stopping);
    let (Some(ratio), Some(interval)) = (first.ratio, first.interval()) else {
        return Vec::new();
    };
    let judged = verdict(Some(interval), better, worth);
    let opinion = |method, log: f64, ends: Interval| {
        let ends = ends.map(f64::exp);
        let other = verdict(Some(ends), better, worth);
        SecondOpinion {
            method,
            ratio: log.exp(),
            interval: ends,
            verdict: other,
            differs: other != judged,
            outside: !interval.holds(log.exp()),
        }
    };
    let ranks = hodges_lehmann(logs, alpha).and_then(|centre| {
        Some(opinion(
            Method::SignedRank,
            centre.estimate,
            centre.interval?,
        ))
    });
    let resampled = seed
        .and_then(|seed| bootstrap_mean(logs, alpha, seed))
        .map(|ends| opinion(Method::Bootstrap, ratio.ln(), ends));
    ranks.into_iter().chain(resampled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_effect_has_no_dissent() {
        let logs: Vec<f64> = (0..12).map(|i| 0.2 + f64::from(i % 5) * 0.004).collect();
        let opinions = second_opinions(&logs, Direction::Higher, 0.05, Stopping::Fixed, Some(1));
        assert_eq!(opinions.len(), 2);
        assert!(
            opinions
                .iter()
                .all(|o| !o.differs && !o.outside && o.verdict == Verdict::Pays)
        );
    }

    #[test]
    fn an_effect_that_an_outlier_hides_is_seen_by_ranks() {
        let mut logs: Vec<f64> = (0..14).map(|i| 0.1 + f64::from(i % 5) * 0.004).collect();
        logs[3] = -1.5;
        let opinions = second_opinions(&logs, Direction::Higher, 0.05, Stopping::Fixed, Some(1));
        assert!(opinions[0].method == Method::SignedRank && opinions[0].differs);
        assert_eq!(opinions[0].verdict, Verdict::Pays);
    }

    #[test]
    fn few_rounds_have_no_second_opinion() {
        assert!(
            second_opinions(&[0.1; 5], Direction::Higher, 0.05, Stopping::Fixed, Some(1))
                .is_empty()
        );
    }
}
