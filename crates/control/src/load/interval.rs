//! Joins the parts that agents report into the intervals that were asked for.

use std::time::Duration;

use serde::Serialize;
use wirecost_agent::protocol::{EndPart, WindowPart};
use wirecost_model::end_window::{Counts, End};
use wirecost_model::latency::Latency;
use wirecost_model::load::{NamedLoad, Workload};

/// Share of an interval that may be missing when it is closed, since timers are not exact.
const SLACK: f64 = 0.02;

/// What every load did in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// End of the interval, seconds since counting began.
    pub end_s: f64,
    /// Length of the interval, seconds.
    pub seconds: f64,
    /// The loads, in the order in which they were asked for.
    pub loads: Vec<LoadInterval>,
}

/// What one load did in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadInterval {
    /// Name of the load.
    pub name: String,
    /// Workload of the load.
    pub workload: Workload,
    /// Streams: what the server's application read, Gbit/s.
    pub gbps: Option<f64>,
    /// TCP streams in both directions: what the client's application read, Gbit/s.
    pub back_gbps: Option<f64>,
    /// TCP streams: segments retransmitted by either end.
    pub retransmits: Option<u64>,
    /// UDP streams: datagrams received per second.
    pub datagrams_per_s: Option<f64>,
    /// UDP streams: datagrams lost. Negative where datagrams arrived that an earlier interval counted as lost.
    pub lost: Option<i64>,
    /// Request loads: requests answered in time, per second.
    pub transactions_per_s: Option<f64>,
    /// Request loads: median latency, seconds.
    pub p50_s: Option<f64>,
    /// Request loads: 99th percentile of the latency, seconds.
    pub p99_s: Option<f64>,
    /// Requests over UDP: requests given up after their time-out.
    pub timeouts: Option<u64>,
}

/// Counts of one end of a load since the interval began.
#[derive(Debug, Clone, Default)]
struct Sum {
    seconds: f64,
    counts: Counts,
    lost: i64,
    retransmits: u64,
    latency: Latency,
}

impl Sum {
    fn add(&mut self, part: &EndPart) {
        self.seconds += part.seconds;
        self.counts += part.counts;
        self.lost += part.lost;
        self.retransmits += part.retransmits;
        self.latency.merge(&part.latency);
    }

    fn gbps(&self) -> f64 {
        self.per_second(self.counts.read_bytes) * 8.0 / 1e9
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Counts of one load since the interval began.
#[derive(Debug, Clone)]
struct LoadSums {
    name: String,
    workload: Workload,
    client: Sum,
    server: Sum,
}

impl LoadSums {
    fn interval(&self) -> LoadInterval {
        let Self { client, server, .. } = self;
        let workload = self.workload;
        let requests = workload.is_request_response();
        let datagrams = workload == Workload::UdpStream;
        let latency = |percent| {
            let latency = requests.then(|| client.latency.percentile(percent));
            latency.flatten().map(|time| time.as_secs_f64())
        };
        LoadInterval {
            name: self.name.clone(),
            workload,
            gbps: (!requests).then(|| server.gbps()),
            back_gbps: (workload == Workload::TcpBidirectional).then(|| client.gbps()),
            retransmits: workload
                .is_tcp_stream()
                .then_some(client.retransmits + server.retransmits),
            datagrams_per_s: datagrams.then(|| server.per_second(server.counts.received)),
            lost: datagrams.then_some(server.lost),
            transactions_per_s: requests.then(|| client.per_second(client.counts.received)),
            p50_s: latency(50.0),
            p99_s: latency(99.0),
            timeouts: workload
                .has_reply_timeout()
                .then_some(client.counts.timeouts),
        }
    }

    fn clear(&mut self) {
        (self.client, self.server) = (Sum::default(), Sum::default());
    }
}

/// Collects parts into intervals.
#[derive(Debug)]
pub(super) struct IntervalCollector {
    /// Length of an interval, seconds.
    wanted_s: f64,
    running: Vec<LoadSums>,
    /// End of the last interval, seconds since counting began.
    end_s: f64,
    /// Seconds counted since the end of the last interval.
    since_s: f64,
    intervals: Vec<Interval>,
}

impl IntervalCollector {
    pub(super) fn new(loads: &[NamedLoad], wanted_s: f64) -> Self {
        let running = loads.iter().map(|named| LoadSums {
            name: named.name.clone(),
            workload: named.load.workload,
            client: Sum::default(),
            server: Sum::default(),
        });
        Self {
            wanted_s,
            running: running.collect(),
            end_s: 0.0,
            since_s: 0.0,
            intervals: Vec::new(),
        }
    }

    /// Time until the interval is over; at least 1 ms.
    pub(super) fn left_of_interval(&self) -> Duration {
        Duration::from_secs_f64((self.wanted_s - self.since_s).max(1e-3))
    }

    /// Adds what the hosts reported of one part, and returns the interval that the part ends.
    pub(super) fn add(&mut self, parts: &[WindowPart]) -> Option<Interval> {
        self.add_quietly(parts);
        let slack = SLACK * self.wanted_s;
        (self.since_s >= self.wanted_s - slack).then(|| self.close())
    }

    /// [`IntervalCollector::add`] without ending an interval.
    pub(super) fn add_quietly(&mut self, parts: &[WindowPart]) {
        let mut longest = 0.0f64;
        for end in parts.iter().flat_map(|part| &part.ends) {
            longest = longest.max(end.seconds);
            let of_load = |running: &&mut LoadSums| running.name == end.name;
            if let Some(running) = self.running.iter_mut().find(of_load) {
                match end.end {
                    End::Client => running.client.add(end),
                    End::Server => running.server.add(end),
                }
            }
        }
        self.since_s += longest;
    }

    /// Closes the last, incomplete interval; `None` where it is shorter than 2 % of an interval.
    pub(super) fn rest(&mut self) -> Option<Interval> {
        (self.since_s > SLACK * self.wanted_s).then(|| self.close())
    }

    /// Takes the closed intervals out.
    pub(super) fn take(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }

    fn close(&mut self) -> Interval {
        let seconds = std::mem::take(&mut self.since_s);
        self.end_s += seconds;
        let interval = Interval {
            end_s: self.end_s,
            seconds,
            loads: self.running.iter().map(LoadSums::interval).collect(),
        };
        self.running.iter_mut().for_each(LoadSums::clear);
        self.intervals.push(interval.clone());
        interval
    }
}

#[cfg(test)]
mod tests {
    use wirecost_agent::protocol::HostNetns;
    use wirecost_model::load::Load;

    use super::*;

    fn part(end: End, seconds: f64, read_bytes: u64) -> WindowPart {
        let end = EndPart {
            name: "tcp-stream".to_owned(),
            place: HostNetns::Host,
            end,
            seconds,
            counts: Counts {
                read_bytes,
                ..Counts::default()
            },
            lost: 0,
            retransmits: 2,
            latency: Latency::default(),
        };
        WindowPart {
            over: false,
            ends: vec![end],
        }
    }

    #[test]
    fn parts_make_intervals_and_nothing_between_them_is_lost() {
        let load = NamedLoad::alone(Load::new(Workload::TcpStream));
        let mut parts = IntervalCollector::new(&[load], 1.0);
        let both = |bytes| [part(End::Client, 0.5, 0), part(End::Server, 0.5, bytes)];
        assert_eq!(parts.add(&both(1_000_000_000)), None);
        let interval = parts.add(&both(0)).expect("a second");
        assert!((interval.end_s - 1.0).abs() < 1e-9);
        let load = &interval.loads[0];
        assert_eq!((load.gbps, load.retransmits), (Some(8.0), Some(8)));
        assert_eq!(load.transactions_per_s, None);

        assert_eq!(parts.add(&both(125_000_000)), None);
        let rest = parts.rest().expect("half a second");
        assert!((rest.end_s - 1.5).abs() < 1e-9 && (rest.seconds - 0.5).abs() < 1e-9);
        assert_eq!(rest.loads[0].gbps, Some(2.0));
        assert_eq!(parts.rest(), None);
        assert_eq!(parts.take().len(), 2);
    }
}
