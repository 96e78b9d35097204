//! The end of a client: stops sending, waits for data in flight, and reports a peer that no longer answers.

use std::io;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use wirecost_model::load::PATH_PATIENCE;
use wirecost_sys::socket::{set_max_pacing_rate, tcp_info};

use super::Client;
use crate::closing::NotCompared;
use crate::error::TrafficError;
use crate::flow::{Finished, FinishedFlow, Flow, Outcome};
use crate::lost_segments;
use crate::ops::{ClientFlow, FlowKind};

/// Resolution of `tcpi_last_ack_recv`.
const JIFFIES: Duration = Duration::from_millis(20);
/// Longer than any round-trip time.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);

impl Client {
    /// Stops sending on all flows together, and waits, at most `timeout`, until the server has confirmed that it read
    /// all data. Flows that are not drained by then are aborted.
    ///
    /// # Errors
    /// A flow that failed; [`TrafficError::NotCompared`]; [`TrafficError::PeerVanished`] for the first silent flow
    /// where the peer has acknowledged nothing on any flow since the stop (a single flow may be waiting for a
    /// retransmission); [`TrafficError::SegmentsLost`]. Every thread is joined all the same.
    pub fn stop(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        let began = Instant::now();
        if let Err(lost) = self.check_progress() {
            self.end_threads(None);
            return Err(lost);
        }
        let deadline = began + timeout;
        let before: Vec<u64> = self
            .engine
            .shared
            .flows
            .all()
            .iter()
            .map(Flow::bytes)
            .collect();
        self.end_threads(Some(deadline));
        let flows = &self.engine.shared.flows;
        flows.check()?;
        if let Some(open) = self.engine.shared.path.get() {
            return self.close_path(open, began + timeout.max(PATH_PATIENCE));
        }
        let mut ends = Vec::with_capacity(self.flows.len());
        let (mut alive, mut silent, mut late) = (false, None, None);
        for flow in &self.flows {
            let index = flow.index;
            let state = &flows.all()[index as usize];
            let orderly = matches!(state.outcome.get(), Some(Outcome::Orderly));
            let closed = if orderly {
                (self.engine.ops.closing)(&self.engine.shared, flow, deadline)
            } else {
                Ok(false)
            };
            let drained = match closed {
                Ok(drained) => drained,
                // The peer's silence may be the cause.
                Err(source) if NotCompared::is(&source) => {
                    late.get_or_insert(TrafficError::NotCompared {
                        flow: index,
                        after: timeout,
                    });
                    false
                }
                Err(source) => return Err(TrafficError::of_flow(index, state.bytes(), source)),
            };
            let moved = state.bytes() != before[index as usize];
            let liveness = if drained {
                Liveness::Alive
            } else {
                self.liveness(flow, moved, began.elapsed())
            };
            match liveness {
                Liveness::Alive => alive = true,
                Liveness::Silent(error) => _ = silent.get_or_insert(error),
                Liveness::Neither => {}
            }
            ends.push(FinishedFlow {
                bytes: state.bytes(),
                drained,
                counted: state.tx.counted.get(),
            });
        }
        if let Some(vanished) = silent.filter(|_| !alive) {
            return Err(vanished);
        }
        if let Some(late) = late {
            return Err(late);
        }
        if let Some(after_close) = self.engine.ops.after_close {
            after_close(&self.engine.shared, &self.flows, deadline);
        }
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    /// Whether a flow that did not end in order within `time` shows that its peer is alive. A slow path may still have
    /// much data queued, but its peer acknowledges.
    fn liveness(&self, flow: &ClientFlow, moved: bool, time: Duration) -> Liveness {
        let silent = |silence: Duration| {
            let words = format!("nothing came from it for {:.1} s", silence.as_secs_f64());
            Liveness::Silent(TrafficError::PeerVanished {
                flow: flow.index,
                bytes: self.engine.shared.flows.all()[flow.index as usize].bytes(),
                source: io::Error::new(io::ErrorKind::TimedOut, words),
            })
        };
        if time < LONGEST_ROUND_TRIP {
            return Liveness::Neither;
        }
        match self.engine.ops.flow_kind {
            FlowKind::Connection { .. } => {
                let Ok(info) = tcp_info(&*flow.socket) else {
                    return Liveness::Neither;
                };
                let acknowledged = Duration::from_millis(info.last_ack_recv.into());
                if acknowledged + JIFFIES < time {
                    Liveness::Alive
                } else if lost_segments::has_none_acknowledged(&info) {
                    Liveness::Silent(lost_segments::of_flow(flow.index, &info))
                } else if info.unacked > 0 {
                    silent(acknowledged)
                } else {
                    Liveness::Neither
                }
            }
            // A UDP stream's server sends nothing.
            _ if !self
                .engine
                .shared
                .options
                .load
                .workload
                .is_request_response() =>
            {
                Liveness::Neither
            }
            // The connection of the current transaction is not known here, or there is none.
            _ if moved => Liveness::Alive,
            _ => silent(time),
        }
    }

    /// Ends and joins every thread: in order until `deadline`, then by aborting the flows; at once without a
    /// deadline.
    fn end_threads(&mut self, deadline: Option<Instant>) {
        let flows = &self.engine.shared.flows;
        if deadline.is_none() {
            // First, so that no task ends its flow in order: the peer would take an abandoned load for a finished one.
            flows.abort();
        }
        flows.set_stopping();
        if self.engine.ops.shut_to_stop && deadline.is_some() {
            // Wakes a blocked send(2), which returns what it had queued: the counters stay exact, and the FIN follows
            // the last byte. Pacing is lifted, unless all of the data is to be counted at its rate.
            let options = &self.engine.shared.options;
            let lifts = options.load.rate.is_some() && options.load.limit.is_none();
            for (_, _, socket) in flows.with_sockets() {
                if lifts {
                    let _ = set_max_pacing_rate(socket, u64::MAX);
                }
                let _: io::Result<()> = socket.shutdown(Shutdown::Write);
            }
        }
        if deadline.is_some_and(|deadline| !flows.wait_until(Some(deadline), || flows.all_ended()))
        {
            flows.abort();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a flow shows about its peer.
enum Liveness {
    Alive,
    Silent(TrafficError),
    Neither,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end_threads(None);
        }
        self.abandon_path();
    }
}
