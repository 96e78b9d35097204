//! What the samples of a cell show besides its figures.

use std::collections::BTreeMap;

use wirecost_model::cell::Cell;
use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Metric, segments_per_packet, segments_per_packet_sent};
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::{LoadResult, Mark, Sample, ZeroCopyCounts};
use wirecost_model::usage::HostUsage;

/// One load of one cell over its valid samples.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    pub(super) cell: &'a Cell,
    pub(super) load: &'a NamedLoad,
    samples: Vec<&'a Sample>,
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
    /// From due to sent, and from sent to answered, of all transactions.
    pub(super) lateness: Latency,
    pub(super) latency: Latency,
}

impl<'a> Evidence<'a> {
    /// Of the valid samples of a cell, all of which must be that cell's.
    pub fn of(
        cell: &'a Cell,
        load: &'a NamedLoad,
        samples: &[&'a Sample],
        cost: Option<WakeupCost>,
    ) -> Self {
        let ran =
            |sample: &&'a Sample| sample.invalid.is_none() && sample.load(&load.name).is_some();
        let samples: Vec<&Sample> = samples.iter().copied().filter(ran).collect();
        let results = || samples.iter().filter_map(|sample| sample.load(&load.name));
        let behind = results().filter_map(|result| result.behind_schedule(&load.load));
        let behind: Vec<f64> = behind
            .map(|behind| behind.over_per_s / behind.due_per_s)
            .collect();
        let mut evidence = Self {
            cell,
            load,
            cost,
            received: geometric(
                samples
                    .iter()
                    .filter_map(|sample| segments_per_packet(sample)),
            ),
            sent: geometric(
                samples
                    .iter()
                    .filter_map(|sample| segments_per_packet_sent(sample)),
            ),
            behind: (!behind.is_empty())
                .then(|| (behind.len(), behind.iter().copied().fold(1.0, f64::min))),
            generator_bound: samples
                .iter()
                .filter(|sample| is_bound(sample, &load.name))
                .count(),
            dropped: dropped(&samples),
            zero_copy: zero_copy(results()),
            min_rtt_us: min_rtt(results()),
            lateness: Latency::default(),
            latency: Latency::default(),
            samples: Vec::new(),
        };
        for requests in results().filter_map(|result| result.requests.as_ref()) {
            evidence.lateness.merge(&requests.lateness);
            evidence.latency.merge(&requests.latency);
        }
        evidence.samples = samples;
        evidence
    }

    /// Samples that count.
    pub(super) fn count(&self) -> usize {
        self.samples.len()
    }

    /// The valid samples that ran the load.
    pub(super) fn samples(&self) -> impl Iterator<Item = &'a Sample> + '_ {
        self.samples.iter().copied()
    }

    /// The mean of a metric over the samples that have it, in its own unit.
    pub(super) fn mean(&self, metric: Metric) -> Option<f64> {
        let values: Vec<f64> = self
            .samples()
            .filter_map(|sample| metric.value(sample, &self.load.name))
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The distance of the cores by round, nanoseconds.
    pub(super) fn core_distance(&self) -> BTreeMap<u32, f64> {
        let of = |sample: &Sample| Some((sample.round, sample.core_distance_ns()?));
        self.samples().filter_map(of).collect()
    }

    /// Whether a percentile was judged by more than a handful of transactions.
    pub(super) fn has_lateness(&self) -> bool {
        self.lateness.count() > 0 && self.latency.count() > 0
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

fn dropped(samples: &[&Sample]) -> Option<f64> {
    let hosts = || {
        samples
            .iter()
            .flat_map(|sample| [&sample.sender, &sample.receiver])
            .flatten()
    };
    let drops: u64 = hosts().map(|usage| usage.backlog_drops).sum();
    // Whatever a host got came over one of its devices.
    let packets = |usage: &HostUsage| {
        usage
            .links
            .values()
            .map(|link| link.rx_packets)
            .max()
            .unwrap_or(0)
    };
    let handled: u64 = hosts()
        .map(|usage| packets(usage).max(usage.guest.tcp_in))
        .sum();
    (handled > 0).then(|| drops as f64 / (handled + drops) as f64)
}

fn zero_copy<'a>(results: impl Iterator<Item = &'a LoadResult>) -> Option<ZeroCopyCounts> {
    results
        .filter_map(|result| result.zero_copy)
        .reduce(|sum, one| ZeroCopyCounts {
            sends: sum.sends + one.sends,
            completed: sum.completed + one.completed,
            copied: sum.copied + one.copied,
            fallbacks: sum.fallbacks + one.fallbacks,
        })
}

fn min_rtt<'a>(results: impl Iterator<Item = &'a LoadResult>) -> Option<u32> {
    let sockets = results
        .flat_map(|result| &result.flows)
        .filter_map(|flow| flow.sender.as_ref());
    sockets
        .map(|socket| socket.min_rtt_us)
        .filter(|rtt| *rtt > 0)
        .min()
}
