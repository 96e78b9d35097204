//! The first cell against itself.

use serde::Serialize;
use wirecost_model::metric::Metric;
use wirecost_stats::validity::SelfTest;

use super::CellResult;

/// The first cell of a run and its twin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfTestResult {
    /// The cell that was measured twice.
    pub cell: u32,
    /// Its second measurement, under its own number.
    pub twin: CellResult,
    /// Per metric what the two show.
    pub metrics: Vec<MetricSelfTest>,
}

/// A metric's self-test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricSelfTest {
    /// The load whose figure it is.
    pub load: String,
    /// The figure.
    pub metric: Metric,
    /// The twin over the cell, and what follows.
    #[serde(flatten)]
    pub test: SelfTest,
}
