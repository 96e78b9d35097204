//! Latencies of one round of storage that also has a window at its target.

use wirecost_model::metric::{Metric, median_at_target};
use wirecost_model::sample::Sample;

/// Median latencies of a round across the network and at the target, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundLatencies {
    pub(crate) round: u32,
    pub(crate) across: f64,
    pub(crate) at_target: f64,
}

impl RoundLatencies {
    /// The latencies of a sample; `None` where it lacks one of the windows.
    pub(crate) fn of(sample: &Sample, load: &str) -> Option<Self> {
        Some(Self {
            round: sample.round,
            across: Metric::LatencyMedian.value(sample, load)? * 1e6,
            at_target: median_at_target(sample, load)? * 1e6,
        })
    }

    /// The network's part: the difference of the two latencies, microseconds.
    pub(crate) fn network(&self) -> f64 {
        self.across - self.at_target
    }
}
