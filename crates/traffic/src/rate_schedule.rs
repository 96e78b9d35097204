//! Messages that a rate asks for by a point in time, all flows of a client.

use std::time::Duration;

use crate::options::{Limit, Options, Rate, Workload};

/// Messages that become due at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateSchedule {
    /// Messages per second, all flows together.
    per_second: f64,
    /// Bytes of a message.
    message: f64,
    /// Whether messages become due one by one; the bytes of a TCP stream do so continuously.
    one_by_one: bool,
    /// Messages in all.
    limit: f64,
}

impl RateSchedule {
    /// `None` where a load has no rate that it is to keep.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        // Of a migration the rate is an upper limit: when it writes is decided by its rounds.
        if options.load.workload.is_migration() {
            return None;
        }
        let message = f64::from(options.load.request);
        let each = match options.load.rate? {
            Rate::BitsPerSecond(bits) => bits as f64 / 8.0 / message,
            Rate::RequestsPerSecond(rate) => rate,
        };
        let stream = matches!(
            options.load.workload,
            Workload::TcpStream | Workload::TcpBidirectional
        );
        Some(Self {
            per_second: each * f64::from(options.load.streams),
            message,
            one_by_one: !stream,
            limit: match options.load.limit {
                Some(Limit::Transactions(amount)) => amount as f64,
                Some(Limit::Bytes(amount)) => amount as f64 / message,
                Some(Limit::Time(_)) | None => f64::INFINITY,
            },
        })
    }

    /// Messages due so long after the start. Flows start at equal offsets within an interval, so that together they
    /// are one schedule, with the first message due at once.
    pub(crate) fn due(&self, since_start: Duration) -> f64 {
        let flowed = self.per_second * since_start.as_secs_f64();
        let due = if self.one_by_one {
            flowed.floor() + 1.0
        } else {
            flowed
        };
        due.min(self.limit)
    }

    /// Messages handed to the kernel: bytes and complete messages.
    pub(crate) fn sent(&self, bytes: u64, messages: u64) -> f64 {
        if self.one_by_one {
            messages as f64
        } else {
            bytes as f64 / self.message
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::task::pacer::Pacer;

    fn requests(rate: f64, streams: u32) -> Options {
        Options::new(Workload::TcpRr, [0; 16]).with(|load| {
            load.rate = Some(Rate::RequestsPerSecond(rate));
            load.streams = streams;
        })
    }

    proptest! {
        #[test]
        fn all_flows_together_are_due_what_each_of_them_is(rate in 1.0..1e5f64, streams in 1u32..64, ms in 0u64..2_000) {
            let table = RateSchedule::of(&requests(rate, streams)).unwrap();
            let by_flow: u64 = (0..streams)
                .map(|flow| {
                    let mut pace = Pacer::new(rate, false, flow, streams);
                    pace.begin(5);
                    pace.due(5 + ms * 1_000_000)
                })
                .sum();
            // A flow's part of an interval is rounded to whole nanoseconds.
            prop_assert!((table.due(Duration::from_millis(ms)) - by_flow as f64).abs() <= 1.0);
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
        assert!((table.due(Duration::from_millis(1_050)) - 21.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 2.5).abs() < 1e-9);
        let limited = requests(10.0, 1).with(|load| load.limit = Some(Limit::Transactions(7)));
        let table = RateSchedule::of(&limited).unwrap();
        let due = |ms| table.due(Duration::from_millis(ms));
        assert!((due(0) - 1.0).abs() < 1e-9 && (due(5_000) - 7.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 9.0).abs() < 1e-9);
        assert_eq!(
            RateSchedule::of(&Options::new(Workload::UdpRr, [0; 16])),
            None
        );
    }
}
