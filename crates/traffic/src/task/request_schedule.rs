//! When a client may send its next request.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::Arrivals;
use crate::options::Rate;
use crate::shared::Shared;
use crate::storage::content;

/// Delay, nanoseconds, of requests that an upper bound on their rate lets catch up, as a paced stream does.
const CATCH_UP: u64 = 10_000_000;

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
    /// Upper bound on the rate of requests: nanoseconds from one to the next; `None` without one.
    gap: Option<u64>,
    /// When the upper bound permits the next request, nanoseconds.
    permitted: u64,
}

impl RequestSchedule {
    pub(crate) fn new(shared: &Shared, flow: u32) -> Self {
        let options = &shared.options;
        let depth = options.load.depth as usize;
        let think = options.load.think_time.as_nanos() as u64;
        let thinkers = if think > 0 { depth } else { 0 };
        let gap = options
            .load
            .most_per_second
            .map(|most| (1e9 / most).ceil() as u64);
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
            gap,
            // Flows take turns: all at once would be a burst of one request of each.
            permitted: gap.map_or(0, |gap| {
                let share = f64::from(flow) / f64::from(options.load.streams.max(1));
                (gap as f64 * share) as u64
            }),
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
        if outstanding >= self.depth || self.permitted > now {
            return None;
        }
        if let Some(arrivals) = &mut self.arrivals {
            return arrivals.take(now);
        }
        if self.think > 0 {
            self.due.front().filter(|due| **due <= now)?;
            self.due.pop_front();
        }
        if let Some(gap) = self.gap {
            self.permitted = self.permitted.max(now.saturating_sub(CATCH_UP)) + gap;
        }
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
        let due = self
            .arrivals
            .as_ref()
            .map(Arrivals::next)
            .or_else(|| self.due.front().copied());
        let permitted = self.gap.map(|_| self.permitted);
        due.into_iter().chain(permitted).max()
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::end_window::End;

    use super::*;
    use crate::buffers::BufferSizes;
    use crate::options::{Options, Workload};

    #[test]
    fn an_upper_bound_spaces_requests_and_lets_a_short_delay_catch_up() {
        const MS: u64 = 1_000_000;
        let options = Options::new(Workload::TcpRr, [7; 16]).with(|load| {
            load.depth = 1024;
            load.most_per_second = Some(1_000.0);
        });
        let sizes = BufferSizes::tcp_rr(&options);
        let shared = Shared::new(&options, End::Client, 1, 1, sizes).unwrap();
        let mut schedule = RequestSchedule::new(&shared, 0);
        let mut sent_at = |now: u64| {
            let requests = std::iter::from_fn(|| schedule.next(now, 0));
            let sent = requests.inspect(|due| assert_eq!(*due, now)).count();
            (sent, schedule.due(0))
        };
        let sent: usize = (0..10_000).map(|tenth| sent_at(tenth * MS / 10).0).sum();
        assert_eq!(sent, 1_000, "in a second");
        // 10 ms of half a second without a core.
        assert_eq!(sent_at(1_500 * MS), (11, Some(1_501 * MS)));
    }
}
