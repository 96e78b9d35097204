//! The self-test: the first cell against itself.

use serde::Serialize;
use wirecost_model::metric::Metric;
use wirecost_stats::validity::SelfTest;

use super::CellResult;

/// The first cell of a run and its twin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfTestResult {
    /// The cell that was measured twice.
    pub cell: u32,
    /// The cell's second measurement, which has a cell number of its own.
    pub twin: CellResult,
    /// What the two measurements show, for each metric.
    pub metrics: Vec<MetricSelfTest>,
}

/// A metric's self-test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricSelfTest {
    /// The load whose figure it is.
    pub load: String,
    /// The figure's metric.
    pub metric: Metric,
    /// The ratio of the twin to the cell, and whether it shows an effect.
    #[serde(flatten)]
    pub test: SelfTest,
}
