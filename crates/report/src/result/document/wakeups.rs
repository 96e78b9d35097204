//! CPU at an emulated line and without it, and wake-ups.

use serde::Serialize;
use wirecost_model::record::WakeupCost;

/// Of the cells whose only load is a stream, one for each cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeupsResult {
    /// What a wake-up costs where the run was made; `null` where that is not known.
    pub cost: Option<WakeupCost>,
    /// The cells, in the experiment's order.
    pub cells: Vec<CellWakeups>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellWakeups {
    /// Its number.
    pub cell: u32,
    /// Sender and receiver, or the machine.
    pub hosts: Vec<HostWakeups>,
}

/// One host of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostWakeups {
    /// `sender`, `receiver`; `machine` where the hosts share their cores.
    pub host: &'static str,
    /// In the window that throughput is of, with the line where there is one.
    pub usual: WindowCpu,
    /// In the window without the line; `null` where the cell has none.
    pub without_line: Option<WindowCpu>,
}

/// Medians over the valid samples; `null` where it was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowCpu {
    /// Gbit/s that the receiving application read.
    pub gbps: f64,
    /// Busy cores, in percent of one.
    pub percent_of_a_core: f64,
    /// The same per Gbit/s.
    pub percent_per_gbps: f64,
    /// Interrupts of its cores per Gbit.
    pub wakeups_per_gbit: Option<f64>,
    /// Share of the busy time that as many wake-ups take, 0 to 1.
    pub wakeup_share: Option<f64>,
}
