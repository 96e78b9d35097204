//! When a client may send its next request.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::Arrivals;
use crate::options::Rate;
use crate::shared::Shared;
use crate::storage::content;

/// The schedule of one client's requests.
pub(crate) struct RequestSchedule {
    /// Requests that may be outstanding at once.
    depth: usize,
    /// Arrivals of a load with a rate; `None` without one.
    arrivals: Option<Arrivals>,
    /// Think time: nanoseconds from a response to the next request.
    think: u64,
    /// When requests that wait for their think time are due, ascending, nanoseconds.
    due: VecDeque<u64>,
}

impl RequestSchedule {
    pub(crate) fn new(shared: &Shared, flow: u32) -> Self {
        let options = &shared.options;
        let depth = options.load.depth as usize;
        let think = options.load.think_time.as_nanos() as u64;
        let thinkers = if think > 0 { depth } else { 0 };
        Self {
            depth,
            arrivals: match options.load.rate {
                Some(Rate::RequestsPerSecond(rate)) => {
                    let seed = content::mix(content::seed(options) ^ u64::from(flow));
                    let told = &shared.flows.all()[flow as usize].due;
                    Some(Arrivals::new(rate, seed, Arc::clone(told)))
                }
                _ => None,
            },
            think,
            due: std::iter::repeat_n(0, thinkers).collect(),
        }
    }

    /// Starts the schedule of a rate at `start`, if it has not started.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let (Some(arrivals), Some(start)) = (&mut self.arrivals, start) {
            arrivals.begin(start);
        }
    }

    /// Takes the next request, if it may be sent at `now` with `outstanding` requests open. Returns when it was due;
    /// without a rate, `now`.
    pub(crate) fn next(&mut self, now: u64, outstanding: usize) -> Option<u64> {
        if outstanding >= self.depth {
            return None;
        }
        if let Some(arrivals) = &mut self.arrivals {
            return arrivals.take(now);
        }
        if self.think == 0 {
            return Some(now);
        }
        self.due.front().filter(|due| **due <= now)?;
        self.due.pop_front();
        Some(now)
    }

    /// Notes that a request was answered or timed out: its think time begins at `now`.
    pub(crate) fn done(&mut self, now: u64) {
        if self.think > 0 {
            self.due.push_back(now + self.think);
        }
    }

    /// When the next request is due; `None` where the depth is reached, or where nothing delays it.
    pub(crate) fn due(&self, outstanding: usize) -> Option<u64> {
        if outstanding >= self.depth {
            return None;
        }
        self.arrivals
            .as_ref()
            .map(Arrivals::next)
            .or_else(|| self.due.front().copied())
    }
}
