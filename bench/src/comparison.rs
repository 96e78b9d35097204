//! Pairs -> ratios -> whether the bounds hold.

use serde::Serialize;
use wirecost_stats::{PairedRatio, RatioError, paired_ratio, summary};

use crate::measure::Sample;

/// The lower end of the throughput ratio's 95 % interval must reach this.
pub(crate) const THROUGHPUT_BOUND: f64 = 0.97;

/// Both tools, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pair {
    pub(crate) ours: Sample,
    pub(crate) iperf3: Sample,
}

/// One configuration's outcome. Ratios are ours to iperf3's, paired.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    pub(crate) configuration: String,
    pub(crate) throughput: PairedRatio,
    pub(crate) sender_cpu: PairedRatio,
    pub(crate) receiver_cpu: PairedRatio,
    /// Each tool's own figure instead of the yardstick: beside it, judged by nobody.
    pub(crate) own_throughput: PairedRatio,
    pub(crate) medians: Medians,
    /// Pairs in which either sample would be marked in a run.
    pub(crate) disturbed_pairs: u32,
    pub(crate) judgement: Judgement,
    pub(crate) pairs: Vec<Pair>,
}

/// The middle of each figure, in the sample's units.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Medians {
    pub(crate) ours: Figures,
    pub(crate) iperf3: Figures,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub(crate) gbps: f64,
    pub(crate) own_gbps: f64,
    pub(crate) sender_cpu: f64,
    pub(crate) receiver_cpu: f64,
}

/// Whether the bounds hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Judgement {
    /// The throughput ratio's lower bound is at least [`THROUGHPUT_BOUND`].
    pub(crate) throughput_reached: bool,
    /// The sender's CPU per Gbit/s is higher than iperf3's: the whole interval is above 1.
    pub(crate) sender_cpu_higher: bool,
    /// The same of the receiver.
    pub(crate) receiver_cpu_higher: bool,
}

impl Judgement {
    fn of(throughput: &PairedRatio, sender_cpu: &PairedRatio, receiver_cpu: &PairedRatio) -> Self {
        let higher = |ratio: &PairedRatio| ratio.low.is_some_and(|low| low > 1.0);
        Self {
            throughput_reached: throughput.low.is_some_and(|low| low >= THROUGHPUT_BOUND),
            sender_cpu_higher: higher(sender_cpu),
            receiver_cpu_higher: higher(receiver_cpu),
        }
    }

    pub(crate) fn holds(self) -> bool {
        self.throughput_reached && !self.sender_cpu_higher && !self.receiver_cpu_higher
    }
}

impl Comparison {
    /// # Errors
    /// A figure without a logarithm, such as no CPU at all in a window.
    pub(crate) fn new(configuration: String, pairs: Vec<Pair>) -> Result<Self, RatioError> {
        let ratio = |figure: fn(&Sample) -> f64| {
            let iperf3: Vec<f64> = pairs.iter().map(|pair| figure(&pair.iperf3)).collect();
            let ours: Vec<f64> = pairs.iter().map(|pair| figure(&pair.ours)).collect();
            paired_ratio(&iperf3, &ours)
        };
        let throughput = ratio(|sample| sample.gbps)?;
        let sender_cpu = ratio(|sample| sample.sender_cpu)?;
        let receiver_cpu = ratio(|sample| sample.receiver_cpu)?;
        let own_throughput = ratio(|sample| sample.own_gbps)?;
        let disturbed = |pair: &&Pair| pair.ours.disturbed || pair.iperf3.disturbed;
        Ok(Self {
            configuration,
            throughput,
            sender_cpu,
            receiver_cpu,
            own_throughput,
            medians: Medians {
                ours: Figures::medians(&pairs, |pair| &pair.ours),
                iperf3: Figures::medians(&pairs, |pair| &pair.iperf3),
            },
            disturbed_pairs: pairs.iter().filter(disturbed).count() as u32,
            judgement: Judgement::of(&throughput, &sender_cpu, &receiver_cpu),
            pairs,
        })
    }
}

impl Figures {
    fn medians(pairs: &[Pair], tool: fn(&Pair) -> &Sample) -> Self {
        let median = |figure: fn(&Sample) -> f64| {
            summary(pairs.iter().map(tool).map(figure)).map_or(f64::NAN, |summary| summary.median)
        };
        Self {
            gbps: median(|sample| sample.gbps),
            own_gbps: median(|sample| sample.own_gbps),
            sender_cpu: median(|sample| sample.sender_cpu),
            receiver_cpu: median(|sample| sample.receiver_cpu),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// iperf3 at 10 Gbit/s and 10 % of a core per Gbit/s, ours at these multiples of it.
    pub(crate) fn comparison(throughput: &[f64], cpu: &[f64]) -> Comparison {
        let sample = |throughput: f64, cpu: f64| Sample {
            gbps: 10.0 * throughput,
            own_gbps: 9.5 * throughput,
            sender_cpu: 10.0 * cpu,
            receiver_cpu: 10.0,
            foreign_cores: 0.0,
            disturbed: false,
        };
        let pairs = throughput
            .iter()
            .zip(cpu)
            .map(|(&throughput, &cpu)| Pair {
                ours: sample(throughput, cpu),
                iperf3: sample(1.0, 1.0),
            })
            .collect();
        Comparison::new("vxlan, offload none, no limit".to_owned(), pairs).expect("positive")
    }

    #[test]
    fn as_fast_and_as_cheap_holds() {
        let same = comparison(&[0.99, 1.0, 1.01], &[1.01, 1.0, 0.99]);
        assert!(same.judgement.holds(), "{same:?}");
    }

    #[test]
    fn a_low_mean_and_a_wide_interval_both_miss_the_throughput_bound() {
        for throughput in [[0.95, 0.95, 0.951], [0.8, 1.0, 1.2]] {
            let judged = comparison(&throughput, &[1.0; 3]).judgement;
            assert!(!judged.throughput_reached && !judged.holds());
        }
    }

    #[test]
    fn cpu_is_higher_only_beyond_noise() {
        assert!(
            comparison(&[1.0; 3], &[1.05, 1.06, 1.05])
                .judgement
                .sender_cpu_higher
        );
        assert!(comparison(&[1.0; 3], &[0.9, 1.2, 1.1]).judgement.holds());
    }

    #[test]
    fn a_window_without_cpu_has_no_ratio() {
        let mut pairs = comparison(&[1.0; 2], &[1.0; 2]).pairs;
        pairs[1].ours.receiver_cpu = 0.0;
        assert!(Comparison::new(String::new(), pairs).is_err());
    }
}
