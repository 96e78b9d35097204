//! How far apart the lab's cores were.

use serde::Serialize;

/// Nanoseconds that a cache line took from core to core and back, over a run's samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoreDistanceResult {
    /// The least of all samples.
    pub nearest_ns: f64,
    /// Half of the samples had no more.
    pub median_ns: f64,
    /// The most.
    pub farthest_ns: f64,
}
