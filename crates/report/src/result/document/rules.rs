//! Stopping rules of other tools, applied to the same samples.

use serde::Serialize;
use wirecost_stats::rules::{Netperf, NetperfResult, Pbench, PbenchResult};

/// Results of other tools' stopping rules, with their default options, for every cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherRules {
    /// The options of pbench's rule.
    pub pbench: Pbench,
    /// The options of netperf's rule.
    pub netperf: Netperf,
    /// What each rule gives, for each cell.
    pub cells: Vec<CellRules>,
    /// Seconds that the cells' samples took in this run.
    pub ours_s: f64,
    /// Seconds that pbench's rule would take on average for all cells, at the observed spread and the time
    /// that a sample took here; `null` where a cell has fewer than two valid samples.
    pub pbench_s: Option<f64>,
}

/// The rules on one cell's valid samples, in the order in which they were taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellRules {
    /// The cell's number.
    pub cell: u32,
    /// Valid samples with a throughput.
    pub samples: u32,
    /// pbench: sets of samples are discarded until one is steady; `mean` in Gbit/s.
    pub pbench: PbenchResult,
    /// Mean Gbit/s without the highest and the lowest; `null` below three samples.
    pub trimmed_gbps: Option<f64>,
    /// The lowest Gbit/s.
    pub worst_of_gbps: Option<f64>,
    /// Mean seconds of a migration's moves without the shortest and the longest; `null` below three samples in which
    /// all machines moved.
    pub trimmed_move_s: Option<f64>,
    /// The longest move, seconds.
    pub worst_of_move_s: Option<f64>,
    /// netperf: iterations until the interval of the mean is narrow; `mean` in Gbit/s; `null` below three samples.
    pub netperf: Option<NetperfResult>,
}
