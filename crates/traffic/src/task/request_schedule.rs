//! When a client may send its next request.

use std::collections::VecDeque;

use super::pacer::Pacer;
use crate::options::{Options, Rate};

/// When a client may send its next request.
pub(crate) struct RequestSchedule {
    depth: usize,
    pace: Option<Pacer>,
    /// Think time: nanoseconds from a response to the next request.
    think: u64,
    /// When each request is due that waits for its think time, ascending.
    due: VecDeque<u64>,
}

impl RequestSchedule {
    pub(crate) fn new(options: &Options, flow: u32) -> Self {
        let depth = options.load.depth as usize;
        let think = options.load.think_time.as_nanos() as u64;
        let thinkers = if think > 0 { depth } else { 0 };
        Self {
            depth,
            pace: match options.load.rate {
                Some(Rate::RequestsPerSecond(rate)) => {
                    Some(Pacer::new(rate, false, flow, options.load.streams))
                }
                _ => None,
            },
            think,
            due: std::iter::repeat_n(0, thinkers).collect(),
        }
    }

    /// A rate counts from `start`.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let (Some(pace), Some(start)) = (&mut self.pace, start) {
            pace.begin(start);
        }
    }

    /// When the next request was due, if it may be sent at `now` with so many outstanding; without a rate, `now`.
    pub(crate) fn next(&mut self, now: u64, outstanding: usize) -> Option<u64> {
        if outstanding >= self.depth {
            return None;
        }
        if let Some(pace) = &mut self.pace {
            if pace.due(now) == 0 {
                return None;
            }
            let due = pace.next();
            pace.sent(1);
            return Some(due.min(now));
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
        self.pace
            .as_ref()
            .map(Pacer::next)
            .or_else(|| self.due.front().copied())
    }
}
