//! Both ends of a load as one result.

use super::{
    DatagramResult, Flow, Generator, Interval, LoadResult, RequestResult, StreamResult,
    ZeroCopyCounts,
};
use crate::end_window::{End, EndWindow, FlowWindow, Schedule};
use crate::latency::Latency;
use crate::load::{Direction, Limit, NamedLoad, Sending};

impl LoadResult {
    /// From the windows of its ends, a client's and its server's for each pair of guests that ran it.
    ///
    /// Lengths of windows are the longest of their ends: all of them were asked for the same. A server learns only from
    /// its clients that a limit ended a load without a stream that ends: then its window is theirs.
    pub fn join(load: &NamedLoad, pairs: &[(EndWindow, EndWindow)]) -> Self {
        let (name, load) = (load.name.clone(), &load.load);
        let clients = || pairs.iter().map(|(client, _)| client);
        let servers = || pairs.iter().map(|(_, server)| server);
        let longest = |one: f64, window: &EndWindow| one.max(window.seconds);
        let both = load.workload == crate::load::Workload::TcpBidirectional;
        let flows: Vec<Flow> = pairs.iter().flat_map(|pair| flows(pair, both)).collect();
        let responses = load.workload.is_request_response();
        let (seconds, client_seconds) =
            (servers().fold(0.0, longest), clients().fold(0.0, longest));
        let ends_by_itself = matches!(load.limit, Some(Limit::Bytes(_) | Limit::Transactions(_)));
        let unheard = ends_by_itself && !load.workload.is_tcp_stream();
        Self {
            name,
            workload: load.workload,
            direction: load.direction,
            seconds: if unheard { client_seconds } else { seconds },
            client_seconds,
            stream: (!responses).then(|| StreamResult {
                bytes: flows.iter().map(|flow| flow.bytes).sum(),
                back_bytes: flows.iter().map(|flow| flow.back_bytes).sum(),
                fairness: fairness(flows.iter().map(|flow| flow.bytes + flow.back_bytes)),
                intervals: intervals(servers()),
            }),
            requests: responses.then(|| RequestResult {
                transactions: clients().map(|end| end.sum(|counts| counts.received)).sum(),
                timeouts: clients().map(|end| end.sum(|counts| counts.timeouts)).sum(),
                late: clients().map(|end| end.sum(|counts| counts.late)).sum(),
                duplicated: clients()
                    .map(|end| end.sum(|counts| counts.duplicated))
                    .sum(),
                latency: clients().fold(Latency::default(), |mut all, end| {
                    all.merge(&end.latency);
                    all
                }),
                lateness: clients().fold(Latency::default(), |mut all, end| {
                    all.merge(&end.lateness);
                    all
                }),
                intervals: intervals(clients()),
            }),
            datagrams: (!responses && load.workload.is_udp()).then(|| datagrams(pairs)),
            zero_copy: (load.sending == Sending::ZeroCopy).then(|| zero_copy(pairs)),
            flows,
            strays: pairs
                .iter()
                .map(|(client, server)| client.strays + server.strays)
                .sum(),
            generator: [End::Client, End::Server]
                .map(|end| generator(load.direction, end, pairs))
                .into(),
            schedule: clients()
                .filter_map(|end| end.schedule)
                .reduce(|sum, end| Schedule {
                    due: sum.due + end.due,
                    sent: sum.sent + end.sent,
                    backlog_before: sum.backlog_before + end.backlog_before,
                    backlog_after: sum.backlog_after + end.backlog_after,
                }),
            io: pairs
                .first()
                .and_then(|(client, server)| Some(vec![client.io?, server.io?]))
                .unwrap_or_default(),
        }
    }
}

/// Jain's index; `None` where nothing moved.
pub(super) fn fairness(bytes: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in bytes.map(|bytes| bytes as f64) {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

fn flows((client, server): &(EndWindow, EndWindow), both: bool) -> impl Iterator<Item = Flow> {
    let flow = move |(client, server): (&FlowWindow, &FlowWindow)| Flow {
        bytes: server.counts.read_bytes,
        back_bytes: if both { client.counts.read_bytes } else { 0 },
        sender: client.tcp.clone(),
        receiver: server.tcp.clone(),
    };
    client.flows.iter().zip(&server.flows).map(flow)
}

/// Of several guests in sum, each part by its place: they were asked for the same parts.
fn intervals<'a>(ends: impl Iterator<Item = &'a EndWindow>) -> Vec<Interval> {
    let mut all: Vec<Interval> = Vec::new();
    for end in ends {
        for (at, part) in end.intervals.iter().enumerate() {
            match all.get_mut(at) {
                None => all.push(*part),
                Some(sum) => {
                    sum.end_s = sum.end_s.max(part.end_s);
                    sum.bytes += part.bytes;
                    sum.messages += part.messages;
                }
            }
        }
    }
    all
}

fn datagrams(pairs: &[(EndWindow, EndWindow)]) -> DatagramResult {
    let mut result = DatagramResult {
        sent: 0,
        received: 0,
        lost: 0,
        reordered: 0,
        duplicated: 0,
        too_old: 0,
        jitter_s: 0.0,
    };
    let (mut flows, mut jitter_ns) = (0.0, 0.0);
    for (client, server) in pairs {
        result.received += server.sum(|counts| counts.received);
        if let (Some(sent), Some(came)) = (client.datagrams, server.datagrams) {
            result.sent += sent;
            result.lost += sent.cast_signed() - came.cast_signed();
        } else {
            // No end could be asked at the end: by the numbers that came within the window.
            result.sent += client.sum(|counts| counts.sent);
            result.lost += server.flows.iter().map(|flow| flow.lost).sum::<i64>();
        }
        result.reordered += server.sum(|counts| counts.reordered);
        result.duplicated += server.sum(|counts| counts.duplicated);
        result.too_old += server.sum(|counts| counts.too_old);
        jitter_ns += server.sum(|counts| counts.jitter_ns) as f64;
        flows += server.flows.len() as f64;
    }
    if flows > 0.0 {
        result.jitter_s = jitter_ns / flows / 1e9;
    }
    result
}

fn zero_copy(pairs: &[(EndWindow, EndWindow)]) -> ZeroCopyCounts {
    let mut counts = ZeroCopyCounts::default();
    for end in pairs.iter().flat_map(|(client, server)| [client, server]) {
        counts.sends += end.sum(|counts| counts.zero_copy);
        counts.completed += end.sum(|counts| counts.zero_copy_completed);
        counts.copied += end.sum(|counts| counts.zero_copy_copied);
        counts.fallbacks += end.sum(|counts| counts.zero_copy_fallbacks);
    }
    counts
}

fn generator(direction: Direction, end: End, pairs: &[(EndWindow, EndWindow)]) -> Generator {
    let windows = || {
        pairs.iter().map(move |(client, server)| match end {
            End::Client => client,
            End::Server => server,
        })
    };
    Generator {
        host: direction.host_of(end).to_owned(),
        end,
        threads: windows().flat_map(|end| end.threads.clone()).collect(),
        // One guest's threads that waited leave the others' limit unproven.
        bound: !pairs.is_empty() && windows().all(|end| end.generator_bound),
    }
}
