//! Numerator and denominator of CPU metrics, so that rounds can be added up.

use std::ops::Add;

use super::{Metric, bits_per_second, transactions_per_second};
use crate::sample::{LoadResult, Sample};
use crate::usage::HostUsage;

/// Busy core time of one window, and the work that was done with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuParts {
    /// Busy core time, seconds, 0 or more.
    pub busy_s: f64,
    /// Work done in the window, above 0: Gbit or transactions.
    pub units: f64,
    /// Resolution of `busy_s` in seconds ([`HostUsage::idle_step_s`]).
    pub step_s: f64,
    /// Factor from `busy_s / units` to the metric's own unit.
    pub scale: f64,
}

impl CpuParts {
    /// The value in the metric's own unit.
    pub fn figure(&self) -> f64 {
        self.busy_s * self.scale / self.units
    }

    /// Busy time in steps of the counter's resolution.
    pub fn steps(&self) -> f64 {
        if self.busy_s > 0.0 {
            self.busy_s / self.step_s
        } else {
            0.0
        }
    }
}

/// Adds two windows.
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
    /// The load and the host that a CPU metric is about, in the window that it is taken from: for CPU per Gbit/s the
    /// one without the line where the sample has it. `None` for other metrics, and where several loads shared the
    /// cores: their common use belongs to none of them.
    fn cpu_window<'a>(
        self,
        sample: &'a Sample,
        load: &str,
    ) -> Option<(&'a LoadResult, &'a HostUsage)> {
        if !self.is_cpu() || sample.loads.len() != 1 {
            return None;
        }
        match &sample.saturated {
            Some(saturated) if self.is_per_gbps() => {
                let load = saturated.load(load)?;
                Some((load, saturated.host(load.direction.host_of(self.end()))?))
            }
            _ => {
                let load = sample.load(load)?;
                Some((load, sample.host(load.direction.host_of(self.end()))?))
            }
        }
    }

    /// The usage of the host that a CPU metric is about, in the window that it is taken from.
    pub fn cpu_host<'a>(self, sample: &'a Sample, load: &str) -> Option<&'a HostUsage> {
        Some(self.cpu_window(sample, load)?.1)
    }

    /// Busy core time and the work done, also where the busy time is 0. `None` where the metric has no value for other
    /// reasons ([`Metric::value`]).
    pub fn cpu_parts(self, sample: &Sample, load: &str) -> Option<CpuParts> {
        let (load, host) = self.cpu_window(sample, load)?;
        if load.client_seconds < host.least_for_cpu_s() {
            return None;
        }
        let (per_second, scale) = if self.is_per_gbps() {
            (bits_per_second(load)? / 1e9, 100.0)
        } else {
            (transactions_per_second(load)?, 1e6)
        };
        let busy_s: f64 = host.cores.iter().map(|core| core.busy_s).sum();
        let transit_s = host.transit_cores.unwrap_or(0.0) * host.window_s;
        Some(CpuParts {
            busy_s: (busy_s - transit_s).max(0.0),
            units: per_second * host.window_s,
            step_s: host.idle_step_s,
            scale,
        })
    }
}
