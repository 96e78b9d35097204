//! Decides whether a load with a rate kept its schedule.

use serde::Serialize;

use super::LoadResult;
use crate::end_window::Schedule;
use crate::load::{Load, Rate};

/// Share of what was due in a window above which unsent or waiting messages make a load count as behind.
const SHARE: f64 = 0.01;
/// Messages by which counts may be off at the edges of a window: the counters are read while messages leave.
const EDGE: f64 = 4.0;
/// Seconds whose due messages counts may also be off by: requests and datagrams wait for a core at times.
const EDGE_S: f64 = 0.002;
/// The same for TCP streams, seconds: they are written in steps of 10 ms of their rate, or of a segment where that is
/// more.
const STREAM_EDGE_S: f64 = 0.01;
/// Smallest step of a TCP stream, bytes.
const STREAM_STEP: f64 = 1_200.0;
/// Most datagrams that leave as one super-packet.
const SEGMENTS: f64 = 64.0;

/// For records of versions before 6, which count only answers: share of the due requests that have to be answered for
/// the schedule to count as kept.
const KEPT_SHARE: f64 = 0.95;
/// Requests by which counts may be off at the edges of a window in such records.
const OLDER_EDGE: f64 = 10.0;

/// A schedule that was not kept: the figures show the load's own backlog, and not the effect of its rate on the path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissedSchedule {
    /// The rate that was asked for, all flows together: requests/s, or message bits/s for streams and datagrams.
    pub due_per_s: f64,
    /// The rate that was sent, in the same unit; in records of versions before 6 requests answered or timed out.
    pub over_per_s: f64,
    /// Messages that were due and not sent when the window ended; 0 in records of versions before 6.
    pub backlog: f64,
    /// Whether both rates are in bit/s.
    pub bits: bool,
}

impl MissedSchedule {
    /// The consequence for the figures.
    pub const WHY: &str =
        "what was measured is how fast the load could go, and not what its rate does to the path";
    /// What to change so that the schedule is kept.
    pub const ADVICE: &str = "ask for less, or for more streams or depth";

    /// The part of the rate that was achieved, 0 to 1.
    pub fn achieved(&self) -> f64 {
        if self.due_per_s > 0.0 {
            (self.over_per_s / self.due_per_s).clamp(0.0, 1.0)
        } else {
            1.0
        }
    }

    /// Both rates in words: `1234 of 2000 requests/s`, `0.93 of 1 Gbit/s`.
    pub fn words(&self) -> String {
        if !self.bits {
            return format!("{:.0} of {:.0} requests/s", self.over_per_s, self.due_per_s);
        }
        let (unit, name) = match self.due_per_s {
            due if due >= 1e9 => (1e9, "Gbit/s"),
            due if due >= 1e6 => (1e6, "Mbit/s"),
            _ => (1e3, "kbit/s"),
        };
        let round = |value: f64| (value / unit * 1e3).round() / 1e3;
        format!(
            "{} of {} {name}",
            round(self.over_per_s),
            round(self.due_per_s)
        )
    }
}

impl LoadResult {
    /// How far a load with a rate was behind its schedule within the window: more than 1 % of what was due was not
    /// sent, or requests were waiting to be sent when the window began or ended. Allows for inexact counts at the
    /// window's edges. `load` has the rate that was asked for; `None` where the schedule was kept or there is no rate.
    pub fn missed_schedule(&self, load: &Load) -> Option<MissedSchedule> {
        let rate = load.rate?;
        let Some(schedule) = self.schedule else {
            return self.missed_by_answers(load, rate);
        };
        let allowed = edge(load, rate, schedule.due / self.client_seconds) + schedule.due * SHARE;
        let short = schedule.due - schedule.sent;
        let waiting = if load.workload.is_request_response() {
            schedule.backlog_before.max(schedule.backlog_after)
        } else {
            // A stream drops what a stall held back from its schedule, and that stays in its backlog.
            schedule.backlog_after - schedule.backlog_before
        };
        (short.max(waiting) > allowed).then(|| self.missed(load, rate, schedule))
    }

    fn missed(&self, load: &Load, rate: Rate, schedule: Schedule) -> MissedSchedule {
        let bits = matches!(rate, Rate::BitsPerSecond(_));
        let each = if bits {
            f64::from(load.request) * 8.0
        } else {
            1.0
        };
        let per_s = |messages: f64| messages * each / self.client_seconds;
        MissedSchedule {
            due_per_s: per_s(schedule.due),
            over_per_s: per_s(schedule.sent),
            backlog: schedule.backlog_after,
            bits,
        }
    }

    fn missed_by_answers(&self, load: &Load, rate: Rate) -> Option<MissedSchedule> {
        let (Rate::RequestsPerSecond(rate), Some(requests)) = (rate, &self.requests) else {
            return None;
        };
        let seconds = self.client_seconds;
        let due = rate * f64::from(load.streams) * seconds;
        let over = (requests.transactions + requests.timeouts) as f64;
        (over + OLDER_EDGE < due * KEPT_SHARE).then(|| MissedSchedule {
            due_per_s: due / seconds,
            over_per_s: over / seconds,
            backlog: 0.0,
            bits: false,
        })
    }
}

/// Messages by which counts may be off at the window's edges, with `per_second` messages due each second.
fn edge(load: &Load, rate: Rate, per_second: f64) -> f64 {
    let flows = f64::from(load.streams);
    match rate {
        Rate::BitsPerSecond(_) if load.workload.is_tcp_stream() => {
            // The last part of a message that is written in one piece may be early or missing.
            let step = flows * (1.0 + STREAM_STEP / f64::from(load.request));
            step.max(per_second * STREAM_EDGE_S) + EDGE
        }
        Rate::BitsPerSecond(_) if load.segmentation.send => {
            EDGE + per_second * EDGE_S + flows * SEGMENTS
        }
        _ => EDGE + per_second * EDGE_S,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::latency::Latency;
    use crate::load::Workload;
    use crate::sample::RequestResult;

    fn of_requests(transactions: u64, timeouts: u64) -> LoadResult {
        LoadResult {
            seconds: 2.0,
            client_seconds: 2.0,
            requests: Some(RequestResult {
                transactions,
                timeouts,
                late: 0,
                duplicated: 0,
                flushes: Latency::default(),
                latency: Latency::default(),
                intervals: Vec::new(),
                lateness: Latency::default(),
            }),
            ..fixtures::load("tcp-rr", Workload::TcpRr)
        }
    }

    fn scheduled(workload: Workload, schedule: Schedule) -> LoadResult {
        LoadResult {
            workload,
            schedule: Some(schedule),
            ..of_requests(0, 0)
        }
    }

    /// Over two seconds.
    fn with(due: f64, sent: f64, backlog_before: f64) -> Schedule {
        Schedule {
            due,
            sent,
            backlog_before,
            backlog_after: (backlog_before + due - sent).max(0.0),
        }
    }

    fn at(workload: Workload, rate: Rate) -> Load {
        Load {
            rate: Some(rate),
            ..Load::new(workload)
        }
    }

    #[test]
    fn requests_are_behind_beyond_a_hundredth_and_the_edges() {
        let load = at(Workload::TcpRr, Rate::RequestsPerSecond(1_000.0));
        // 20 of 2,000, four, and what is due in 2 ms: 26.
        let missed = |schedule| scheduled(Workload::TcpRr, schedule).missed_schedule(&load);
        assert_eq!(missed(with(2_000.0, 1_975.0, 0.0)), None);
        assert_eq!(
            missed(with(2_000.0, 1_975.0, 25.0)).map(|missed| missed.backlog),
            Some(50.0),
            "it grows"
        );
        let found = missed(with(2_000.0, 1_960.0, 0.0)).unwrap();
        assert_eq!(
            (found.due_per_s, found.over_per_s, found.backlog),
            (1_000.0, 980.0, 40.0)
        );
        assert!((found.achieved() - 0.98).abs() < 1e-9);
        assert_eq!(found.words(), "980 of 1000 requests/s");
        // One that catches up goes as fast as it can, and not by its schedule.
        assert!(missed(with(2_000.0, 2_100.0, 100.0)).is_some());
        let one = at(Workload::TcpRr, Rate::RequestsPerSecond(1.0));
        let few = scheduled(Workload::TcpRr, with(2.0, 1.0, 0.0));
        assert_eq!(
            few.missed_schedule(&one),
            None,
            "a few messages are the edges"
        );
    }

    #[test]
    fn streams_are_behind_by_their_bits_and_not_by_a_step() {
        let load = at(Workload::TcpStream, Rate::BitsPerSecond(1_000_000_000));
        let each = f64::from(load.request) * 8.0;
        let due = 2e9 / each;
        let sent = |share: f64| {
            scheduled(Workload::TcpStream, with(due, due * share, 0.0)).missed_schedule(&load)
        };
        assert_eq!(sent(1.004), None);
        assert_eq!(sent(0.99), None, "10 ms and a hundredth");
        assert_eq!(sent(0.93).unwrap().words(), "0.93 of 1 Gbit/s");
        let udp = at(Workload::UdpStream, Rate::BitsPerSecond(8_000_000));
        let due = 2_000_000.0 / f64::from(udp.request);
        let of = |schedule| scheduled(Workload::UdpStream, schedule).missed_schedule(&udp);
        assert!(of(with(due, due * 0.9, 0.0)).is_some());
        assert_eq!(
            of(with(due, due, 10_000.0)),
            None,
            "let go before the window"
        );
        assert_eq!(
            of(with(due, due * 0.9, 0.0)).unwrap().words(),
            "7.2 of 8 Mbit/s"
        );
    }

    #[test]
    fn a_schedule_of_an_older_record_is_of_all_flows_and_kept_by_what_was_given_up_too() {
        let mut load = Load::new(Workload::TcpRr);
        load.streams = 3;
        load.rate = Some(Rate::RequestsPerSecond(200.0));
        let missed = MissedSchedule {
            due_per_s: 600.0,
            over_per_s: 80.0,
            backlog: 0.0,
            bits: false,
        };
        assert_eq!(of_requests(150, 10).missed_schedule(&load), Some(missed));
        assert_eq!(of_requests(1_000, 190).missed_schedule(&load), None);
        let as_fast_as_possible = Load::new(Workload::TcpRr);
        assert_eq!(
            of_requests(1, 0).missed_schedule(&as_fast_as_possible),
            None
        );
    }

    #[test]
    fn the_edges_of_a_window_are_no_delay() {
        let mut load = Load::new(Workload::TcpRr);
        load.rate = Some(Rate::RequestsPerSecond(5.0));
        assert_eq!(of_requests(0, 0).missed_schedule(&load), None);
    }
}
