//! The figures of one end between two snapshots.

use std::time::Instant;

use wirecost_model::end_window::{EndWindow, FlowWindow, Schedule, Socket};

use crate::error::TrafficError;
use crate::generator::{generator_bound, thread_window};
use crate::snapshot::{FlowSnapshot, ScheduleTotals, Snapshot, TcpState};

/// What one end did between two of its snapshots. `intervals` and `datagrams` are left empty.
///
/// # Errors
/// A flow that had ended by the later snapshot; snapshots of different loads.
pub fn window(before: &Snapshot, after: &Snapshot) -> Result<EndWindow, TrafficError> {
    for (flow, snapshot) in (0..).zip(&after.flows) {
        if snapshot.ended.is_some() {
            return Err(TrafficError::EndedEarly {
                flow,
                bytes: snapshot.counts.bytes(),
            });
        }
    }
    window_until_end(before, after)
}

/// [`window()`] for flows that may start or end within it, as with a limit: the window begins with the start of the
/// flows, and ends with the last flow where all have ended.
///
/// # Errors
/// Snapshots of different loads.
pub fn window_until_end(before: &Snapshot, after: &Snapshot) -> Result<EndWindow, TrafficError> {
    if before.flows.len() != after.flows.len() || before.threads.len() != after.threads.len() {
        return Err(TrafficError::Mismatch {
            before: before.flows.len(),
            after: after.flows.len(),
        });
    }
    let ends: Option<Vec<Instant>> = after.flows.iter().map(|flow| flow.ended).collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    // Where the last flow had ended before this window, nothing was done in it.
    let last = last.filter(|last| (before.at..after.at).contains(last));
    let end = last.unwrap_or(after.at);
    let start = after.started.map_or(before.at, |at| at.max(before.at));
    let seconds = end.saturating_duration_since(start).as_secs_f64();
    let threads = before.threads.iter().zip(&after.threads);
    let threads: Vec<_> = threads
        .map(|(before, after)| thread_window(before, after, seconds))
        .collect();
    Ok(EndWindow {
        seconds,
        flows: before.flows.iter().zip(&after.flows).map(flow).collect(),
        latency: after.latency.since(&before.latency),
        generator_bound: generator_bound(&threads),
        threads,
        strays: after.strays.saturating_sub(before.strays),
        intervals: Vec::new(),
        datagrams: None,
        lateness: after.lateness.since(&before.lateness),
        flushes: after.flushes.since(&before.flushes),
        schedule: before
            .scheduled
            .zip(after.scheduled)
            .map(|(before, after)| schedule(before, after)),
        io: Some(after.io),
        moves: after.moves.clone(),
        path: after.path.clone(),
    })
}

/// Messages due and sent between two snapshots of a load with a rate. Messages sent early are no backlog.
fn schedule(before: ScheduleTotals, after: ScheduleTotals) -> Schedule {
    let backlog = |asked: ScheduleTotals| (asked.due - asked.sent).max(0.0);
    Schedule {
        due: after.due - before.due,
        sent: after.sent - before.sent,
        backlog_before: backlog(before),
        backlog_after: backlog(after),
    }
}

fn flow((before, after): (&FlowSnapshot, &FlowSnapshot)) -> FlowWindow {
    let counts = after.counts.since(&before.counts);
    let tcp = before.tcp.as_ref().zip(after.tcp.as_ref());
    // Only a receiver of numbered datagrams can miss any.
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
    use wirecost_model::end_window::{Counts, Io, WaitMethod};
    use wirecost_model::latency::Latency;
    use wirecost_sys::socket::TcpInfo;

    use super::*;

    fn snapshot(read_bytes: u64, segs_out: u32) -> Snapshot {
        let info = TcpInfo {
            segs_out,
            rtt: segs_out,
            ..TcpInfo::default()
        };
        let flow = FlowSnapshot {
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
            flushes: Latency::default(),
            lateness: Latency::default(),
            scheduled: None,
            io: Io {
                write_bytes: 0,
                read_bytes: 0,
                waits: WaitMethod::Socket,
            },
            threads: Vec::new(),
            strays: 0,
            moves: Vec::new(),
            path: None,
        }
    }

    proptest! {
        #[test]
        fn what_a_counter_gains_is_right_across_its_wrap(start: u32, gain: u32, bytes in 0u64..1 << 60, more in 0u64..1 << 60) {
            let before = snapshot(bytes, start);
            let after = snapshot(bytes + more, start.wrapping_add(gain));
            let flow = window(&before, &after).unwrap().flows.remove(0);
            prop_assert_eq!(flow.counts.bytes(), more);
            let socket = flow.tcp.unwrap();
            prop_assert_eq!(socket.segs_out, u64::from(gain));
            prop_assert_eq!(socket.rtt_us, start.wrapping_add(gain));
        }
    }

    #[test]
    fn a_flow_that_ended_within_the_window_has_no_figure() {
        let (before, mut after) = (snapshot(3, 0), snapshot(10, 1));
        after.flows[0].ended = Some(before.at + Duration::from_secs(1));
        let error = window(&before, &after).unwrap_err();
        insta::assert_snapshot!(error, @"flow 0 ended within the window, after 10 bytes");
        let shorter = window_until_end(&before, &after).unwrap();
        assert_eq!(shorter.counts().read_bytes, 7);
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
            window_until_end(&before, &after).unwrap().seconds
        };
        let is =
            |seconds: f64, started, ends| assert!((with(started, ends) - seconds).abs() < 1e-9);
        is(3.0, None, [Some(2), Some(3)]);
        is(2.0, Some(1), [Some(2), Some(3)]);
        is(9.0, None, [Some(2), None]);
        // After the snapshot.
        is(9.0, None, [Some(2), Some(10)]);
    }

    #[test]
    fn snapshots_of_different_loads_are_not_compared() {
        let mut after = snapshot(10, 1);
        after.flows.clear();
        assert!(matches!(
            window(&snapshot(3, 0), &after),
            Err(TrafficError::Mismatch {
                before: 1,
                after: 0
            })
        ));
    }

    #[test]
    fn what_is_due_and_not_sent_is_a_backlog_and_what_is_ahead_is_none() {
        let asked = |due, sent| ScheduleTotals { due, sent };
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
        assert_eq!(window(&at(10, 10), &at(30, 25)).unwrap().lost(), 5);
        assert_eq!(window(&at(10, 4), &at(12, 12)).unwrap().lost(), -6);
        assert_eq!(window(&at(0, 0), &at(0, 7)).unwrap().lost(), 0);
    }
}
