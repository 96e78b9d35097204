//! The state of one end at an instant, and what two of them differ by.

use std::time::{Duration, Instant};

use socket2::Socket as RawSocket;
use wirecost_model::sample::Socket;
use wirecost_sys::socket::{TcpInfo, congestion, tcp_info};

use crate::error::TrafficError;
use crate::flow::{Flow, Flows};

/// One end of a load at an instant.
#[derive(Debug, Clone)]
pub struct StreamSnapshot {
    /// When the byte counters were read; what the kernel says of each socket was read right after.
    pub at: Instant,
    /// By flow index.
    pub flows: Vec<FlowSnapshot>,
}

/// One flow at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// Bytes that the application wrote or read since the start.
    pub bytes: u64,
    /// What the kernel says of the connection.
    pub info: TcpInfo,
    /// Congestion control in use.
    pub congestion: String,
    /// `SO_SNDBUF` in bytes as the kernel counts: twice what is asked for.
    pub sndbuf: u32,
    /// `SO_RCVBUF` in bytes as the kernel counts: twice what is asked for.
    pub rcvbuf: u32,
    /// Whether it was over.
    pub ended: bool,
}

impl StreamSnapshot {
    /// Bytes of all flows.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// The time from `before` to this one.
    pub fn since(&self, before: &Self) -> Duration {
        self.at.saturating_duration_since(before.at)
    }

    /// # Errors
    /// A flow that broke, or that is not there.
    pub(crate) fn take(flows: &Flows) -> Result<Self, TrafficError> {
        flows.check()?;
        let connected = flows.open().count() as u32;
        if connected < flows.count() {
            return Err(TrafficError::NotConnected {
                connected,
                wanted: flows.count(),
                strays: flows.strays(),
                after: Duration::ZERO,
            });
        }
        let at = Instant::now();
        let bytes: Vec<u64> = flows.all().iter().map(|flow| flow.bytes.get()).collect();
        let flows = flows
            .open()
            .zip(bytes)
            .map(|((index, flow, socket), bytes)| look(index, flow, socket, bytes))
            .collect::<Result<_, _>>()?;
        Ok(Self { at, flows })
    }
}

fn look(
    index: u32,
    flow: &Flow,
    socket: &RawSocket,
    bytes: u64,
) -> Result<FlowSnapshot, TrafficError> {
    let failed = |what| {
        move |source| TrafficError::Snapshot {
            flow: index,
            what,
            source,
        }
    };
    Ok(FlowSnapshot {
        bytes,
        info: tcp_info(socket).map_err(failed("TCP_INFO"))?,
        congestion: congestion(socket).map_err(failed("TCP_CONGESTION"))?,
        sndbuf: socket.send_buffer_size().map_err(failed("SO_SNDBUF"))? as u32,
        rcvbuf: socket.recv_buffer_size().map_err(failed("SO_RCVBUF"))? as u32,
        ended: flow.end.get().is_some(),
    })
}

/// What each flow gained between two snapshots of one end, by flow index: the application's bytes, and the socket's
/// counters with its state at the later one.
///
/// # Errors
/// A flow that was over by the later snapshot had a shorter window than the others; snapshots of different loads.
pub fn flow_deltas(
    before: &StreamSnapshot,
    after: &StreamSnapshot,
) -> Result<Vec<(u64, Socket)>, TrafficError> {
    if before.flows.len() != after.flows.len() {
        return Err(TrafficError::Mismatch {
            before: before.flows.len(),
            after: after.flows.len(),
        });
    }
    (0..)
        .zip(before.flows.iter().zip(&after.flows))
        .map(|(flow, (before, after))| {
            if after.ended {
                return Err(TrafficError::EndedEarly {
                    flow,
                    bytes: after.bytes,
                });
            }
            Ok((
                after.bytes.saturating_sub(before.bytes),
                gained(before, after),
            ))
        })
        .collect()
}

fn gained(before: &FlowSnapshot, after: &FlowSnapshot) -> Socket {
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
    use proptest::prelude::*;

    use super::*;

    fn snapshot(bytes: u64, segs_out: u32) -> StreamSnapshot {
        let info = TcpInfo {
            segs_out,
            rtt: segs_out,
            ..TcpInfo::default()
        };
        let flow = FlowSnapshot {
            bytes,
            info,
            congestion: "reno".to_owned(),
            sndbuf: 1,
            rcvbuf: 2,
            ended: false,
        };
        StreamSnapshot {
            at: Instant::now(),
            flows: vec![flow],
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
    }

    #[test]
    fn a_flow_that_ended_within_the_window_has_no_figure() {
        let mut after = snapshot(10, 1);
        after.flows[0].ended = true;
        let error = flow_deltas(&snapshot(3, 0), &after).unwrap_err();
        insta::assert_snapshot!(error, @"flow 0 ended within the window, after 10 bytes");
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
}
