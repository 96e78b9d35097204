//! What one end did between two snapshots: the figures.

use std::time::Instant;

use wirecost_model::end_window::{Counts, EndWindow, FlowWindow, Io, Schedule, ThreadWindow};
use wirecost_model::latency::Latency;
use wirecost_model::sample::{Interval, Socket};

use crate::busy::{between, generator_bound};
use crate::error::TrafficError;
use crate::snapshot::{Asked, FlowSnapshot, Snapshot, TcpState};

/// What one end did between two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its length in seconds.
    pub seconds: f64,
    /// By flow index.
    pub flows: Vec<FlowWindow>,
    /// Of the transactions that ended in it, at the client.
    pub latency: Latency,
    /// How late the requests that were sent in it were, at a client with a rate.
    pub lateness: Latency,
    /// At a client with a rate.
    pub schedule: Option<Schedule>,
    /// How this end reads and writes.
    pub io: Io,
    /// The load's own threads.
    pub threads: Vec<ThreadWindow>,
    /// What was dropped in it since it was none of this load's.
    pub strays: u32,
}

impl Window {
    /// # Errors
    /// A flow that was over by the later snapshot had a shorter window than the others; snapshots of different loads.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Result<Self, TrafficError> {
        for (flow, snapshot) in (0..).zip(&after.flows) {
            if snapshot.ended.is_some() {
                return Err(TrafficError::EndedEarly {
                    flow,
                    bytes: snapshot.bytes,
                });
            }
        }
        Self::until_end(before, after)
    }

    /// Likewise, of flows that may have begun or ended within, as by a limit of bytes or transactions: the window begins
    /// with them, and where all of them have ended it is over with the last one.
    ///
    /// # Errors
    /// Snapshots of different loads.
    pub fn until_end(before: &Snapshot, after: &Snapshot) -> Result<Self, TrafficError> {
        if before.flows.len() != after.flows.len() || before.threads.len() != after.threads.len() {
            return Err(TrafficError::Mismatch {
                before: before.flows.len(),
                after: after.flows.len(),
            });
        }
        let ends: Option<Vec<Instant>> = after.flows.iter().map(|flow| flow.ended).collect();
        let last = ends.and_then(|ends| ends.into_iter().max());
        // Where it was before this window there is nothing to divide by it.
        let last = last.filter(|last| (before.at..after.at).contains(last));
        let end = last.unwrap_or(after.at);
        let start = after.started.map_or(before.at, |at| at.max(before.at));
        let seconds = end.saturating_duration_since(start).as_secs_f64();
        let thread = |(before, after)| between(before, after, seconds);
        Ok(Self {
            seconds,
            flows: before.flows.iter().zip(&after.flows).map(flow).collect(),
            latency: after.latency.since(&before.latency),
            lateness: after.lateness.since(&before.lateness),
            schedule: before
                .asked
                .zip(after.asked)
                .map(|(before, after)| schedule(before, after)),
            io: after.io,
            threads: before
                .threads
                .iter()
                .zip(&after.threads)
                .map(thread)
                .collect(),
            strays: after.strays.saturating_sub(before.strays),
        })
    }

    /// The sum of one figure over all flows.
    pub fn sum(&self, figure: impl Fn(&Counts) -> u64) -> u64 {
        self.flows.iter().map(|flow| figure(&flow.counts)).sum()
    }

    /// Datagrams lost, all flows; see [`FlowWindow::lost`].
    pub fn lost(&self) -> i64 {
        self.flows.iter().map(|flow| flow.lost).sum()
    }

    /// Jain's fairness index over the flows' bytes, both ways: 1 where all have the same, 1/n where one has all
    /// (Jain, Chiu, Hawe, DEC-TR-301). `None` where nothing moved.
    pub fn fairness(&self) -> Option<f64> {
        let bytes = |flow: &FlowWindow| (flow.counts.sent_bytes + flow.counts.read_bytes) as f64;
        fairness(self.flows.iter().map(bytes))
    }

    /// Whether the load's own threads were the limit: none of them ever waited for its sockets.
    pub fn generator_bound(&self) -> bool {
        generator_bound(&self.threads)
    }

    /// As it travels and is recorded, with figures in parts of it.
    pub fn record(self, intervals: Vec<Interval>) -> EndWindow {
        EndWindow {
            generator_bound: self.generator_bound(),
            seconds: self.seconds,
            flows: self.flows,
            latency: self.latency,
            threads: self.threads,
            strays: self.strays,
            intervals,
            datagrams: None,
            io: Some(self.io),
            lateness: self.lateness,
            schedule: self.schedule,
        }
    }
}

/// What a rate asked for between two instants. What was sent ahead of it is no backlog.
fn schedule(before: Asked, after: Asked) -> Schedule {
    let backlog = |asked: Asked| (asked.due - asked.sent).max(0.0);
    Schedule {
        due: after.due - before.due,
        sent: after.sent - before.sent,
        backlog_before: backlog(before),
        backlog_after: backlog(after),
    }
}

fn fairness(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// What each flow gained between two snapshots of one end, by flow index: the application's bytes, and the socket's
/// counters with its state at the later one.
///
/// # Errors
/// As of [`Window::between`]; flows that are no TCP connections have no such sockets, and are left out.
pub fn flow_deltas(
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<(u64, Socket)>, TrafficError> {
    let window = Window::between(before, after)?;
    let bytes = |flow: &FlowWindow| flow.counts.sent_bytes + flow.counts.read_bytes;
    Ok(window
        .flows
        .into_iter()
        .filter_map(|flow| {
            let bytes = bytes(&flow);
            Some((bytes, flow.tcp?))
        })
        .collect())
}

fn flow((before, after): (&FlowSnapshot, &FlowSnapshot)) -> FlowWindow {
    let counts = gained(&before.counts, &after.counts);
    let tcp = before.tcp.as_ref().zip(after.tcp.as_ref());
    // Only who counts datagrams can miss any.
    let lost = if after.counts.expected > 0 {
        counts.expected.cast_signed() - counts.received.cast_signed()
    } else {
        0
    };
    FlowWindow {
        counts,
        lost,
        tcp: tcp.map(|(before, after)| socket_gained(before, after)),
    }
}

fn gained(before: &Counts, after: &Counts) -> Counts {
    let grown = |figure: fn(&Counts) -> u64| figure(after).saturating_sub(figure(before));
    Counts {
        sent_bytes: grown(|counts| counts.sent_bytes),
        read_bytes: grown(|counts| counts.read_bytes),
        sent: grown(|counts| counts.sent),
        received: grown(|counts| counts.received),
        expected: grown(|counts| counts.expected),
        duplicated: grown(|counts| counts.duplicated),
        reordered: grown(|counts| counts.reordered),
        too_old: grown(|counts| counts.too_old),
        jitter_ns: after.jitter_ns,
        timeouts: grown(|counts| counts.timeouts),
        late: grown(|counts| counts.late),
        zero_copy: grown(|counts| counts.zero_copy),
        zero_copy_completed: grown(|counts| counts.zero_copy_completed),
        zero_copy_copied: grown(|counts| counts.zero_copy_copied),
        zero_copy_fallbacks: grown(|counts| counts.zero_copy_fallbacks),
    }
}

fn socket_gained(before: &TcpState, after: &TcpState) -> Socket {
    let (old, new) = (&before.info, &after.info);
    // The kernel's 32-bit counters wrap within minutes at these rates.
    let grown = |new: u32, old: u32| u64::from(new.wrapping_sub(old));
    Socket {
        segs_out: grown(new.segs_out, old.segs_out),
        segs_in: grown(new.segs_in, old.segs_in),
        data_segs_out: grown(new.data_segs_out, old.data_segs_out),
        retransmits: grown(new.total_retrans, old.total_retrans),
        rtt_us: new.rtt,
        min_rtt_us: new.min_rtt,
        snd_mss: new.snd_mss,
        pmtu: new.pmtu,
        snd_cwnd: new.snd_cwnd,
        congestion: after.congestion.clone(),
        sndbuf: after.sndbuf,
        rcvbuf: after.rcvbuf,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use wirecost_model::end_window::Waits;
    use wirecost_sys::socket::TcpInfo;

    use super::*;

    fn snapshot(read_bytes: u64, segs_out: u32) -> Snapshot {
        let info = TcpInfo {
            segs_out,
            rtt: segs_out,
            ..TcpInfo::default()
        };
        let flow = FlowSnapshot {
            bytes: read_bytes,
            counts: Counts {
                read_bytes,
                ..Counts::default()
            },
            tcp: Some(TcpState {
                info,
                congestion: "reno".to_owned(),
                sndbuf: 1,
                rcvbuf: 2,
            }),
            ended: None,
        };
        Snapshot {
            at: Instant::now(),
            started: None,
            flows: vec![flow],
            latency: Latency::default(),
            lateness: Latency::default(),
            asked: None,
            io: Io {
                write_bytes: 0,
                read_bytes: 0,
                waits: Waits::Socket,
            },
            threads: Vec::new(),
            strays: 0,
        }
    }

    proptest! {
        #[test]
        fn what_a_counter_gains_is_right_across_its_wrap(start: u32, gain: u32, bytes in 0u64..1 << 60, more in 0u64..1 << 60) {
            let before = snapshot(bytes, start);
            let after = snapshot(bytes + more, start.wrapping_add(gain));
            let deltas = flow_deltas(&before, &after).unwrap();
            prop_assert_eq!(deltas[0].0, more);
            prop_assert_eq!(deltas[0].1.segs_out, u64::from(gain));
            prop_assert_eq!(deltas[0].1.rtt_us, start.wrapping_add(gain));
        }

        #[test]
        fn fairness_is_between_an_nth_and_one(values in prop::collection::vec(0.0..1e9f64, 1..50)) {
            prop_assume!(values.iter().any(|value| *value > 1.0));
            let index = fairness(values.iter().copied()).unwrap();
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / values.len() as f64 - 1e-9);
        }
    }

    #[test]
    fn fairness_of_equals_is_one_and_of_one_who_has_all_an_nth() {
        let index = |values: &[f64]| fairness(values.iter().copied());
        assert_eq!(index(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(index(&[0.0, 8.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(index(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_flow_that_ended_within_the_window_has_no_figure() {
        let (before, mut after) = (snapshot(3, 0), snapshot(10, 1));
        after.flows[0].ended = Some(before.at + Duration::from_secs(1));
        let error = Window::between(&before, &after).unwrap_err();
        insta::assert_snapshot!(error, @"flow 0 ended within the window, after 10 bytes");
        let window = Window::until_end(&before, &after).unwrap();
        assert_eq!(window.sum(|counts| counts.read_bytes), 7);
    }

    #[test]
    fn a_window_begins_with_its_flows_and_is_over_with_the_last_of_them() {
        let long = Duration::from_secs(9);
        let with = |started: Option<u64>, ends: [Option<u64>; 2]| {
            let mut before = snapshot(0, 0);
            before.flows.push(before.flows[0].clone());
            let mut after = before.clone();
            after.at = before.at + long;
            after.started = started.map(|started| before.at + Duration::from_secs(started));
            for (flow, end) in after.flows.iter_mut().zip(ends) {
                flow.ended = end.map(|end| before.at + Duration::from_secs(end));
            }
            Window::until_end(&before, &after).unwrap().seconds
        };
        let is =
            |seconds: f64, started, ends| assert!((with(started, ends) - seconds).abs() < 1e-9);
        is(3.0, None, [Some(2), Some(3)]);
        is(2.0, Some(1), [Some(2), Some(3)]);
        is(9.0, None, [Some(2), None]);
        // By the next look only.
        is(9.0, None, [Some(2), Some(10)]);
    }

    #[test]
    fn snapshots_of_different_loads_are_not_compared() {
        let mut after = snapshot(10, 1);
        after.flows.clear();
        assert!(matches!(
            flow_deltas(&snapshot(3, 0), &after),
            Err(TrafficError::Mismatch {
                before: 1,
                after: 0
            })
        ));
    }

    #[test]
    fn what_is_due_and_not_sent_is_a_backlog_and_what_is_ahead_is_none() {
        let asked = |due, sent| Asked { due, sent };
        let one = schedule(asked(100.0, 90.0), asked(300.0, 270.0));
        assert_eq!(
            one,
            Schedule {
                due: 200.0,
                sent: 180.0,
                backlog_before: 10.0,
                backlog_after: 30.0,
            }
        );
        let ahead = schedule(asked(100.0, 101.0), asked(300.0, 300.5));
        assert_eq!((ahead.backlog_before, ahead.backlog_after), (0.0, 0.0));
    }

    #[test]
    fn loss_is_what_is_expected_and_did_not_come() {
        let at = |expected, received| {
            let mut snapshot = snapshot(0, 0);
            snapshot.flows[0].counts.expected = expected;
            snapshot.flows[0].counts.received = received;
            snapshot
        };
        assert_eq!(Window::between(&at(10, 10), &at(30, 25)).unwrap().lost(), 5);
        assert_eq!(Window::between(&at(10, 4), &at(12, 12)).unwrap().lost(), -6);
        assert_eq!(Window::between(&at(0, 0), &at(0, 7)).unwrap().lost(), 0);
    }
}
