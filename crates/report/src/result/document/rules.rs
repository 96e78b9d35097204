//! What stopping rules of other tools make of the same samples.

use serde::Serialize;
use wirecost_stats::rules::{Netperf, NetperfResult, Pbench, PbenchResult};

/// Stopping rules of other tools, with their usual options, on every cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherRules {
    /// The options of `pbench`.
    pub pbench: Pbench,
    /// The options of `netperf`.
    pub netperf: Netperf,
    /// Per cell what each rule says.
    pub cells: Vec<CellRules>,
    /// Seconds that the cells' samples took here.
    pub ours_s: f64,
    /// Seconds that pbench's rule takes on average for all cells, at the spread seen and with what a
    /// sample took here; `null` where a cell has fewer than two valid samples.
    pub pbench_s: Option<f64>,
}

/// The rules on one cell's valid samples, in the order in which they were taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellRules {
    /// The cell's number.
    pub cell: u32,
    /// Valid samples with a figure.
    pub samples: u32,
    /// Sets set aside until one is steady; `mean` in Gbit/s.
    pub pbench: PbenchResult,
    /// Gbit/s without the highest and the lowest; `null` below three samples.
    pub trimmed_gbps: Option<f64>,
    /// The worst Gbit/s.
    pub worst_of_gbps: Option<f64>,
    /// Seconds of a migration's moves without the shortest and the longest; `null` below three that converged.
    pub trimmed_move_s: Option<f64>,
    /// The longest move, seconds.
    pub worst_of_move_s: Option<f64>,
    /// Iterations until the interval is narrow; `mean` in Gbit/s; `null` below three samples.
    pub netperf: Option<NetperfResult>,
}
