//! CPU with and without an emulated line, and wake-ups.

use serde::Serialize;
use wirecost_model::record::WakeupCost;

/// CPU with and without the line, and wake-ups, of the cells whose only load is a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeupsResult {
    /// Cost of a wake-up on the run's machine; `null` where it is not known.
    pub cost: Option<WakeupCost>,
    /// The cells, in the experiment's order.
    pub cells: Vec<CellWakeups>,
}

/// CPU and wake-ups of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellWakeups {
    /// The cell's number.
    pub cell: u32,
    /// Sender and receiver, or the machine.
    pub hosts: Vec<HostWakeups>,
}

/// CPU and wake-ups of one host in a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostWakeups {
    /// The host: `sender`, `receiver`; `machine` where the hosts share their cores.
    pub host: &'static str,
    /// In the window that throughput is measured in, with the line where there is one.
    pub usual: WindowCpu,
    /// In the window without the line; `null` where the cell has none.
    pub without_line: Option<WindowCpu>,
}

/// Medians over the valid samples; `null` where a figure was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowCpu {
    /// Gbit/s that the receiving application read.
    pub gbps: f64,
    /// Busy time of the host's cores, percent of one core.
    pub percent_of_a_core: f64,
    /// Busy time per Gbit/s, percent of one core.
    pub percent_per_gbps: f64,
    /// Interrupts of the host's cores per Gbit.
    pub wakeups_per_gbit: Option<f64>,
    /// Share of the busy time that these wake-ups take at most, at the known cost of one, 0 to 1.
    pub wakeup_share: Option<f64>,
}
