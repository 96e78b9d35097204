//! Computes the document of `wirecost load` from what both agents counted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use wirecost_model::latency::Latency;
use wirecost_model::load::{NamedLoad, Workload};
use wirecost_model::metric::SampleWithFigures;
use wirecost_model::plan::Cores;
use wirecost_model::sample::{Flow, GENERATOR_BOUND_ADVICE, Invalid, LoadResult, Sample};
use wirecost_model::usage::HostUsage;
use wirecost_stats::{Summary, summary};

use super::document::{
    Cpu, Datagrams, Document, FORMAT, FlowFigures, Latencies, LatencyBound, LoadHostReport,
    LoadReport, Outcome, Requests, Stream,
};
use super::notes::notes;
use super::{ManualLoad, Round};
use crate::marks::{generator_bound, marks};
use crate::window::results;

/// The percentiles that are reported, with their names.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

/// The inputs of [`document`].
pub(super) struct DocumentParts<'a> {
    pub(super) asked: &'a ManualLoad,
    pub(super) started: String,
    pub(super) addresses: [IpAddr; 2],
    pub(super) one_machine: bool,
    /// Notes on messages that the kernel fragments.
    pub(super) fragments: Vec<String>,
    /// At least one round.
    pub(super) rounds: Vec<Round>,
}

pub(super) fn document(made: DocumentParts<'_>) -> Document {
    let asked = made.asked;
    let cores = if made.one_machine {
        Cores::Shared
    } else {
        Cores::Split
    };
    let mut samples: Vec<SampleWithFigures<Sample>> = Vec::new();
    let mut last = (Outcome::Complete, None, Vec::new());
    for (number, round) in (0..).zip(made.rounds) {
        let sample = sample(asked, number, &round, cores);
        samples.push(SampleWithFigures::of(sample, cores));
        last = (round.outcome, round.reason, round.intervals);
    }
    let (outcome, reason, intervals) = last;
    let counted = samples.last().map(|last| &last.sample);
    let usage = [
        counted.and_then(|sample| sample.sender.clone()),
        counted.and_then(|sample| sample.receiver.clone()),
    ];
    let loads: Vec<LoadReport> = asked
        .loads
        .iter()
        .map(|named| load_report(named, &samples, &asked.bounds))
        .collect();
    let cpu = cpu(&usage, made.one_machine, &loads);
    // Only of complete loads: the outcome already tells that others were ended early.
    let window = asked.seconds.filter(|_| outcome == Outcome::Complete);
    let mut notes = notes(&loads, window, &usage, made.one_machine);
    notes.extend(made.fragments);
    let [usage_a, usage_b] = usage;
    let [at_a, at_b] = made.addresses;
    let host = |host, given: &wirecost_model::host::HostAddress, address, usage| LoadHostReport {
        host,
        place: given.place.to_string(),
        address,
        usage,
    };
    Document {
        format: FORMAT,
        program_version: env!("CARGO_PKG_VERSION"),
        started: made.started,
        outcome,
        reason,
        hosts: [
            host("a", &asked.hosts[0], at_a, usage_a),
            host("b", &asked.hosts[1], at_b, usage_b),
        ],
        one_machine: made.one_machine,
        warmup_s: asked.seconds.map_or(0.0, |_| asked.warmup_s),
        asked_s: asked.seconds,
        rounds: asked.rounds,
        loads,
        cpu,
        intervals,
        samples,
        notes,
    }
}

/// A round as a sample of a run with one cell. It has neither proofs nor devices: nothing is set on the hosts.
fn sample(asked: &ManualLoad, number: u32, round: &Round, cores: Cores) -> Sample {
    let [a, b] = &round.measured;
    let both = a.clone().zip(b.clone()).map(|(a, b)| [a, b]);
    let loads = both.and_then(|measured| results(&asked.loads, &measured));
    let loads = loads.unwrap_or_default();
    let [sender, receiver] = [a, b].map(|one| one.as_ref().map(|measured| measured.usage.clone()));
    let marks = match (&sender, &receiver) {
        (Some(a), Some(b)) => marks(a, b, cores)
            .into_iter()
            .chain(generator_bound(&loads, [a, b]))
            .collect(),
        _ => Vec::new(),
    };
    Sample {
        took_s: round.took_s,
        invalid: match round.outcome {
            Outcome::Complete if loads.is_empty() => Some(Invalid::Load(
                "an end did not report its counters".to_owned(),
            )),
            Outcome::Complete => None,
            Outcome::Interrupted => Some(Invalid::Load("interrupted".to_owned())),
            Outcome::Failed => Some(Invalid::Load(round.reason.clone().unwrap_or_default())),
        },
        marks,
        loads,
        sender,
        receiver,
        ..Sample::begun(number, 0, 0, round.started_s)
    }
}

fn load_report(
    named: &NamedLoad,
    samples: &[SampleWithFigures<Sample>],
    bounds: &[Duration],
) -> LoadReport {
    let result = samples.last();
    let result = result.and_then(|last| last.sample.load(&named.name).cloned());
    let spread = spread(named, samples);
    let figures = result.as_ref();
    LoadReport {
        asked: named.clone(),
        figures: spread
            .iter()
            .map(|(figure, summary)| (*figure, summary.mean))
            .collect(),
        spread: (samples.len() > 1).then_some(spread),
        stream: figures.and_then(stream),
        datagrams: figures.and_then(datagrams),
        requests: figures.and_then(|result| requests(result, bounds)),
        flows: figures.map(flows).unwrap_or_default(),
        missed_schedule: figures.and_then(|result| result.missed_schedule(&named.load)),
        generator_bound: figures.and_then(bound),
        result,
    }
}

/// The figures of a load over the valid rounds, or over all rounds where none is valid.
fn spread(
    named: &NamedLoad,
    samples: &[SampleWithFigures<Sample>],
) -> BTreeMap<&'static str, Summary> {
    let any_valid = samples.iter().any(|one| one.sample.invalid.is_none());
    let counts = |one: &&SampleWithFigures<Sample>| one.sample.invalid.is_none() || !any_valid;
    let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for one in samples.iter().filter(counts) {
        for (figure, value) in one.figures.get(&named.name).into_iter().flatten() {
            values.entry(figure).or_default().push(*value);
        }
    }
    let spread = values.into_iter();
    spread
        .filter_map(|(figure, values)| Some((figure, summary(values)?)))
        .collect()
}

/// A count per second; 0 where `seconds` is 0.
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
    // Not known of machines with several connections, and of servers and paths that are not ours.
    let retransmits: Option<u64> = result.flows.iter().map(retransmits).sum();
    Some(Stream {
        gbps: gbps(stream.bytes, result.seconds),
        back_gbps: both.then(|| gbps(stream.back_bytes, result.client_seconds)),
        fairness: stream.fairness,
        retransmits: retransmits.filter(|_| !result.workload.is_udp()),
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
    let share = |bound: &Duration| LatencyBound {
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
    // As in a run's results: with fewer than ten values beyond it, a percentile is close to the maximum.
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

fn cpu(usage: &[Option<HostUsage>; 2], one_machine: bool, loads: &[LoadReport]) -> Option<Cpu> {
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
    let sum = |figure: fn(&LoadReport) -> Option<f64>| -> Option<f64> {
        // `None` where another kind of load runs too: core time cannot be attributed to one of them.
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
    use wirecost_model::end_window::Socket;
    use wirecost_model::fixtures;

    use super::*;

    #[test]
    fn retransmits_are_told_where_every_socket_was_read() {
        let socket = |retransmits| {
            Some(Socket {
                retransmits,
                ..Socket::default()
            })
        };
        let flow = |sender, receiver| Flow {
            bytes: 9,
            back_bytes: 0,
            sender,
            receiver,
        };
        let told = |flows: Vec<Flow>| {
            let result = LoadResult {
                flows,
                ..fixtures::stream(9)
            };
            stream(&result).expect("a stream").retransmits
        };
        let read = || flow(socket(3), socket(1));
        assert_eq!(told(vec![read(), read()]), Some(8));
        assert_eq!(told(vec![read(), flow(socket(3), None)]), None);
        assert_eq!(told(vec![flow(None, None)]), None);
    }

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
