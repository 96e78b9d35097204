//! The network's part of the latency of storage.

use serde::Serialize;
use wirecost_stats::Summary;

/// Median latencies of one cell's rounds, microseconds. Intervals are Student's t of the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NetworkShare {
    /// Across the network.
    pub latency_us: Summary,
    /// Over a Unix socket on the target's host, in the same rounds.
    pub at_target_us: Summary,
    /// The difference of the two, round by round.
    pub network_us: Summary,
    /// Percent of the latency that this is, by the means.
    pub share_percent: f64,
}

/// What another level of a factor does to the network's part of the latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkChange {
    /// The load's name.
    pub load: String,
    /// The factor's key.
    pub factor: String,
    /// Its first level.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The numbers of the two cells, which differ in nothing else.
    pub cells: [u32; 2],
    /// Microseconds that it adds, round by round.
    pub added_us: Summary,
}
