//! Core distance: how far apart the lab's cores were.

use serde::Serialize;

/// Time that a cache line took from one core to another and back, nanoseconds, over a run's samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoreDistanceResult {
    /// The smallest of all samples.
    pub nearest_ns: f64,
    /// Lower median of the samples.
    pub median_ns: f64,
    /// The largest of all samples.
    pub farthest_ns: f64,
}
