//! What came of loads by hand, as one document: what was asked, what was counted, and the figures made of it.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use wirecost_agent::protocol::Measured;
use wirecost_model::latency::Latency;
use wirecost_model::load::{NamedLoad, Workload};
use wirecost_model::sample::{Behind, Flow, GENERATOR_BOUND_ADVICE, LoadResult};
use wirecost_model::usage::HostUsage;

use super::notes::notes;
use super::{ByHand, Interval};
use crate::window::results;

/// Version of the document.
pub const FORMAT: u32 = 1;

/// The percentiles that are told, with their names.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

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
    pub hosts: [HostSaid; 2],
    /// Whether both are one machine: then its processors are those of both.
    pub one_machine: bool,
    /// Seconds from the start that were not counted.
    pub warmup_s: f64,
    /// Seconds that were to be counted; `null` where the loads' own limits ended them.
    pub asked_s: Option<f64>,
    /// Each load.
    pub loads: Vec<LoadSaid>,
    /// What the processors did for it; `null` where a host could not tell, or the window was too short.
    pub cpu: Option<Cpu>,
    /// In order; the last one may be shorter.
    pub intervals: Vec<Interval>,
    /// What has to be known about the figures, in words.
    pub notes: Vec<String>,
}

/// One of the two hosts.
#[derive(Debug, Clone, Serialize)]
pub struct HostSaid {
    /// `a` or `b`, as in loads' directions.
    pub host: &'static str,
    /// As it was given, without the address.
    pub place: String,
    /// The address of its data plane.
    pub address: IpAddr,
    /// What it counted; `null` where it could not tell.
    pub usage: Option<HostUsage>,
}

/// One load.
#[derive(Debug, Clone, Serialize)]
pub struct LoadSaid {
    /// Every option, as it was used.
    #[serde(flatten)]
    pub asked: NamedLoad,
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
    pub within: Vec<Within>,
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
pub struct Within {
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

/// What a document is made of.
pub(super) struct Made<'a> {
    pub(super) asked: &'a ByHand,
    pub(super) started: String,
    pub(super) addresses: [IpAddr; 2],
    pub(super) one_machine: bool,
    pub(super) outcome: Outcome,
    pub(super) reason: Option<String>,
    pub(super) measured: [Option<Measured>; 2],
    pub(super) intervals: Vec<Interval>,
}

pub(super) fn document(made: Made<'_>) -> Document {
    let asked = made.asked;
    let [a, b] = made.measured;
    let usage = [&a, &b].map(|one| one.as_ref().map(|measured| measured.usage.clone()));
    let both = a.zip(b).map(|(a, b)| [a, b]);
    let results = both.and_then(|measured| results(&asked.loads, &measured));
    let loads: Vec<LoadSaid> = match results {
        Some(results) => asked
            .loads
            .iter()
            .zip(results)
            .map(|(named, result)| said(named, Some(result), &asked.bounds))
            .collect(),
        None => asked
            .loads
            .iter()
            .map(|named| said(named, None, &asked.bounds))
            .collect(),
    };
    let cpu = cpu(&usage, made.one_machine, &loads);
    // One that was broken off is told by its outcome.
    let window = asked.seconds.filter(|_| made.outcome == Outcome::Complete);
    let notes = notes(&loads, window, &usage, made.one_machine);
    let [usage_a, usage_b] = usage;
    let [at_a, at_b] = made.addresses;
    let host = |host, given: &wirecost_model::host::HostAddress, address, usage| HostSaid {
        host,
        place: given.place.to_string(),
        address,
        usage,
    };
    Document {
        format: FORMAT,
        program_version: env!("CARGO_PKG_VERSION"),
        started: made.started,
        outcome: made.outcome,
        reason: made.reason,
        hosts: [
            host("a", &asked.hosts[0], at_a, usage_a),
            host("b", &asked.hosts[1], at_b, usage_b),
        ],
        one_machine: made.one_machine,
        warmup_s: asked.seconds.map_or(0.0, |_| asked.warmup_s),
        asked_s: asked.seconds,
        loads,
        cpu,
        intervals: made.intervals,
        notes,
    }
}

fn said(named: &NamedLoad, result: Option<LoadResult>, bounds: &[Duration]) -> LoadSaid {
    let figures = result.as_ref();
    LoadSaid {
        asked: named.clone(),
        stream: figures.and_then(stream),
        datagrams: figures.and_then(datagrams),
        requests: figures.and_then(|result| requests(result, bounds)),
        flows: figures.map(flows).unwrap_or_default(),
        behind: figures.and_then(|result| result.behind_schedule(&named.load)),
        generator_bound: figures.and_then(bound),
        result,
    }
}

/// A count per second; of no time, nothing.
fn per_s(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

fn gbps(bytes: u64, seconds: f64) -> f64 {
    per_s(bytes as f64 * 8.0 / 1e9, seconds)
}

fn stream(result: &LoadResult) -> Option<Stream> {
    let stream = result.stream.as_ref()?;
    let both = matches!(
        result.workload,
        Workload::TcpBidirectional | Workload::Storage
    );
    let retransmits = result
        .flows
        .iter()
        .map(|flow| retransmits(flow).unwrap_or(0));
    Some(Stream {
        gbps: gbps(stream.bytes, result.seconds),
        back_gbps: both.then(|| gbps(stream.back_bytes, result.client_seconds)),
        fairness: stream.fairness,
        retransmits: (!result.workload.is_udp()).then(|| retransmits.sum()),
    })
}

fn retransmits(flow: &Flow) -> Option<u64> {
    let ends = [flow.sender.as_ref()?, flow.receiver.as_ref()?];
    Some(ends.iter().map(|socket| socket.retransmits).sum())
}

fn datagrams(result: &LoadResult) -> Option<Datagrams> {
    let counted = result.datagrams?;
    Some(Datagrams {
        sent_per_s: per_s(counted.sent as f64, result.client_seconds),
        received_per_s: per_s(counted.received as f64, result.seconds),
        lost_share: counted.delivered().map(|delivered| 1.0 - delivered),
    })
}

fn requests(result: &LoadResult, bounds: &[Duration]) -> Option<Requests> {
    let counted = result.requests.as_ref()?;
    let share = |bound: &Duration| Within {
        bound_s: bound.as_secs_f64(),
        share: counted.latency.share_within(*bound),
    };
    Some(Requests {
        per_s: per_s(counted.transactions as f64, result.client_seconds),
        latency: latencies(&counted.latency),
        lateness: latencies(&counted.lateness),
        within: bounds.iter().map(share).collect(),
    })
}

fn latencies(latency: &Latency) -> Option<Latencies> {
    let at = |percent| latency.percentile(percent).map(|time| time.as_secs_f64());
    let named = |(name, percent)| Some((name, at(percent)?));
    // As in results: of fewer than leave ten beyond it a percentile is nearly the maximum by another name.
    let known = |percent: f64| {
        percent <= 50.0 || latency.count() as f64 * (100.0 - percent) >= 1000.0 - 1e-6
    };
    let known = PERCENTILES
        .into_iter()
        .filter(|(_, percent)| known(*percent));
    Some(Latencies {
        percentiles: known.map(named).collect::<Option<_>>()?,
        max: latency.max()?.as_secs_f64(),
    })
}

fn flows(result: &LoadResult) -> Vec<FlowFigures> {
    let figures = |flow: &Flow| FlowFigures {
        gbps: gbps(flow.bytes, result.seconds),
        back_gbps: gbps(flow.back_bytes, result.client_seconds),
        retransmits: retransmits(flow),
        rtt_us: flow.sender.as_ref().map(|socket| socket.rtt_us),
        cwnd: flow.sender.as_ref().map(|socket| socket.snd_cwnd),
        mss: flow.sender.as_ref().map(|socket| socket.snd_mss),
        pmtu: flow.sender.as_ref().map(|socket| socket.pmtu),
        congestion: flow.sender.as_ref().map(|socket| socket.congestion.clone()),
    };
    result.flows.iter().map(figures).collect()
}

fn bound(result: &LoadResult) -> Option<String> {
    let bound: Vec<String> = result
        .generator
        .iter()
        .filter(|generator| generator.bound)
        .map(|generator| format!("{} on host {}", generator.end.words(), generator.host))
        .collect();
    (!bound.is_empty()).then(|| format!("{}: {GENERATOR_BOUND_ADVICE}", bound.join(" and ")))
}

fn cpu(usage: &[Option<HostUsage>; 2], one_machine: bool, loads: &[LoadSaid]) -> Option<Cpu> {
    let [Some(a), Some(b)] = usage else {
        return None;
    };
    let (a_cores, b_cores) = (a.busy_cores(), b.busy_cores());
    let window_s = a.window_s.min(b.window_s);
    if !(a_cores.is_finite() && b_cores.is_finite()) || window_s < a.least_for_cpu_s() {
        return None;
    }
    let b_cores = (!one_machine).then_some(b_cores);
    let cores = a_cores + b_cores.unwrap_or(0.0);
    let sum = |figure: fn(&LoadSaid) -> Option<f64>| -> Option<f64> {
        // Where loads of both kinds run, it is not known what the time was for.
        loads
            .iter()
            .map(figure)
            .sum::<Option<f64>>()
            .filter(|sum| *sum > 0.0)
    };
    let gbps = sum(|load| {
        let stream = load.stream.as_ref()?;
        Some(stream.gbps + stream.back_gbps.unwrap_or(0.0))
    });
    let transactions = sum(|load| Some(load.requests.as_ref()?.per_s));
    Some(Cpu {
        a_cores,
        b_cores,
        percent_per_gbps: gbps.map(|gbps| cores * 100.0 / gbps),
        us_per_transaction: transactions.map(|per_s| cores * 1e6 / per_s),
        steal_fraction: a.steal_fraction().max(b.steal_fraction()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_end_where_fewer_than_ten_are_beyond_them() {
        let told = |count: u64| {
            let latencies = latencies(&Latency::from_buckets([(7, count)]))?;
            Some(latencies.percentiles.last()?.0)
        };
        assert_eq!(told(0), None);
        assert_eq!(told(1), Some("p50"));
        assert_eq!(told(99), Some("p50"));
        assert_eq!(told(100), Some("p90"));
        assert_eq!(told(99_999), Some("p99.9"));
        assert_eq!(told(100_000), Some("p99.99"));
    }
}
