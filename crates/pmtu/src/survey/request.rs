//! What a survey is asked, and the probers that follow from it.

use crate::config::Config;
use crate::pacing::RateLimit;
use crate::prober::Prober;

/// What a survey asks of one direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyRequest {
    /// Where the search begins: the smallest IP packet of interest, bytes.
    pub low: u32,
    /// Where it ends, bytes.
    pub high: u32,
    /// What the path should carry, bytes. Where it does, nothing else is asked; where not, what it carries is
    /// searched.
    pub expect: Option<u32>,
    /// Sizes to try first.
    pub likely_sizes: Vec<u32>,
    /// Flows (5-tuples) to ask, at least 1.
    pub flows: u32,
    /// How to probe each.
    pub config: Config,
    /// How fast.
    pub pace: RateLimit,
    /// Whether, once every flow is settled, it is counted how much is lost, with small datagrams at a slow pace.
    pub count: bool,
}

impl SurveyRequest {
    pub(super) fn search(&self, low: u32, high: u32) -> Prober {
        Prober::search(low, high, self.likely_sizes.clone(), self.config).among(self.flows)
    }

    pub(super) fn proof(&self, size: u32) -> Prober {
        Prober::verify(size, self.config)
            .or_search(self.low, self.likely_sizes.clone())
            .among(self.flows)
    }

    /// Where a size is expected, more than it is not asked for.
    pub(super) fn comparison(&self, mtu: u32) -> Prober {
        let high = match self.expect {
            Some(expected) if mtu >= expected => mtu,
            _ => self.high,
        };
        Prober::confirm(mtu, high, self.config).among(self.flows)
    }
}
