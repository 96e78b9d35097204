//! The flows of a load: how evenly they share the path, and the state of their sockets.

use serde::Serialize;
use wirecost_model::sample::{Flow, LoadResult, Socket};

/// Flows of a load: medians over the valid samples; `null` where flows have no such figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowsResult {
    /// Number of flows.
    pub count: u32,
    /// Gbit/s of a sample's slowest flow, both directions together where both ends send; of streams alone.
    pub slowest_gbps: Option<f64>,
    /// Gbit/s of a sample's median flow, likewise.
    pub middle_gbps: Option<f64>,
    /// Gbit/s of a sample's fastest flow, likewise.
    pub fastest_gbps: Option<f64>,
    /// Segments retransmitted within a window, all flows and both ends together.
    pub retransmits: Option<f64>,
    /// Smoothed round-trip time of the senders at the window's end, microseconds.
    pub rtt_us: Option<f64>,
    /// Lowest round-trip time that the senders saw, microseconds.
    pub min_rtt_us: Option<f64>,
    /// Congestion window of the senders at the window's end, segments.
    pub cwnd: Option<f64>,
    /// Sending MSS of the senders, bytes.
    pub mss: Option<f64>,
    /// Path MTU that the senders use, bytes.
    pub path_mtu: Option<f64>,
    /// Congestion control of the first sender.
    pub congestion: Option<String>,
}

/// The flows of a load in its valid samples, a column for each figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FlowColumns {
    /// Number of flows in the first sample that has any.
    count: Option<u32>,
    congestion: Option<String>,
    slowest: Vec<f64>,
    middle: Vec<f64>,
    fastest: Vec<f64>,
    retransmits: Vec<f64>,
    /// Figures of every flow's sender, a column for each of `SENDER`.
    senders: [Vec<u32>; SENDER.len()],
}

/// Figures of a sender: smoothed and lowest round-trip time (us), congestion window (segments), MSS and path MTU
/// (bytes).
const SENDER: [fn(&Socket) -> u32; 5] = [
    |socket| socket.rtt_us,
    |socket| socket.min_rtt_us,
    |socket| socket.snd_cwnd,
    |socket| socket.snd_mss,
    |socket| socket.pmtu,
];

impl FlowColumns {
    /// Adds the flows of a sample.
    pub(crate) fn add(&mut self, load: &LoadResult) {
        if load.flows.is_empty() {
            return;
        }
        self.count.get_or_insert(load.flows.len() as u32);
        if load.stream.is_some() {
            let speeds = speeds(load);
            self.slowest.extend(speeds.first());
            self.middle.extend(median(speeds.iter().copied()));
            self.fastest.extend(speeds.last());
        }
        self.retransmits.extend(retransmits(&load.flows));
        for sender in load.flows.iter().filter_map(|flow| flow.sender.as_ref()) {
            if self.congestion.is_none() {
                self.congestion = Some(sender.congestion.clone());
            }
            for (column, figure) in self.senders.iter_mut().zip(SENDER) {
                column.push(figure(sender));
            }
        }
    }

    /// Medians over the columns; `None` where no sample has flows.
    pub(crate) fn result(&self) -> Option<FlowsResult> {
        let speed = |column: &[f64]| median(column.iter().copied());
        let of_sender = |at: usize| median(self.senders[at].iter().copied().map(f64::from));
        Some(FlowsResult {
            count: self.count?,
            slowest_gbps: speed(&self.slowest),
            middle_gbps: speed(&self.middle),
            fastest_gbps: speed(&self.fastest),
            retransmits: speed(&self.retransmits),
            rtt_us: of_sender(0),
            min_rtt_us: of_sender(1),
            cwnd: of_sender(2),
            mss: of_sender(3),
            path_mtu: of_sender(4),
            congestion: self.congestion.clone(),
        })
    }
}

/// Gbit/s of each flow, ascending.
fn speeds(load: &LoadResult) -> Vec<f64> {
    let gbps = |bytes: u64, seconds: f64| {
        if bytes > 0 && seconds > 0.0 {
            bytes as f64 * 8e-9 / seconds
        } else {
            0.0
        }
    };
    let of =
        |flow: &Flow| gbps(flow.bytes, load.seconds) + gbps(flow.back_bytes, load.client_seconds);
    let mut speeds: Vec<f64> = load.flows.iter().map(of).collect();
    speeds.sort_unstable_by(f64::total_cmp);
    speeds
}

/// Retransmitted segments of both ends of all flows; `None` where a flow's sockets were not read.
fn retransmits(flows: &[Flow]) -> Option<f64> {
    let of = |flow: &Flow| {
        let ends = [flow.sender.as_ref()?, flow.receiver.as_ref()?];
        Some(ends.iter().map(|socket| socket.retransmits).sum::<u64>())
    };
    let all: Option<Vec<u64>> = flows.iter().map(of).collect();
    all.filter(|all| !all.is_empty())
        .map(|all| all.iter().sum::<u64>() as f64)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    wirecost_stats::summary(values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use wirecost_model::fixtures;

    use super::*;

    fn of(samples: &[&LoadResult]) -> Option<FlowsResult> {
        let mut columns = FlowColumns::default();
        for sample in samples {
            columns.add(sample);
        }
        columns.result()
    }

    fn load(bytes: [u64; 3], rtt_us: u32) -> LoadResult {
        let socket = |retransmits| Socket {
            retransmits,
            rtt_us,
            congestion: "cubic".into(),
            ..Socket::default()
        };
        let flow = |bytes: u64| Flow {
            bytes,
            back_bytes: 0,
            sender: Some(socket(2)),
            receiver: Some(socket(0)),
        };
        LoadResult {
            name: "bulk".into(),
            flows: bytes.map(flow).into(),
            ..fixtures::stream(bytes.iter().sum())
        }
    }

    #[test]
    fn flows_are_told_by_the_slowest_the_middle_and_the_fastest_of_the_middle_sample() {
        let samples = [
            load([125_000_000, 250_000_000, 500_000_000], 40),
            load([0, 125_000_000, 125_000_000], 60),
            load([250_000_000, 125_000_000, 375_000_000], 50),
        ];
        let all = of(&samples.each_ref()).expect("flows");
        assert_eq!((all.count, all.retransmits), (3, Some(6.0)));
        let speeds = [all.slowest_gbps, all.middle_gbps, all.fastest_gbps];
        assert_eq!(speeds, [Some(1.0), Some(2.0), Some(3.0)]);
        assert_eq!(
            (all.rtt_us, all.congestion.as_deref()),
            (Some(50.0), Some("cubic"))
        );
    }

    #[test]
    fn what_was_not_read_is_not_told() {
        let mut sample = load([1, 2, 3], 40);
        sample.flows[1].sender = None;
        sample.stream = None;
        let all = of(&[&sample]).expect("flows");
        assert_eq!((all.retransmits, all.slowest_gbps), (None, None));
        assert_eq!(of(&[]), None);
    }
}
