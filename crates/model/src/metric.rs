//! What is derived from a sample: the figures that tables and verdicts are about.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cell::Experiment;
use crate::end_window::End;
use crate::load::Workload;
use crate::plan::Cores;
use crate::sample::{LoadResult, RequestResult, Sample, Socket};
use crate::usage::HostUsage;

/// A figure of one load that verdicts are given about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bits per second that the receiving application read; of both where both send.
    Throughput,
    /// Percent of one core of the sending host per Gbit/s.
    SenderCpu,
    /// Percent of one core of the receiving host per Gbit/s.
    ReceiverCpu,
    /// Percent of one core of the machine per Gbit/s, where the hosts share their cores.
    Cpu,
    /// Transactions per second.
    Transactions,
    /// The latency that half of the transactions did not exceed, seconds.
    LatencyMedian,
    /// The latency that 99 % of the transactions did not exceed, seconds.
    LatencyP99,
    /// The latency that 99.9 % of the transactions did not exceed, seconds.
    LatencyP999,
    /// Microseconds of core time of the asking host per transaction.
    ClientCpu,
    /// Microseconds of core time of the answering host per transaction.
    ServerCpu,
    /// Microseconds of core time of the machine per transaction, where the hosts share their cores.
    TransactionCpu,
    /// Datagrams per second that the receiving application read.
    Datagrams,
    /// Share of the datagrams sent that arrived, 0 to 1. It and not the share lost is compared: where nothing is lost
    /// there is no ratio to nothing.
    Delivered,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// Transactions beyond a percentile below which it is the tale of a few of them.
const ENOUGH_BEYOND: f64 = 10.0;

impl Metric {
    /// The metrics of a workload, the main one first. CPU of sender and receiver are told apart only where their
    /// cores are.
    pub const fn of(workload: Workload, cores: Cores) -> &'static [Self] {
        use Metric::{
            ClientCpu, Cpu, Datagrams, Delivered, LatencyMedian, LatencyP99, LatencyP999,
            ReceiverCpu, SenderCpu, ServerCpu, Throughput, TransactionCpu, Transactions,
        };
        match (workload, cores) {
            (Workload::TcpStream | Workload::TcpBidirectional, Cores::Split) => {
                &[Throughput, SenderCpu, ReceiverCpu]
            }
            (Workload::TcpStream | Workload::TcpBidirectional, Cores::Shared) => &[Throughput, Cpu],
            (Workload::UdpStream, Cores::Split) => {
                &[Throughput, Datagrams, Delivered, SenderCpu, ReceiverCpu]
            }
            (Workload::UdpStream, Cores::Shared) => &[Throughput, Datagrams, Delivered, Cpu],
            (Workload::TcpRr | Workload::TcpCrr | Workload::UdpRr, Cores::Split) => &[
                Transactions,
                LatencyMedian,
                LatencyP99,
                LatencyP999,
                ClientCpu,
                ServerCpu,
            ],
            (Workload::TcpRr | Workload::TcpCrr | Workload::UdpRr, Cores::Shared) => &[
                Transactions,
                LatencyMedian,
                LatencyP99,
                LatencyP999,
                TransactionCpu,
            ],
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Direction {
        match self {
            Self::Throughput | Self::Transactions | Self::Datagrams | Self::Delivered => {
                Direction::Higher
            }
            Self::SenderCpu
            | Self::ReceiverCpu
            | Self::Cpu
            | Self::ClientCpu
            | Self::ServerCpu
            | Self::TransactionCpu
            | Self::LatencyMedian
            | Self::LatencyP99
            | Self::LatencyP999 => Direction::Lower,
        }
    }

    /// Whether it is what gets through, and not what that takes.
    pub const fn is_speed(self) -> bool {
        !self.is_cpu() && !self.is_latency()
    }

    /// The unit in which people read it, and what the value is multiplied with for it.
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
        }
    }

    /// In words, for a verdict's sentence.
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
        }
    }

    /// Whether it is about processors.
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

    /// Whether it is about how long something takes.
    pub const fn is_latency(self) -> bool {
        matches!(
            self,
            Self::LatencyMedian | Self::LatencyP99 | Self::LatencyP999
        )
    }

    /// The figure of the sample's load of that name, `None` where it has none: it never ran, nothing arrived, too few
    /// transactions for a percentile, or, of processors, several loads shared them. Says nothing about validity.
    pub fn value(self, sample: &Sample, load: &str) -> Option<f64> {
        let result = sample.load(load)?;
        if self.is_cpu() {
            return self.cpu(sample, result);
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
            _ => None,
        }
    }

    fn cpu(self, sample: &Sample, load: &LoadResult) -> Option<f64> {
        // What several loads used together belongs to none of them.
        if sample.loads.len() != 1 {
            return None;
        }
        let host = |end| sample.host(load.direction.host_of(end));
        let cores = match self {
            Self::SenderCpu | Self::ClientCpu => host(End::Client)?.busy_cores(),
            // With shared cores both hosts read the same counters: one of them is the machine.
            _ => host(End::Server)?.busy_cores(),
        };
        match self {
            Self::SenderCpu | Self::ReceiverCpu | Self::Cpu => {
                Some(cores * 100.0 / (bits_per_second(load)? / 1e9))
            }
            _ => Some(cores * 1e6 / transactions_per_second(load)?),
        }
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

/// In seconds.
fn percentile(requests: &RequestResult, percent: f64) -> Option<f64> {
    let beyond = (1.0 - percent / 100.0) * requests.latency.count() as f64;
    let latency = requests.latency.percentile(percent);
    latency
        .filter(|_| beyond >= ENOUGH_BEYOND)
        .as_ref()
        .map(Duration::as_secs_f64)
}

/// One metric of one load: what a column of a table, or a verdict, is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Figure {
    /// The load's name.
    pub load: String,
    /// What of it.
    pub metric: Metric,
}

impl Figure {
    /// Of one sample, see [`Metric::value`].
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        self.metric.value(sample, &self.load)
    }
}

impl Experiment {
    /// Every metric of every load, in the order of the cells' loads. CPU is a figure of a load only where some cell
    /// runs it alone: what several at once used belongs to none of them.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures: Vec<Figure> = Vec::new();
        for cell in &self.cells {
            for named in &cell.loads {
                let alone = cell.loads.len() == 1;
                let metrics = Metric::of(named.load.workload, self.plan.cores);
                let these = metrics
                    .iter()
                    .filter(|metric| alone || !metric.is_cpu())
                    .map(|&metric| Figure {
                        load: named.name.clone(),
                        metric,
                    });
                let new: Vec<Figure> = these.filter(|one| !figures.contains(one)).collect();
                figures.extend(new);
            }
        }
        figures
    }
}

impl Sample {
    /// The first of its loads that is a stream.
    pub fn stream(&self) -> Option<&LoadResult> {
        self.loads.iter().find(|load| load.stream.is_some())
    }

    /// Bits per second of that one ([`Metric::Throughput`]).
    pub fn throughput(&self) -> Option<f64> {
        bits_per_second(self.stream()?)
    }

    /// A host's processors, links and counters, by its name `a` or `b`.
    pub fn host(&self, name: &str) -> Option<&HostUsage> {
        match name {
            "a" => self.sender.as_ref(),
            "b" => self.receiver.as_ref(),
            _ => None,
        }
    }

    /// The TCP sockets at the host of that name.
    fn sockets(&self, host: &str) -> impl Iterator<Item = &Socket> {
        self.loads.iter().flat_map(move |load| {
            let client = load.direction.host_of(End::Client) == host;
            load.flows.iter().filter_map(move |flow| {
                if client {
                    flow.sender.as_ref()
                } else {
                    flow.receiver.as_ref()
                }
            })
        })
    }

    /// Whether every TCP flow is one connection whose socket was read: not those of `tcp-crr`.
    fn knows_its_sockets(&self) -> bool {
        let tcp = self.loads.iter().filter(|load| !load.workload.is_udp());
        tcp.flat_map(|load| &load.flows)
            .all(|flow| flow.sender.is_some() && flow.receiver.is_some())
    }
}

/// Frames on the wire per second, both directions: segments out of both guests, retransmits and
/// pure ACKs included, and what was not TCP. A datagram counts once, whatever it was cut into.
pub fn wire_frames_per_second(sample: &Sample) -> Option<f64> {
    if sample.loads.is_empty() {
        return None;
    }
    let exact = sample.knows_its_sockets();
    let one = |name: &str| {
        let usage = sample.host(name)?;
        let other = (usage.guest.udp_out + usage.guest.icmp_out) as f64 / usage.window_s;
        let tcp = if exact {
            sample.sockets_per_second(name)
        } else {
            (usage.guest.tcp_out + usage.guest.tcp_retransmitted) as f64 / usage.window_s
        };
        Some(tcp + other)
    };
    Some(one("a")? + one("b")? + beyond_super_packets(sample)?)
}

impl Sample {
    /// Segments sent by the sockets at a host, per second of each load's window there.
    fn sockets_per_second(&self, host: &str) -> f64 {
        let of_load = |load: &LoadResult| {
            let client = load.direction.host_of(End::Client) == host;
            let sent = load.flows.iter().filter_map(|flow| {
                let socket = if client { &flow.sender } else { &flow.receiver };
                socket.as_ref().map(|socket| socket.segs_out)
            });
            let seconds = if client {
                load.client_seconds
            } else {
                load.seconds
            };
            sent.sum::<u64>() as f64 / seconds
        };
        self.loads.iter().map(of_load).sum()
    }
}

/// With `UDP_SEGMENT` the kernel counts what was handed over as one as one datagram: how many more there were.
fn beyond_super_packets(sample: &Sample) -> Option<f64> {
    let more = |load: &LoadResult| {
        let datagrams = load.datagrams.as_ref()?;
        let usage = sample.host(load.direction.host_of(End::Client))?;
        let sent = datagrams.sent as f64 / load.client_seconds;
        let counted = usage.guest.udp_out as f64 / usage.window_s;
        Some((sent - counted).max(0.0))
    };
    let streams = sample.loads.iter().filter(|load| load.datagrams.is_some());
    streams.map(more).sum()
}

/// Packets per second as the receiving guest's TCP handled them: fewer than frames where something aggregates.
/// `None` where no load is TCP.
pub fn stack_packets_per_second(sample: &Sample) -> Option<f64> {
    let tcp = sample.loads.iter().find(|load| !load.workload.is_udp());
    let host = match tcp {
        Some(load) => load.direction.host_of(End::Server),
        None if sample.loads.is_empty() => "b",
        None => return None,
    };
    let receiver = sample.host(host)?;
    Some(receiver.guest.tcp_in as f64 / receiver.window_s)
}

/// Segments on the wire per super-packet that the receiving guest's TCP handled; 1 where nothing aggregates.
pub fn segments_per_packet(sample: &Sample) -> Option<f64> {
    let load = sample.loads.iter().find(|load| !load.workload.is_udp())?;
    let host = load.direction.host_of(End::Server);
    let receiver = sample.host(host)?;
    let segments: u64 = sample.sockets(host).map(|socket| socket.segs_in).sum();
    let known = sample.knows_its_sockets() && receiver.guest.tcp_in > 0;
    known.then(|| segments as f64 / receiver.guest.tcp_in as f64)
}

/// Segments retransmitted within the window by either end; `None` where not every TCP socket was read.
pub fn retransmits(sample: &Sample) -> Option<u64> {
    let tcp = sample.loads.iter().any(|load| !load.workload.is_udp());
    let both = sample.sockets("a").chain(sample.sockets("b"));
    (tcp && sample.knows_its_sockets()).then(|| both.map(|socket| socket.retransmits).sum())
}
