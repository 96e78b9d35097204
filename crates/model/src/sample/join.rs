//! Joins both ends of a load to one result.

use super::{
    DatagramResult, Flow, Generator, LoadResult, RequestResult, StreamResult, ZeroCopyCounts,
};
use crate::end_window::{Counts, End, EndWindow, FlowWindow, Interval, Schedule};
use crate::latency::Latency;
use crate::load::{Direction, Limit, NamedLoad, Sending};
use crate::machine_move::MachineMove;

impl LoadResult {
    /// Joins the windows of a load's ends: a client's and its server's for each pair of guests.
    ///
    /// The length of a window is the longest of its ends, all of which were given the same length. Where a limit other
    /// than a time ends a load other than a TCP stream, the server learns of the end only from its clients: then the
    /// server's window is the clients'.
    pub fn join(load: &NamedLoad, pairs: &[(EndWindow, EndWindow)]) -> Self {
        let (name, load) = (load.name.clone(), &load.load);
        let clients = || pairs.iter().map(|(client, _)| client);
        let servers = || pairs.iter().map(|(_, server)| server);
        let longest = |one: f64, window: &EndWindow| one.max(window.seconds);
        let storage = load.workload.is_storage();
        let both = storage || load.workload == crate::load::Workload::TcpBidirectional;
        let flows: Vec<Flow> = pairs.iter().flat_map(|pair| flows(pair, both)).collect();
        let responses = load.workload.is_request_response();
        let (seconds, client_seconds) =
            (servers().fold(0.0, longest), clients().fold(0.0, longest));
        let asked: Counts = clients().map(EndWindow::counts).sum();
        let ends_by_itself = load.workload.is_migration()
            || matches!(load.limit, Some(Limit::Bytes(_) | Limit::Transactions(_)));
        let unheard = ends_by_itself && !load.workload.is_tcp_stream();
        Self {
            name,
            workload: load.workload,
            direction: load.direction,
            seconds: if unheard { client_seconds } else { seconds },
            client_seconds,
            stream: (!responses || storage).then(|| StreamResult {
                bytes: flows.iter().map(|flow| flow.bytes).sum(),
                back_bytes: flows.iter().map(|flow| flow.back_bytes).sum(),
                fairness: fairness(flows.iter().map(|flow| flow.bytes + flow.back_bytes)),
                intervals: intervals(servers()),
            }),
            requests: responses.then(|| RequestResult {
                transactions: asked.received,
                timeouts: asked.timeouts,
                late: asked.late,
                duplicated: asked.duplicated,
                latency: clients().fold(Latency::default(), |mut all, end| {
                    all.merge(&end.latency);
                    all
                }),
                lateness: clients().fold(Latency::default(), |mut all, end| {
                    all.merge(&end.lateness);
                    all
                }),
                flushes: clients().fold(Latency::default(), |mut all, end| {
                    all.merge(&end.flushes);
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
                .into_iter()
                // A server that is not the load's own has none of the load's threads.
                .filter(|end| end.end == End::Client || load.has_server())
                .collect(),
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
            moves: moves(clients()),
            path: clients().find_map(|end| end.path.clone()),
        }
    }
}

/// The moves of all clients, with the machines numbered consecutively.
fn moves<'a>(clients: impl Iterator<Item = &'a EndWindow>) -> Vec<MachineMove> {
    let all = clients.flat_map(|client| client.moves.iter().cloned());
    let number = |(machine, one): (u32, MachineMove)| MachineMove { machine, ..one };
    (0..).zip(all).map(number).collect()
}

/// Jain's fairness index of the flows' bytes; `None` where nothing arrived.
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

/// Adds up the intervals of several guests by their index: all guests were given the same intervals.
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
    let came: Counts = pairs.iter().map(|(_, server)| server.counts()).sum();
    let (mut sent, mut lost) = (0, 0);
    for (client, server) in pairs {
        if let (Some(marked), Some(came)) = (client.datagrams, server.datagrams) {
            sent += marked;
            lost += marked.cast_signed() - came.cast_signed();
        } else {
            // An end could not be asked after the load: count by the sequence numbers read within the window.
            sent += client.counts().sent;
            lost += server.lost();
        }
    }
    let flows = || pairs.iter().flat_map(|(_, server)| &server.flows);
    let jitter_ns: f64 = flows().map(|flow| flow.counts.jitter_ns as f64).sum();
    DatagramResult {
        sent,
        received: came.received,
        lost,
        reordered: came.reordered,
        duplicated: came.duplicated,
        too_old: came.too_old,
        jitter_s: jitter_ns / flows().count().max(1) as f64 / 1e9,
    }
}

fn zero_copy(pairs: &[(EndWindow, EndWindow)]) -> ZeroCopyCounts {
    let ends = pairs.iter().flat_map(|(client, server)| [client, server]);
    let counts: Counts = ends.map(EndWindow::counts).sum();
    ZeroCopyCounts {
        sends: counts.zero_copy,
        completed: counts.zero_copy_completed,
        copied: counts.zero_copy_copied,
        fallbacks: counts.zero_copy_fallbacks,
    }
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
        // Where one guest's threads waited, the others' are not proven to be the limit.
        bound: !pairs.is_empty() && windows().all(|end| end.generator_bound),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fairness_is_between_an_nth_and_one(values in prop::collection::vec(0u64..1 << 40, 1..50)) {
            prop_assume!(values.iter().any(|value| *value > 0));
            let index = fairness(values.iter().copied()).expect("some moved");
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / values.len() as f64 - 1e-9);
        }
    }

    #[test]
    fn fairness_of_equals_is_one_and_of_one_who_has_all_an_nth() {
        let index = |values: &[u64]| fairness(values.iter().copied());
        assert_eq!(index(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(index(&[0, 8, 0, 0]), Some(0.25));
        assert_eq!(index(&[0, 0]), None);
    }
}
