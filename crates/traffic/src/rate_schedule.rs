//! Messages that a rate asks for by a point in time, all flows of a client.

use std::time::{Duration, Instant};

use crate::flow::Flows;
use crate::options::{Limit, Options, Rate, Workload};

/// Messages that become due at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateSchedule {
    /// Messages per second, all flows together.
    per_second: f64,
    /// Bytes of a message.
    message: f64,
    /// When messages become due.
    kind: Kind,
    /// Upper bound on the messages of the load; infinite without a limit.
    limit: f64,
}

/// When messages of a rate become due.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Bytes of a TCP stream, continuously.
    Bytes,
    /// Datagrams of a stream, one by one at equal intervals.
    Datagrams,
    /// Requests at random, with gaps of this mean on each flow, nanoseconds; [`crate::flow::Flow::due`] has the times.
    Requests(f64),
}

impl RateSchedule {
    /// The schedule of a load; `None` without a rate, and for a migration.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        // The rate of a migration is an upper limit: its rounds decide when it sends.
        if options.load.workload.is_migration() {
            return None;
        }
        let message = f64::from(options.load.request);
        let stream = matches!(
            options.load.workload,
            Workload::TcpStream | Workload::TcpBidirectional
        );
        let (each, kind) = match options.load.rate? {
            Rate::BitsPerSecond(bits) if stream => (bits as f64 / 8.0 / message, Kind::Bytes),
            Rate::BitsPerSecond(bits) => (bits as f64 / 8.0 / message, Kind::Datagrams),
            Rate::RequestsPerSecond(rate) => (rate, Kind::Requests(1e9 / rate)),
        };
        Some(Self {
            per_second: each * f64::from(options.load.streams),
            message,
            kind,
            limit: match options.load.limit {
                Some(Limit::Transactions(amount)) => amount as f64,
                Some(Limit::Bytes(amount)) => amount as f64 / message,
                Some(Limit::Time(_)) | None => f64::INFINITY,
            },
        })
    }

    /// Messages due by the instant `at`, which is `now` on the clock of [`crate::shared::Shared::now`].
    pub(crate) fn due(&self, flows: &Flows, at: Instant, now: u64) -> f64 {
        if let Kind::Requests(mean) = self.kind {
            let flows = flows.all().iter();
            let due: f64 = flows.map(|flow| flow.due.by(now, mean)).sum();
            return due.min(self.limit);
        }
        let started = flows.started_at();
        started.map_or(0.0, |started| {
            self.due_after(at.saturating_duration_since(started))
        })
    }

    /// Messages due this long after the start. Flows start at equal offsets within an interval, so that together they
    /// are one schedule, with the first message due at once.
    fn due_after(&self, since_start: Duration) -> f64 {
        let flowed = self.per_second * since_start.as_secs_f64();
        let due = if self.kind == Kind::Datagrams {
            flowed.floor() + 1.0
        } else {
            flowed
        };
        due.min(self.limit)
    }

    /// Messages sent, from the bytes and the complete messages that were handed to the kernel.
    pub(crate) fn sent(&self, bytes: u64, messages: u64) -> f64 {
        if self.kind == Kind::Bytes {
            bytes as f64 / self.message
        } else {
            messages as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::task::pacer::Pacer;

    /// So many datagrams per second of each flow.
    fn datagrams(rate: u64, streams: u32) -> Options {
        Options::new(Workload::UdpStream, [0; 16]).with(|load| {
            load.request = 100;
            load.rate = Some(Rate::BitsPerSecond(rate * 800));
            load.streams = streams;
        })
    }

    proptest! {
        #[test]
        fn all_flows_together_are_due_what_each_of_them_is(rate in 1u64..100_000, streams in 1u32..64, ms in 0u64..2_000) {
            let table = RateSchedule::of(&datagrams(rate, streams)).unwrap();
            let by_flow: u64 = (0..streams)
                .map(|flow| {
                    let mut pace = Pacer::new(rate as f64, false, flow, streams);
                    pace.begin(5);
                    pace.due(5 + ms * 1_000_000)
                })
                .sum();
            // A flow's part of an interval is rounded to whole nanoseconds.
            prop_assert!((table.due_after(Duration::from_millis(ms)) - by_flow as f64).abs() <= 1.0);
        }
    }

    #[test]
    fn bytes_of_a_stream_are_parts_of_messages_and_a_limit_is_all_there_is() {
        let stream = Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.rate = Some(Rate::BitsPerSecond(8_000));
            load.request = 100;
            load.streams = 2;
        });
        let table = RateSchedule::of(&stream).unwrap();
        assert!((table.due_after(Duration::from_millis(1_050)) - 21.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 2.5).abs() < 1e-9);
        let limited = datagrams(10, 1).with(|load| load.limit = Some(Limit::Transactions(7)));
        let table = RateSchedule::of(&limited).unwrap();
        let due = |ms| table.due_after(Duration::from_millis(ms));
        assert!((due(0) - 1.0).abs() < 1e-9 && (due(5_000) - 7.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 9.0).abs() < 1e-9);
        assert_eq!(
            RateSchedule::of(&Options::new(Workload::UdpRr, [0; 16])),
            None
        );
    }
}
