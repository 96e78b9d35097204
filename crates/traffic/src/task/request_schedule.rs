//! When a client may send its next request.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::Arrivals;
use crate::options::Rate;
use crate::shared::Shared;
use crate::storage::content;

/// When a client may send its next request.
pub(crate) struct RequestSchedule {
    depth: usize,
    /// With a rate.
    arrivals: Option<Arrivals>,
    /// Think time: nanoseconds from a response to the next request.
    think: u64,
    /// When each request is due that waits for its think time, ascending.
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

    /// A rate counts from `start`.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let (Some(arrivals), Some(start)) = (&mut self.arrivals, start) {
            arrivals.begin(start);
        }
    }

    /// When the next request was due, if it may be sent at `now` with so many outstanding; without a rate, `now`.
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

    /// A request was answered, or timed out.
    pub(crate) fn done(&mut self, now: u64) {
        if self.think > 0 {
            self.due.push_back(now + self.think);
        }
    }

    /// When the next request is due, where only time delays it.
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
