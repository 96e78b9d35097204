//! Sums over the samples of a load, besides its figures.

use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{segments_per_packet, segments_per_packet_sent};
use wirecost_model::sample::{LoadResult, Mark, Sample, ZeroCopyCounts};
use wirecost_model::switch::OvsDatapath;
use wirecost_model::usage::HostUsage;

/// Sums over the valid samples that ran a load, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LoadSums {
    pub(crate) samples: usize,
    pub(crate) received: LogMean,
    pub(crate) sent: LogMean,
    pub(crate) behind: Option<(usize, f64)>,
    pub(crate) generator_bound: usize,
    pub(crate) drops: u64,
    pub(crate) handled: u64,
    pub(crate) zero_copy: Option<ZeroCopyCounts>,
    pub(crate) min_rtt_us: Option<u32>,
    /// Lateness (due to sent) and latency (sent to answered) of all transactions.
    pub(crate) lateness: Latency,
    pub(crate) latency: Latency,
    /// Cores used by other programs: the sum, and the number of samples that recorded them.
    pub(crate) foreign: (f64, usize),
    /// The Open vSwitch datapath of the first sample that has one.
    pub(crate) open_vswitch: Option<OvsDatapath>,
    pub(crate) is_not_steered: bool,
    /// Whether a sample lacks the window without the line.
    pub(crate) has_no_saturated: bool,
}

/// Geometric mean of the positive values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LogMean {
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

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64).exp())
    }
}

impl LoadSums {
    /// Adds a valid sample; one that did not run the load is ignored.
    pub(crate) fn add(&mut self, load: &NamedLoad, sample: &Sample) {
        let Some(result) = sample.load(&load.name) else {
            return;
        };
        self.samples += 1;
        self.received.add(segments_per_packet(sample));
        self.sent.add(segments_per_packet_sent(sample));
        if let Some(behind) = result.missed_schedule(&load.load) {
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
        // One host counts foreign cores where both are on one machine, else each: the machine with more counts.
        let foreign = hosts.clone().filter_map(|usage| usage.foreign_cores);
        if let Some(cores) = foreign.reduce(f64::max) {
            self.foreign = (self.foreign.0 + cores, self.foreign.1 + 1);
        }
        let switch = sample.open_vswitch.as_ref();
        self.open_vswitch = self.open_vswitch.or(switch.map(|switch| switch.datapath));
        self.is_not_steered |= sample.not_steered;
        self.has_no_saturated |= sample.saturated.is_none();
    }
}

fn is_bound(sample: &Sample, name: &str) -> bool {
    let mut marks = sample.marks.iter();
    marks.any(|mark| matches!(mark, Mark::GeneratorBound { load, .. } if load == name))
}

/// Packets that a host received: all came through one device, the one with most packets.
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
