//! Metrics: the figures that are derived from a sample, for tables and verdicts.

mod cpu;
mod derived;
mod figure;
mod frames;
mod saturated;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cores::Cores;
use crate::end_window::End;
use crate::load::Workload;
use crate::sample::{LoadResult, RequestResult, Sample};
use crate::usage::HostUsage;

pub use cpu::CpuParts;
pub use derived::{Derived, SampleWithFigures};
pub use figure::Figure;
pub use frames::{
    retransmits, segments_per_packet, segments_per_packet_sent, stack_packets_per_second,
    wire_frames_per_second,
};
pub use saturated::{StreamCpu, saturated_cpu, stream_cpu};

/// A figure of one load, on which verdicts are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bit/s that the receiving application read; the sum of both directions where both ends send.
    Throughput,
    /// Percent of one core of the sending host per Gbit/s. Where the cell has a line and a load that would fill it, of
    /// the window without the line.
    SenderCpu,
    /// Percent of one core of the receiving host per Gbit/s, of the same window as [`Metric::SenderCpu`].
    ReceiverCpu,
    /// Percent of one core of the machine per Gbit/s, of the same window, where the hosts share their cores.
    Cpu,
    /// Transactions per second.
    Transactions,
    /// The latency that half of the transactions did not exceed, seconds.
    LatencyMedian,
    /// The latency that 99 % of the transactions did not exceed, seconds.
    LatencyP99,
    /// The latency that 99.9 % of the transactions did not exceed, seconds.
    LatencyP999,
    /// Core time of the requesting host per transaction, microseconds.
    ClientCpu,
    /// Core time of the responding host per transaction, microseconds.
    ServerCpu,
    /// Core time of the machine per transaction, microseconds, where the hosts share their cores.
    TransactionCpu,
    /// Datagrams per second that the receiving application read.
    Datagrams,
    /// Share of the sent datagrams that arrived, 0 to 1. Compared instead of the share lost, which is often 0 and then
    /// has no ratio.
    Delivered,
    /// Migration: time until the last machine has moved, seconds. No value where a machine did not move.
    MoveTime,
    /// Migration: the longest downtime of a machine as the load counts it, seconds. No value where a machine did not
    /// move.
    Downtime,
    /// Migration with `find_limit`: the highest dirty rate that converges, bit/s.
    DirtyLimit,
}

/// Which direction of change is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// Transactions that have to lie beyond a percentile for it to be reported.
const ENOUGH_BEYOND: u64 = 10;

impl Metric {
    /// The metrics of a workload, the main one first. CPU is one figure per host only where the hosts have cores of
    /// their own.
    pub const fn of(workload: Workload, cores: Cores) -> &'static [Self] {
        use Metric::{
            ClientCpu, Cpu, Datagrams, Delivered, DirtyLimit, Downtime, LatencyMedian, LatencyP99,
            LatencyP999, MoveTime, ReceiverCpu, SenderCpu, ServerCpu, Throughput, TransactionCpu,
            Transactions,
        };
        if workload.is_migration() {
            return match cores {
                Cores::Split => &[MoveTime, Downtime, DirtyLimit, SenderCpu, ReceiverCpu],
                Cores::Shared => &[MoveTime, Downtime, DirtyLimit, Cpu],
            };
        }
        match (workload.is_request_response(), workload.is_udp(), cores) {
            (true, _, Cores::Split) => &[
                Transactions,
                LatencyMedian,
                LatencyP99,
                LatencyP999,
                ClientCpu,
                ServerCpu,
            ],
            (true, _, Cores::Shared) => &[
                Transactions,
                LatencyMedian,
                LatencyP99,
                LatencyP999,
                TransactionCpu,
            ],
            (false, true, Cores::Split) => {
                &[Throughput, Datagrams, Delivered, SenderCpu, ReceiverCpu]
            }
            (false, true, Cores::Shared) => &[Throughput, Datagrams, Delivered, Cpu],
            (false, false, Cores::Split) => &[Throughput, SenderCpu, ReceiverCpu],
            (false, false, Cores::Shared) => &[Throughput, Cpu],
        }
    }

    /// The metrics that tables show: those of [`Metric::of`], for storage also throughput and CPU per Gbit/s, for
    /// migration also throughput. These get no verdicts: at one I/O size they say the same as I/O per second and CPU
    /// per I/O.
    pub fn shown(workload: Workload, cores: Cores) -> Vec<Self> {
        let verdicts = Self::of(workload, cores);
        let more: &[Self] = match (workload, cores) {
            (Workload::Storage, Cores::Split) => {
                &[Self::Throughput, Self::SenderCpu, Self::ReceiverCpu]
            }
            (Workload::Storage, Cores::Shared) => &[Self::Throughput, Self::Cpu],
            (Workload::Migration, _) => &[Self::Throughput],
            _ => &[],
        };
        [verdicts, more].concat()
    }

    /// Which direction of change is better.
    pub const fn better(self) -> Direction {
        match self {
            Self::Throughput
            | Self::Transactions
            | Self::Datagrams
            | Self::Delivered
            | Self::DirtyLimit => Direction::Higher,
            Self::SenderCpu
            | Self::ReceiverCpu
            | Self::Cpu
            | Self::ClientCpu
            | Self::ServerCpu
            | Self::TransactionCpu
            | Self::LatencyMedian
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::MoveTime
            | Self::Downtime => Direction::Lower,
        }
    }

    /// Whether the metric is what gets through, as opposed to its cost or its time.
    pub const fn is_speed(self) -> bool {
        !self.is_cpu() && !self.is_latency()
    }

    /// The unit for people, and the factor from the metric's own unit to it.
    pub const fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Throughput => ("Gbit/s", 1e-9),
            Self::SenderCpu | Self::ReceiverCpu | Self::Cpu => ("% of a core per Gbit/s", 1.0),
            Self::Transactions => ("transactions/s", 1.0),
            Self::LatencyMedian | Self::LatencyP99 | Self::LatencyP999 => ("us", 1e6),
            Self::ClientCpu | Self::ServerCpu | Self::TransactionCpu => {
                ("us of a core per transaction", 1.0)
            }
            Self::Datagrams => ("datagrams/s", 1.0),
            Self::Delivered => ("% of the datagrams", 100.0),
            Self::MoveTime => ("s", 1.0),
            Self::Downtime => ("ms", 1e3),
            Self::DirtyLimit => ("Gbit/s written", 1e-9),
        }
    }

    /// [`Self::unit`] for a workload: for storage, transactions are I/O.
    pub const fn unit_of(self, workload: Workload) -> (&'static str, f64) {
        match self {
            _ if !workload.is_storage() => self.unit(),
            Self::Transactions => ("I/O per second", 1.0),
            Self::ClientCpu | Self::ServerCpu | Self::TransactionCpu => {
                ("us of a core per I/O", 1.0)
            }
            _ => self.unit(),
        }
    }

    /// The metric's name in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::SenderCpu => "sender CPU per Gbit/s",
            Self::ReceiverCpu => "receiver CPU per Gbit/s",
            Self::Cpu => "CPU per Gbit/s",
            Self::Transactions => "transactions per second",
            Self::LatencyMedian => "median latency",
            Self::LatencyP99 => "p99 latency",
            Self::LatencyP999 => "p99.9 latency",
            Self::ClientCpu => "client CPU per transaction",
            Self::ServerCpu => "server CPU per transaction",
            Self::TransactionCpu => "CPU per transaction",
            Self::Datagrams => "datagrams received per second",
            Self::Delivered => "share of datagrams delivered",
            Self::MoveTime => "time of the move",
            Self::Downtime => "downtime",
            Self::DirtyLimit => "highest dirty rate that converges",
        }
    }

    /// [`Self::words`] for a workload: for storage, transactions are I/O.
    pub const fn words_of(self, workload: Workload) -> &'static str {
        match self {
            _ if !workload.is_storage() => self.words(),
            Self::Transactions => "I/O per second",
            Self::ClientCpu => "initiator CPU per I/O",
            Self::ServerCpu => "target CPU per I/O",
            Self::TransactionCpu => "CPU per I/O",
            _ => self.words(),
        }
    }

    /// Whether the metric is CPU time.
    pub const fn is_cpu(self) -> bool {
        matches!(
            self,
            Self::SenderCpu
                | Self::ReceiverCpu
                | Self::Cpu
                | Self::ClientCpu
                | Self::ServerCpu
                | Self::TransactionCpu
        )
    }

    /// Whether the metric is a time: a latency, the time of a move or a downtime.
    pub const fn is_latency(self) -> bool {
        matches!(
            self,
            Self::LatencyMedian
                | Self::LatencyP99
                | Self::LatencyP999
                | Self::MoveTime
                | Self::Downtime
        )
    }

    /// Whether the metric is a percentile of latencies: a sample with too few transactions beyond it has none.
    pub const fn is_percentile(self) -> bool {
        matches!(
            self,
            Self::LatencyMedian | Self::LatencyP99 | Self::LatencyP999
        )
    }

    /// The metric of the load of that name, in the unit of the variant's description. `None` where the load never ran,
    /// nothing arrived, or too few transactions lie beyond the percentile; for CPU also where several loads shared the
    /// cores, the load ended within [`HostUsage::least_for_cpu_s`], or no busy time was counted (every load takes some:
    /// then the counters are wrong, for example because a hypervisor stole more than the window). CPU per Gbit/s is of
    /// the window without the line where the sample has one, everything else of the window with it. Does not consider
    /// whether the sample is valid.
    pub fn value(self, sample: &Sample, load: &str) -> Option<f64> {
        let result = sample.load(load)?;
        if self.is_cpu() {
            return positive(self.cpu_parts(sample, load)?.figure());
        }
        let per_second = |count: u64| positive(count as f64 / result.seconds);
        match self {
            Self::Throughput => bits_per_second(result),
            Self::Datagrams => per_second(result.datagrams?.received),
            Self::Delivered => result.datagrams?.delivered(),
            Self::Transactions => transactions_per_second(result),
            Self::LatencyMedian => percentile(result.requests.as_ref()?, 50.0),
            Self::LatencyP99 => percentile(result.requests.as_ref()?, 99.0),
            Self::LatencyP999 => percentile(result.requests.as_ref()?, 99.9),
            Self::MoveTime => moved(result).and(positive(move_time(result))),
            Self::DirtyLimit => result.moves.iter().find_map(|one| one.limit?.rate()),
            Self::Downtime => moved(result),
            _ => None,
        }
    }

    /// The end of the load whose host's cores the metric is about.
    const fn end(self) -> End {
        match self {
            Self::SenderCpu | Self::ClientCpu => End::Client,
            // With shared cores both hosts read the same counters, of the whole machine: either of them will do.
            _ => End::Server,
        }
    }

    const fn is_per_gbps(self) -> bool {
        matches!(self, Self::SenderCpu | Self::ReceiverCpu | Self::Cpu)
    }
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}

fn bits_per_second(load: &LoadResult) -> Option<f64> {
    let stream = load.stream.as_ref()?;
    let back = if stream.back_bytes > 0 {
        stream.back_bytes as f64 / load.client_seconds
    } else {
        0.0
    };
    positive((stream.bytes as f64 / load.seconds + back) * 8.0)
}

fn transactions_per_second(load: &LoadResult) -> Option<f64> {
    positive(load.requests.as_ref()?.transactions as f64 / load.client_seconds)
}

/// Duration of the migration, seconds; with `find_limit` of the first move only.
fn move_time(load: &LoadResult) -> f64 {
    let searched = load.moves.iter().find(|one| one.limit.is_some());
    searched.map_or(load.client_seconds, |one| one.total_s)
}

/// The longest downtime of a machine, seconds; `None` where a machine did not move.
fn moved(load: &LoadResult) -> Option<f64> {
    let all = load.moves.iter().all(|one| one.outcome.is_there());
    let times = load.moves.iter().map(|one| one.downtime_s);
    times.reduce(f64::max).filter(|_| all)
}

/// The latency at a percentile, seconds; `None` where too few transactions lie beyond it.
fn percentile(requests: &RequestResult, percent: f64) -> Option<f64> {
    let latency = requests.latency.percentile(percent);
    latency
        .filter(|_| requests.latency.beyond(percent) >= ENOUGH_BEYOND)
        .as_ref()
        .map(Duration::as_secs_f64)
}

/// Median latency of a load, seconds, in the window with its initiator on the target's host; `None` without such a
/// window.
pub fn median_at_target(sample: &Sample, load: &str) -> Option<f64> {
    let mut loads = sample.at_target.as_ref()?.loads.iter();
    percentile(loads.find(|one| one.name == load)?.requests.as_ref()?, 50.0)
}

impl Sample {
    /// The first load that is a stream.
    pub fn stream(&self) -> Option<&LoadResult> {
        self.loads.iter().find(|load| load.stream.is_some())
    }

    /// Throughput of the first stream, bit/s ([`Metric::Throughput`]).
    pub fn throughput(&self) -> Option<f64> {
        bits_per_second(self.stream()?)
    }

    /// The usage of a host by its name, `a` or `b`.
    pub fn host(&self, name: &str) -> Option<&HostUsage> {
        match name {
            "a" => self.sender.as_ref(),
            "b" => self.receiver.as_ref(),
            _ => None,
        }
    }
}
