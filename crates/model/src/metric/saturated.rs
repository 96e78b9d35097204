//! CPU with an emulated line, and without.
//!
//! Below saturation a core is woken again and again, and the cost of a wake-up depends on the machine and not on the
//! frames. So cells with a line that their load would fill have a second window without it. Verdicts on CPU per Gbit/s
//! come from that window; the window with the line is described here.

use crate::cell::Cell;
use crate::end_window::End;
use crate::load::Workload;
use crate::record::WakeupCost;
use crate::sample::{LoadResult, Sample, Saturated};
use crate::usage::HostUsage;

use super::{bits_per_second, positive};

impl Cell {
    /// Whether samples have a window without the line: the cell has a line rate, and its only load is a stream without
    /// a rate and without a limit, which would fill the line.
    pub fn has_saturated_window(&self) -> bool {
        let [named] = &self.loads[..] else {
            return false;
        };
        let stream = matches!(
            named.load.workload,
            Workload::TcpStream | Workload::TcpBidirectional | Workload::UdpStream
        );
        let as_it_can = named.load.rate.is_none() && named.load.limit.is_none();
        self.network.rate.is_some() && stream && as_it_can
    }

    /// Whether samples have a window with the storage initiator on its target's host.
    pub fn has_window_at_target(&self) -> bool {
        let mut storage = self.loads.iter().filter_map(|named| named.load.storage);
        storage.any(|storage| storage.network_share)
    }

    /// Number of windows in one sample, 1 or 2, which share the plan's seconds and warm-up.
    pub fn windows(&self) -> u32 {
        1 + u32::from(self.has_saturated_window()) + u32::from(self.has_window_at_target())
    }
}

impl Saturated {
    /// The usage of a host by its name, `a` or `b`.
    pub fn host(&self, name: &str) -> Option<&HostUsage> {
        match name {
            "a" => Some(&self.sender),
            "b" => Some(&self.receiver),
            _ => None,
        }
    }

    /// The load of that name.
    pub fn load(&self, name: &str) -> Option<&LoadResult> {
        self.loads.iter().find(|load| load.name == name)
    }
}

/// CPU of one host in one window of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamCpu {
    /// Throughput: bit/s that the receiving application read.
    pub bits_per_second: f64,
    /// Busy cores of the host: 1.0 is one core busy all the time.
    pub cores: f64,
    /// Interrupts of the host's cores per Gbit; `None` where they were not counted.
    pub wakeups_per_gbit: Option<f64>,
    /// Upper bound on the share of the busy time that these interrupts take, 0 to 1: each wakes its core, and each
    /// costs what a wake-up costs. `None` where the number of interrupts or the cost is not known.
    pub wakeup_share: Option<f64>,
}

impl StreamCpu {
    /// Percent of one core per Gbit/s.
    pub fn percent_per_gbps(&self) -> f64 {
        self.cores * 100.0 / (self.bits_per_second / 1e9)
    }
}

/// CPU of the host at `end` of a stream that ran alone, in the window with the line if the cell has one; `cost` is that
/// of the run's environment. `None` where the load is no stream, did not run alone, or nothing arrived.
pub fn stream_cpu(
    sample: &Sample,
    load: &str,
    end: End,
    cost: Option<WakeupCost>,
) -> Option<StreamCpu> {
    let [result] = &sample.loads[..] else {
        return None;
    };
    let host = sample.host(result.direction.host_of(end))?;
    (result.name == load).then(|| of_window(result, host, cost))?
}

/// As [`stream_cpu`], in the window without the line; `None` without such a window.
pub fn saturated_cpu(
    sample: &Sample,
    load: &str,
    end: End,
    cost: Option<WakeupCost>,
) -> Option<StreamCpu> {
    let saturated = sample.saturated.as_ref()?;
    let result = saturated.load(load)?;
    of_window(result, saturated.host(result.direction.host_of(end))?, cost)
}

fn of_window(result: &LoadResult, host: &HostUsage, cost: Option<WakeupCost>) -> Option<StreamCpu> {
    let bits_per_second = bits_per_second(result)?;
    let gigabits = bits_per_second / 1e9 * host.window_s;
    let busy_s = host.busy_cores() * host.window_s;
    Some(StreamCpu {
        bits_per_second,
        cores: host.busy_cores(),
        wakeups_per_gbit: host
            .wakeups
            .map(|wakeups| wakeups.interrupts() as f64 / gigabits),
        wakeup_share: host.wakeups.zip(cost).and_then(|(wakeups, cost)| {
            positive(busy_s).map(|busy_s| (cost.seconds(&wakeups) / busy_s).min(1.0))
        }),
    })
}

#[cfg(test)]
mod tests;
