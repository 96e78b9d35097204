//! Counts loss independent of size and pace: small datagrams, one after the other.

use std::time::Duration;

use super::{FlowProbe, Survey};
use crate::config::Probe;
use crate::flight::Flight;

/// Number of datagrams for the count. At 5 % loss each way they give an interval of 6.4 to 13.5 %.
const COUNTED_DATAGRAMS: u32 = 300;
/// Upper bound on their pace in bytes per second; the other direction's answers come on top.
const MAX_BYTES_PER_S: f64 = 25e3;
/// Least wait for the last answers: the responder may wait for a core, and what it answers late is not lost.
const MIN_LAST_WAIT: Duration = Duration::from_millis(300);

/// State of the count.
#[derive(Debug)]
pub(super) struct Loss {
    /// Index of the first probe of the count.
    pub(super) before: usize,
    left: u32,
    last: Option<Duration>,
    /// The next flow to send on.
    turn: usize,
}

impl Loss {
    pub(super) fn next_timeout(&self, flight: &Flight) -> Duration {
        match self.last {
            Some(last) if self.left == 0 => last + flight.wait().max(MIN_LAST_WAIT),
            _ => flight.free_at(),
        }
    }
}

impl Survey {
    /// Every flow is settled: ends the survey, or begins the count of loss where that was asked for.
    pub(super) fn all_settled(&mut self, now: Duration) {
        if self.ended.is_some() || self.loss.is_some() {
            return;
        }
        if !self.question.count {
            self.ended = Some(now);
            return;
        }
        self.flight.cap_pace(MAX_BYTES_PER_S, now);
        self.loss = Some(Loss {
            before: self.flight.count(),
            left: COUNTED_DATAGRAMS,
            last: None,
            turn: 0,
        });
    }

    pub(super) fn count_loss(&mut self, now: Duration) -> Option<FlowProbe> {
        let size = self.question.config.control_size;
        let free = self.flight.is_free(now);
        let loss = self.loss.as_mut()?;
        if loss.left == 0 {
            if now >= loss.next_timeout(&self.flight) {
                self.ended.get_or_insert(now);
            }
            return None;
        }
        if !free {
            return None;
        }
        let count = self.flows.len();
        let flow = (0..count)
            .map(|step| (loss.turn + step) % count)
            .find(|&flow| self.flight.passes(flow as u32, size));
        let Some(flow) = flow else {
            self.ended.get_or_insert(now);
            return None;
        };
        (loss.turn, loss.last) = (flow + 1, Some(now));
        loss.left -= 1;
        let flow = flow as u32;
        let id = self.flight.sent(flow, size, now);
        Some(FlowProbe {
            flow,
            probe: Probe {
                id,
                size,
                control: true,
            },
        })
    }
}
