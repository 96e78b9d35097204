//! What `wirecost load` reports, as one document: the parameters, the counts, and the figures made of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Derived, SampleWithFigures};
use wirecost_model::sample::{Behind, LoadResult, Sample};
use wirecost_model::usage::HostUsage;
use wirecost_stats::Summary;

use super::Interval;

/// Version of the document.
pub const FORMAT: u32 = 1;

/// JSON Schema of the document.
pub const SCHEMA: &str = include_str!("schema.json");

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As was asked for.
    Complete,
    /// The user ended it.
    Interrupted,
    /// A load or an agent broke.
    Failed,
}

/// What came of loads by hand.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program.
    pub program_version: &'static str,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What broke, in words.
    pub reason: Option<String>,
    /// Host a, which was given first, and host b.
    pub hosts: [LoadHostReport; 2],
    /// Whether both are one machine: then its processors are those of both.
    pub one_machine: bool,
    /// Seconds from the start that were not counted.
    pub warmup_s: f64,
    /// Seconds that were to be counted; `null` where the loads' own limits ended them.
    pub asked_s: Option<f64>,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// Each load.
    pub loads: Vec<LoadReport>,
    /// What the processors did for it in the last round; `null` where a host could not tell, or the window was too short.
    pub cpu: Option<Cpu>,
    /// Of the last round, in order; the last one may be shorter.
    pub intervals: Vec<Interval>,
    /// Each round, in the form of a run's samples.
    pub samples: Vec<SampleWithFigures<Sample>>,
    /// What has to be known about the figures, in words.
    pub notes: Vec<String>,
}

/// One of the two hosts.
#[derive(Debug, Clone, Serialize)]
pub struct LoadHostReport {
    /// `a` or `b`, as in loads' directions.
    pub host: &'static str,
    /// As it was given, without the address.
    pub place: String,
    /// The address of its data plane.
    pub address: IpAddr,
    /// What it counted in the last round; `null` where it could not tell.
    pub usage: Option<HostUsage>,
}

/// One load; what is not of all rounds is of the last one.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// Every option, as it was used.
    #[serde(flatten)]
    pub asked: NamedLoad,
    /// Figures with their units: the means of the rounds that went to their end, else of what there is.
    pub figures: Derived,
    /// How the rounds spread, by figure; `null` of a single round.
    pub spread: Option<BTreeMap<&'static str, Summary>>,
    /// What was counted; `null` where an end could not tell. `a` is the first host.
    pub result: Option<LoadResult>,
    /// Of streams.
    pub stream: Option<Stream>,
    /// Of streams of datagrams.
    pub datagrams: Option<Datagrams>,
    /// Of requests and responses.
    pub requests: Option<Requests>,
    /// Each flow, by its number.
    pub flows: Vec<FlowFigures>,
    /// Where it did not keep to its rate, what it sent instead.
    pub behind: Option<Behind>,
    /// What to change, where the load's own threads were the limit and not the path.
    pub generator_bound: Option<String>,
}

/// Figures of a stream.
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    /// What the server's application read, Gbit/s.
    pub gbps: f64,
    /// What the client's application read, Gbit/s; `null` where it only sends.
    pub back_gbps: Option<f64>,
    /// Jain's index over the flows; `null` where nothing arrived.
    pub fairness: Option<f64>,
    /// Segments sent again by either end; `null` over UDP.
    pub retransmits: Option<u64>,
}

/// Figures of a stream of datagrams, as the server saw them.
#[derive(Debug, Clone, Serialize)]
pub struct Datagrams {
    /// Sent per second.
    pub sent_per_s: f64,
    /// Received per second.
    pub received_per_s: f64,
    /// Lost, of those that were sent; a fraction. `null` where none were.
    pub lost_share: Option<f64>,
}

/// Figures of requests and responses.
#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    /// Answered in time, per second.
    pub per_s: f64,
    /// Latencies, from sent to answered; `null` where nothing was answered.
    pub latency: Option<Latencies>,
    /// How late requests were sent, from due to sent; `null` without a rate.
    pub lateness: Option<Latencies>,
    /// Shares below the bounds that were asked for.
    pub within: Vec<LatencyBound>,
}

/// Latencies in seconds, to three significant digits.
#[derive(Debug, Clone, Serialize)]
pub struct Latencies {
    /// Percentile and latency, ascending: `p50` to `p99.99`.
    pub percentiles: Vec<(&'static str, f64)>,
    /// The largest.
    pub max: f64,
}

/// How many answers came within a bound.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyBound {
    /// Seconds.
    pub bound_s: f64,
    /// A fraction; `null` where nothing was answered.
    pub share: Option<f64>,
}

/// Figures of one flow.
#[derive(Debug, Clone, Serialize)]
pub struct FlowFigures {
    /// What the server's application read, Gbit/s.
    pub gbps: f64,
    /// What the client's application read, Gbit/s.
    pub back_gbps: f64,
    /// Segments sent again, by either end; the rest is the client's socket. `null` where it is not one connection.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time at the end, microseconds.
    pub rtt_us: Option<u32>,
    /// Congestion window at the end, segments.
    pub cwnd: Option<u32>,
    /// Sending MSS at the end, bytes.
    pub mss: Option<u32>,
    /// Path MTU that the socket uses, bytes.
    pub pmtu: Option<u32>,
    /// Congestion control.
    pub congestion: Option<String>,
}

/// What the processors did: all that is not idle, whoever it was for.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// Cores busy on host a; of both where they are one machine.
    pub a_cores: f64,
    /// Cores busy on host b; `null` where they are one machine.
    pub b_cores: Option<f64>,
    /// Streams alone: percent of one core for each Gbit/s that was read, both hosts together.
    pub percent_per_gbps: Option<f64>,
    /// Requests and responses alone: core time of both hosts for each transaction, microseconds.
    pub us_per_transaction: Option<f64>,
    /// The largest share of either host's core time that a hypervisor took.
    pub steal_fraction: f64,
}
