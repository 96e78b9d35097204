//! The request of a survey, and the probers it leads to.

use crate::config::Config;
use crate::pacing::RateLimit;
use crate::prober::Prober;

/// What a survey is to find out about one direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyRequest {
    /// Lower end of the search: the smallest IP packet of interest, bytes.
    pub low: u32,
    /// Upper end of the search, bytes.
    pub high: u32,
    /// Size that the path should carry, bytes. Where it passes, nothing larger is probed; where it
    /// does not, the MTU is searched.
    pub expect: Option<u32>,
    /// Sizes to try first, bytes.
    pub likely_sizes: Vec<u32>,
    /// Number of flows (5-tuples) to probe, at least 1.
    pub flows: u32,
    /// Options of each flow's prober.
    pub config: Config,
    /// Limits on pace, datagrams and time.
    pub pace: RateLimit,
    /// Whether loss is counted once every flow is settled, with small datagrams at a slow pace.
    pub count: bool,
}

impl SurveyRequest {
    pub(super) fn search(&self, low: u32, high: u32) -> Prober {
        Prober::search(low, high, self.likely_sizes.clone(), self.config)
            .with_error_shared_by(self.flows)
    }

    pub(super) fn proof(&self, size: u32) -> Prober {
        Prober::verify(size, self.config)
            .or_search(self.low, self.likely_sizes.clone())
            .with_error_shared_by(self.flows)
    }

    /// A check of a flow for `mtu`. Where a size is expected, nothing larger than it is probed.
    pub(super) fn comparison(&self, mtu: u32) -> Prober {
        let high = match self.expect {
            Some(expected) if mtu >= expected => mtu,
            _ => self.high,
        };
        Prober::confirm(mtu, high, self.config).with_error_shared_by(self.flows)
    }
}
