//! What the samples of a cell show besides its figures.

use std::collections::BTreeMap;

use wirecost_model::cell::Cell;
use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Figure, Metric, segments_per_packet, segments_per_packet_sent};
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::{LoadResult, Mark, Sample, ZeroCopyCounts};
use wirecost_model::switch::OvsDatapath;
use wirecost_model::usage::HostUsage;

use crate::observed::{Observed, Series};

/// One load of one cell over its valid samples.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    observed: &'a Observed,
    pub(super) cell: &'a Cell,
    pub(super) load: &'a NamedLoad,
    pub(super) sums: &'a LoadSums,
    /// What a wake-up costs on the machine of the run.
    pub(super) cost: Option<WakeupCost>,
    /// Segments per packet at the receiver, the geometric mean.
    pub(super) received: Option<f64>,
    /// The same at the sender.
    pub(super) sent: Option<f64>,
    /// Samples that fell behind their schedule, and the smallest share of it that was kept.
    pub(super) behind: Option<(usize, f64)>,
    /// Samples in which the load's own threads were the limit.
    pub(super) generator_bound: usize,
    /// Packets dropped from a backlog of those that the hosts' stacks handled, a share.
    pub(super) dropped: Option<f64>,
    /// Sends from the load's own pages.
    pub(super) zero_copy: Option<ZeroCopyCounts>,
    /// The smallest round trip that a socket saw, microseconds; `None` where no socket was read.
    pub(super) min_rtt_us: Option<u32>,
}

/// What the valid samples that ran a load come to: sums, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LoadSums {
    samples: usize,
    received: LogMean,
    sent: LogMean,
    behind: Option<(usize, f64)>,
    generator_bound: usize,
    drops: u64,
    handled: u64,
    zero_copy: Option<ZeroCopyCounts>,
    min_rtt_us: Option<u32>,
    /// From due to sent, and from sent to answered, of all transactions.
    lateness: Latency,
    latency: Latency,
    /// Cores of other programs, their sum and how many samples know them.
    foreign: (f64, usize),
    /// Of the first sample that has one.
    pub(super) open_vswitch: Option<OvsDatapath>,
    pub(super) is_not_steered: bool,
    /// Whether a sample has no window without the line.
    pub(super) has_no_saturated: bool,
}

/// A geometric mean of what is positive.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LogMean {
    sum: f64,
    count: usize,
}

impl LogMean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value.filter(|value| *value > 0.0) {
            self.sum += value.ln();
            self.count += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64).exp())
    }
}

impl LoadSums {
    /// Adds a valid sample, if it ran the load.
    pub(crate) fn add(&mut self, load: &NamedLoad, sample: &Sample) {
        let Some(result) = sample.load(&load.name) else {
            return;
        };
        self.samples += 1;
        self.received.add(segments_per_packet(sample));
        self.sent.add(segments_per_packet_sent(sample));
        if let Some(behind) = result.behind_schedule(&load.load) {
            let (count, least) = self.behind.unwrap_or((0, 1.0));
            self.behind = Some((count + 1, least.min(behind.over_per_s / behind.due_per_s)));
        }
        self.generator_bound += usize::from(is_bound(sample, &load.name));
        let hosts = [&sample.sender, &sample.receiver].into_iter().flatten();
        for usage in hosts.clone() {
            self.drops += usage.backlog_drops;
            self.handled += packets(usage).max(usage.guest.tcp_in);
        }
        self.zero_copy = match (self.zero_copy, result.zero_copy) {
            (Some(sum), Some(one)) => Some(ZeroCopyCounts {
                sends: sum.sends + one.sends,
                completed: sum.completed + one.completed,
                copied: sum.copied + one.copied,
                fallbacks: sum.fallbacks + one.fallbacks,
            }),
            (sum, one) => sum.or(one),
        };
        self.min_rtt_us = self.min_rtt_us.into_iter().chain(min_rtt(result)).min();
        if let Some(requests) = &result.requests {
            self.lateness.merge(&requests.lateness);
            self.latency.merge(&requests.latency);
        }
        // One host looks, for the machine that both are on.
        if let Some(cores) = hosts.clone().find_map(|usage| usage.foreign_cores) {
            self.foreign = (self.foreign.0 + cores, self.foreign.1 + 1);
        }
        let switch = sample.open_vswitch.as_ref();
        self.open_vswitch = self.open_vswitch.or(switch.map(|switch| switch.datapath));
        self.is_not_steered |= sample.not_steered;
        self.has_no_saturated |= sample.saturated.is_none();
    }
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        observed: &'a Observed,
        cell: &'a Cell,
        load: &'a NamedLoad,
        sums: &'a LoadSums,
    ) -> Self {
        let handled = sums.handled;
        Self {
            observed,
            cell,
            load,
            sums,
            cost: observed.cost(),
            received: sums.received.mean(),
            sent: sums.sent.mean(),
            behind: sums.behind,
            generator_bound: sums.generator_bound,
            dropped: (handled > 0).then(|| sums.drops as f64 / (handled + sums.drops) as f64),
            zero_copy: sums.zero_copy,
            min_rtt_us: sums.min_rtt_us,
        }
    }

    /// Samples that count.
    pub(super) fn count(&self) -> usize {
        self.sums.samples
    }

    /// The column of one of the load's figures.
    pub(super) fn series(&self, metric: Metric) -> Option<&'a Series> {
        let figure = Figure {
            load: self.load.name.clone(),
            metric,
        };
        self.observed.series(self.cell.index, &figure)
    }

    /// The mean of a metric over the samples that have it, in its own unit.
    pub(super) fn mean(&self, metric: Metric) -> Option<f64> {
        let values = self.series(metric)?.values();
        let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), (_, value)| {
            (sum + value, count + 1)
        });
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Cores of other programs, the mean over the samples that know them.
    pub(super) fn foreign_cores(&self) -> Option<f64> {
        let (sum, count) = self.sums.foreign;
        (count > 0).then(|| sum / count as f64)
    }

    /// The distance of the cores by round, nanoseconds.
    pub(super) fn core_distance(&self) -> BTreeMap<u32, f64> {
        let around = self.observed.around(self.cell.index);
        let each = around.into_iter().flat_map(|around| around.each());
        each.filter_map(|(round, _, distance)| Some((round, distance?)))
            .collect()
    }

    /// From sent to answered, of all transactions.
    pub const fn latency(&self) -> &'a Latency {
        &self.sums.latency
    }

    /// From due to sent.
    pub const fn lateness(&self) -> &'a Latency {
        &self.sums.lateness
    }

    /// Whether a percentile was judged by more than a handful of transactions.
    pub(super) fn has_lateness(&self) -> bool {
        self.lateness().count() > 0 && self.latency().count() > 0
    }
}

/// The geometric mean of what is positive.
pub(super) fn geometric(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn is_bound(sample: &Sample, name: &str) -> bool {
    let mut marks = sample.marks.iter();
    marks.any(|mark| matches!(mark, Mark::GeneratorBound { load, .. } if load == name))
}

/// Packets that a host got: whatever came came over one of its devices.
fn packets(usage: &HostUsage) -> u64 {
    let links = usage.links.values();
    links.map(|link| link.rx_packets).max().unwrap_or(0)
}

fn min_rtt(result: &LoadResult) -> Option<u32> {
    let sockets = result.flows.iter().filter_map(|flow| flow.sender.as_ref());
    sockets
        .map(|socket| socket.min_rtt_us)
        .filter(|rtt| *rtt > 0)
        .min()
}
