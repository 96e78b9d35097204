//! What a figure of processors' time is made of, so that rounds can be added up.

use std::ops::Add;

use super::{Metric, bits_per_second, transactions_per_second};
use crate::end_window::End;
use crate::sample::Sample;
use crate::usage::HostUsage;

/// Core time of one window, and what it was spent on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuParts {
    /// Seconds of core time that were busy: from 0.
    pub busy_s: f64,
    /// What came of them, above 0: Gbit, or transactions.
    pub units: f64,
    /// Resolution of `busy_s` in seconds ([`HostUsage::idle_step_s`]).
    pub step_s: f64,
    /// What `busy_s / units` is multiplied with for the metric's own unit.
    pub scale: f64,
}

impl CpuParts {
    /// The figure in the metric's unit.
    pub fn figure(&self) -> f64 {
        self.busy_s * self.scale / self.units
    }

    /// Steps of the counter's resolution that the busy time holds.
    pub fn steps(&self) -> f64 {
        if self.busy_s > 0.0 {
            self.busy_s / self.step_s
        } else {
            0.0
        }
    }
}

/// Of two windows together.
impl Add for CpuParts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            busy_s: self.busy_s + other.busy_s,
            units: self.units + other.units,
            step_s: self.step_s.max(other.step_s),
            scale: self.scale,
        }
    }
}

impl Metric {
    /// The host whose processors the figure is about, over the window that it is taken from: the saturated one where the
    /// sample has it. `None` of a metric that is not of processors, and where several loads shared them.
    pub fn cpu_host<'a>(self, sample: &'a Sample, load: &str) -> Option<&'a HostUsage> {
        if !self.is_cpu() || sample.loads.len() != 1 {
            return None;
        }
        let end = match self {
            Self::SenderCpu | Self::ClientCpu => End::Client,
            // With shared cores both hosts read the same counters: one of them is the machine.
            _ => End::Server,
        };
        let host = sample.load(load)?.direction.host_of(end);
        match (&sample.saturated, host) {
            (Some(saturated), "a") => Some(&saturated.sender),
            (Some(saturated), _) => Some(&saturated.receiver),
            (None, host) => sample.host(host),
        }
    }

    /// Core time and what came of it; also where no step of it was counted. `None` where the figure cannot be had at all
    /// ([`Metric::value`]).
    pub fn cpu_parts(self, sample: &Sample, load: &str) -> Option<CpuParts> {
        let usage = self.cpu_host(sample, load)?;
        let result = match &sample.saturated {
            Some(saturated) => saturated.loads.iter().find(|one| one.name == load)?,
            None => sample.load(load)?,
        };
        if result.client_seconds < usage.least_for_cpu_s() {
            return None;
        }
        let (per_second, scale) = match self {
            Self::SenderCpu | Self::ReceiverCpu | Self::Cpu => {
                (bits_per_second(result)? / 1e9, 100.0)
            }
            _ => (transactions_per_second(result)?, 1e6),
        };
        let busy_s: f64 = usage.cores.iter().map(|core| core.busy_s).sum();
        let transit_s = usage.transit_cores.unwrap_or(0.0) * usage.window_s;
        Some(CpuParts {
            busy_s: (busy_s - transit_s).max(0.0),
            units: per_second * usage.window_s,
            step_s: usage.idle_step_s,
            scale,
        })
    }
}
