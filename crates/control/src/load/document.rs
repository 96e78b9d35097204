//! The JSON document of `wirecost load`: parameters, counts, and the figures derived from them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Derived, SampleWithFigures};
use wirecost_model::sample::{LoadResult, MissedSchedule, Sample};
use wirecost_model::usage::HostUsage;
use wirecost_stats::Summary;

use super::Interval;

/// Version of the document.
pub const FORMAT: u32 = 1;

/// JSON Schema of the document.
pub const SCHEMA: &str = include_str!("schema.json");

/// How the loads ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// They ran as long as was asked for.
    Complete,
    /// The user interrupted them.
    Interrupted,
    /// A load or an agent failed.
    Failed,
}

/// The result of `wirecost load`.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program.
    pub program_version: &'static str,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// How the last round ended.
    pub outcome: Outcome,
    /// The error message, where the outcome is `failed`.
    pub reason: Option<String>,
    /// Host a, which was given first, and host b.
    pub hosts: [LoadHostReport; 2],
    /// Whether both hosts are one machine and share its processors.
    pub one_machine: bool,
    /// Warm-up before the counted window, seconds.
    pub warmup_s: f64,
    /// Length of the counted window that was asked for, seconds; `null` where the loads' own limits ended them.
    pub asked_s: Option<f64>,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// The loads, in the order in which they were asked for.
    pub loads: Vec<LoadReport>,
    /// Use of the processors in the last round; `null` where a host could not report it, or the window was too short.
    pub cpu: Option<Cpu>,
    /// Intervals of the last round, in order; the last interval may be shorter.
    pub intervals: Vec<Interval>,
    /// One sample for each round, in the form of a run's samples.
    pub samples: Vec<SampleWithFigures<Sample>>,
    /// Notes on the figures.
    pub notes: Vec<String>,
}

/// One of the two hosts.
#[derive(Debug, Clone, Serialize)]
pub struct LoadHostReport {
    /// `a` or `b`, as in the loads' directions.
    pub host: &'static str,
    /// The host's location as given, without the address.
    pub place: String,
    /// The host's data-plane address.
    pub address: IpAddr,
    /// Processors, links and protocols of the host in the last round; `null` where its agent could not report them.
    pub usage: Option<HostUsage>,
}

/// One load. `figures` and `spread` are of all rounds, everything else is of the last round.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// Name and options of the load, as used.
    #[serde(flatten)]
    pub asked: NamedLoad,
    /// Figures by name, which ends in the unit: means over the valid rounds, or over all rounds where none is valid.
    pub figures: Derived,
    /// Spread over the rounds, by figure; `null` for a single round.
    pub spread: Option<BTreeMap<&'static str, Summary>>,
    /// Counts of the load; `null` where an end could not report them. `a` is the first host.
    pub result: Option<LoadResult>,
    /// Figures of a stream; `null` for other loads.
    pub stream: Option<Stream>,
    /// Figures of a stream of datagrams; `null` for other loads.
    pub datagrams: Option<Datagrams>,
    /// Figures of requests and responses; `null` for other loads.
    pub requests: Option<Requests>,
    /// Figures of each flow, in the order of the flows' numbers.
    pub flows: Vec<FlowFigures>,
    /// What the load sent instead of its rate; `null` where it kept the rate or has none.
    #[serde(rename = "behind")]
    pub missed_schedule: Option<MissedSchedule>,
    /// Which end's threads were the limit instead of the path, and what to change; `null` where none were.
    pub generator_bound: Option<String>,
}

/// Figures of a stream.
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    /// What the server's application read, Gbit/s.
    pub gbps: f64,
    /// What the client's application read, Gbit/s; `null` where it only sends.
    pub back_gbps: Option<f64>,
    /// Jain's fairness index over the flows, 0 to 1; `null` where nothing arrived.
    pub fairness: Option<f64>,
    /// TCP segments retransmitted by either end; `null` over UDP, and where not every socket was read.
    pub retransmits: Option<u64>,
}

/// Figures of a stream of datagrams, as the server saw them.
#[derive(Debug, Clone, Serialize)]
pub struct Datagrams {
    /// Datagrams sent per second.
    pub sent_per_s: f64,
    /// Datagrams received per second.
    pub received_per_s: f64,
    /// Share of the datagrams sent that were lost, 0 to 1; `null` where none were sent.
    pub lost_share: Option<f64>,
}

/// Figures of requests and responses.
#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    /// Requests answered in time, per second.
    pub per_s: f64,
    /// Latency from sending a request to its answer; `null` where nothing was answered.
    pub latency: Option<Latencies>,
    /// Delay from the time at which a request was due to its sending; `null` without a rate.
    pub lateness: Option<Latencies>,
    /// Share of answers within each bound that was asked for.
    pub within: Vec<LatencyBound>,
}

/// Latencies in seconds, to three significant digits.
#[derive(Debug, Clone, Serialize)]
pub struct Latencies {
    /// Name of the percentile (`p50` to `p99.99`, ascending) and latency in seconds.
    pub percentiles: Vec<(&'static str, f64)>,
    /// The largest latency, seconds.
    pub max: f64,
}

/// Share of answers that came within a latency bound.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyBound {
    /// The bound, seconds.
    pub bound_s: f64,
    /// Share of the answers, 0 to 1; `null` where nothing was answered.
    pub share: Option<f64>,
}

/// Figures of one flow.
#[derive(Debug, Clone, Serialize)]
pub struct FlowFigures {
    /// What the server's application read, Gbit/s.
    pub gbps: f64,
    /// What the client's application read, Gbit/s.
    pub back_gbps: f64,
    /// TCP segments retransmitted by either end; `null` where the flow is not one TCP connection. The figures below are
    /// of the client's socket.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time at the end, microseconds.
    pub rtt_us: Option<u32>,
    /// Congestion window at the end, segments.
    pub cwnd: Option<u32>,
    /// Sending MSS at the end, bytes.
    pub mss: Option<u32>,
    /// Path MTU that the socket uses, bytes.
    pub pmtu: Option<u32>,
    /// Congestion control of the socket.
    pub congestion: Option<String>,
}

/// Use of the processors: all time that is not idle, whichever program it was spent for.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// Busy cores on host a, or on both hosts where they are one machine.
    pub a_cores: f64,
    /// Busy cores on host b; `null` where both hosts are one machine.
    pub b_cores: Option<f64>,
    /// Percent of one core for each Gbit/s that was read, both hosts together; `null` unless all loads are streams.
    pub percent_per_gbps: Option<f64>,
    /// Core time of both hosts for each transaction, microseconds; `null` unless all loads are requests and responses.
    pub us_per_transaction: Option<f64>,
    /// Share of core time that a hypervisor took (steal), 0 to 1: the larger of both hosts' shares.
    pub steal_fraction: f64,
}
