//! Requests that were due by a rate.

use super::LoadResult;
use crate::load::{Load, Rate};

/// A schedule is kept where so much of what was due is over.
const KEPT: f64 = 0.95;
/// Requests by which the edges of a window may be off.
const EDGE: f64 = 10.0;

/// A schedule that was not kept: a latency counts from when its request was due, and has the wait behind it in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    /// Requests a second that were due, of all flows.
    pub due_per_s: f64,
    /// Requests a second that were answered or given up.
    pub over_per_s: f64,
}

impl Behind {
    /// What it does to the figures.
    pub const WHY: &str = "a latency counts from when its request was due, and has the wait behind that schedule in it";
    /// What to do.
    pub const ADVICE: &str = "ask for less, or for more streams or depth";
}

impl LoadResult {
    /// Where requests with a rate are less than 95 % of what was due; `load` is what was asked for.
    pub fn behind_schedule(&self, load: &Load) -> Option<Behind> {
        let (Some(Rate::RequestsPerSecond(rate)), Some(requests)) = (load.rate, &self.requests)
        else {
            return None;
        };
        let seconds = self.client_seconds;
        let due = rate * f64::from(load.streams) * seconds;
        let over = (requests.transactions + requests.timeouts) as f64;
        (over + EDGE < due * KEPT).then(|| Behind {
            due_per_s: due / seconds,
            over_per_s: over / seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;
    use crate::load::{Direction, Workload};
    use crate::sample::RequestResult;

    fn of_requests(transactions: u64, timeouts: u64) -> LoadResult {
        LoadResult {
            name: "tcp-rr".to_owned(),
            workload: Workload::TcpRr,
            direction: Direction::AToB,
            seconds: 2.0,
            client_seconds: 2.0,
            stream: None,
            requests: Some(RequestResult {
                transactions,
                timeouts,
                late: 0,
                duplicated: 0,
                latency: Latency::default(),
                intervals: Vec::new(),
                lateness: Latency::default(),
            }),
            datagrams: None,
            zero_copy: None,
            flows: Vec::new(),
            strays: 0,
            generator: Vec::new(),
            io: Vec::new(),
            schedule: None,
        }
    }

    #[test]
    fn a_schedule_is_of_all_flows_and_kept_by_what_was_given_up_too() {
        let mut load = Load::new(Workload::TcpRr);
        load.streams = 3;
        load.rate = Some(Rate::RequestsPerSecond(200.0));
        let behind = Behind {
            due_per_s: 600.0,
            over_per_s: 80.0,
        };
        assert_eq!(of_requests(150, 10).behind_schedule(&load), Some(behind));
        assert_eq!(of_requests(1_000, 190).behind_schedule(&load), None);
        let as_fast_as_possible = Load::new(Workload::TcpRr);
        assert_eq!(
            of_requests(1, 0).behind_schedule(&as_fast_as_possible),
            None
        );
    }

    #[test]
    fn the_edges_of_a_window_are_no_delay() {
        let mut load = Load::new(Workload::TcpRr);
        load.rate = Some(Rate::RequestsPerSecond(5.0));
        assert_eq!(of_requests(0, 0).behind_schedule(&load), None);
    }
}
