//! netperf's rule: iterate until the interval of the mean is narrow.

use serde::Serialize;

use crate::interval::{moments, t_upper};

/// netperf's `-I level,width` and `-i max,min` (manual, "Global Options"). `-I 99,5` demands that
/// the mean is, with 99 % confidence, within +-2.5 % of the true one, reached in `min` to `max`
/// iterations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Netperf {
    /// Confidence level.
    pub level: NetperfLevel,
    /// Whole width of the interval, a fraction of the mean.
    pub width: f64,
    /// Minimum number of iterations; netperf takes no fewer than 3.
    pub min: u32,
    /// Maximum number of iterations; netperf takes no more than 30.
    pub max: u32,
}

/// The confidence levels that netperf accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NetperfLevel {
    /// 95 %.
    #[serde(rename = "95%")]
    P95,
    /// 99 %.
    #[serde(rename = "99%")]
    P99,
}

/// netperf's options `-I 99,5 -i 10,3`.
impl Default for Netperf {
    fn default() -> Self {
        Self {
            level: NetperfLevel::P99,
            width: 0.05,
            min: 3,
            max: 10,
        }
    }
}

/// Result of the rule on a cell's samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NetperfResult {
    /// Mean of the iterations taken.
    pub mean: f64,
    /// Width reached, a fraction of the mean: netperf prints it with its warning.
    pub width: f64,
    /// Whether the interval is as narrow as demanded; `None` where the samples ended before the iterations did.
    pub met: Option<bool>,
    /// Iterations taken.
    pub iterations: u32,
}

/// Applies the rule to a cell's valid samples in the order in which they were taken. `None` below
/// the least iterations.
pub fn netperf(values: &[f64], rule: Netperf) -> Option<NetperfResult> {
    let (least, most) = (rule.min.max(3), rule.max.clamp(3, 30));
    let alpha = match rule.level {
        NetperfLevel::P95 => 0.05,
        NetperfLevel::P99 => 0.01,
    };
    let mut result = None;
    for n in least.min(most)..=most {
        let Some((mean, Some(sd))) = values.get(..n as usize).and_then(moments) else {
            break;
        };
        let half = t_upper(alpha / 2.0, f64::from(n) - 1.0) * sd / f64::from(n).sqrt();
        let width = 2.0 * half / mean;
        let met = width <= rule.width;
        result = Some(NetperfResult {
            mean,
            width,
            met: if met || n == most { Some(met) } else { None },
            iterations: n,
        });
        if met {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_samples_end_it_at_the_least_iterations() {
        let result = netperf(&[10.0, 10.01, 9.99, 10.0], Netperf::default()).expect("three");
        assert_eq!((result.iterations, result.met), (3, Some(true)));
    }

    #[test]
    fn wild_samples_end_at_the_most_or_where_the_samples_do() {
        let wild: Vec<f64> = (0..12).map(|i| 10.0 + f64::from(i % 4)).collect();
        let all = netperf(&wild, Netperf::default()).expect("three");
        assert_eq!((all.iterations, all.met), (10, Some(false)));
        let few = netperf(&wild[..5], Netperf::default()).expect("three");
        assert_eq!((few.iterations, few.met), (5, None));
        assert_eq!(netperf(&wild[..2], Netperf::default()), None);
    }

    #[test]
    fn the_width_is_that_of_the_whole_interval() {
        // t of 2 degrees at 95 %: 4.3027; sd 1; n 3.
        let rule = Netperf {
            level: NetperfLevel::P95,
            width: 0.5,
            min: 3,
            max: 3,
        };
        let result = netperf(&[9.0, 10.0, 11.0], rule).expect("three");
        assert!((result.width - 2.0 * 4.302_652_73 / 3f64.sqrt() / 10.0).abs() < 1e-8);
    }
}
