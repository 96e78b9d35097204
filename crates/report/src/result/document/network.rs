//! The network's part of storage latency.

use serde::Serialize;
use wirecost_stats::Summary;

/// Median latencies of one cell's rounds, microseconds. Intervals are Student's t intervals of the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NetworkShare {
    /// Latency with the initiator across the network.
    pub latency_us: Summary,
    /// Latency with the initiator on the target's host, over a Unix socket, in the same rounds.
    pub at_target_us: Summary,
    /// The network's part: the difference of the two, round by round.
    pub network_us: Summary,
    /// The network's part in percent of the latency, of the means.
    pub share_percent: f64,
}

/// What another level of a factor adds to the network's part of the latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkChange {
    /// The load's name.
    pub load: String,
    /// The factor's key.
    pub factor: String,
    /// The factor's first level.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The numbers of the two cells, which differ in nothing else.
    pub cells: [u32; 2],
    /// Microseconds that `to` adds to `from`, round by round.
    pub added_us: Summary,
}
