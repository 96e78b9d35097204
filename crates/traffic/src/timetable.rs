//! What a rate has asked for by a moment, in messages of all flows of a client.

use std::time::Duration;

use crate::options::{Limit, Options, Rate, Workload};

/// Messages that fall due by a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Timetable {
    /// Of all flows together.
    per_second: f64,
    /// Bytes of a message.
    message: f64,
    /// Whether messages fall due one by one; bytes of a TCP stream do so all the time.
    one_by_one: bool,
    /// Messages that there are in all.
    limit: f64,
}

impl Timetable {
    /// `None` where a load has no rate.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let message = f64::from(options.request);
        let each = match options.rate? {
            Rate::BitsPerSecond(bits) => bits as f64 / 8.0 / message,
            Rate::RequestsPerSecond(rate) => rate,
        };
        let stream = matches!(
            options.workload,
            Workload::TcpStream | Workload::TcpBidirectional
        );
        Some(Self {
            per_second: each * f64::from(options.streams),
            message,
            one_by_one: !stream,
            limit: match options.limit {
                Some(Limit::Transactions(amount)) => amount as f64,
                Some(Limit::Bytes(amount)) => amount as f64 / message,
                Some(Limit::Time(_)) | None => f64::INFINITY,
            },
        })
    }

    /// Messages that were due so long after the start. Flows begin by turns within an interval, so that together they are
    /// one schedule with its first message at once.
    pub(crate) fn due(&self, since_start: Duration) -> f64 {
        let flowed = self.per_second * since_start.as_secs_f64();
        let due = if self.one_by_one {
            flowed.floor() + 1.0
        } else {
            flowed
        };
        due.min(self.limit)
    }

    /// Messages in what was handed to the kernel: so many bytes, so many whole messages.
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
    use crate::machine::pace::Pace;

    fn requests(rate: f64, streams: u32) -> Options {
        Options {
            rate: Some(Rate::RequestsPerSecond(rate)),
            streams,
            ..Options::new(Workload::TcpRr, [0; 16])
        }
    }

    proptest! {
        #[test]
        fn all_flows_together_are_due_what_each_of_them_is(rate in 1.0..1e5f64, streams in 1u32..64, ms in 0u64..2_000) {
            let table = Timetable::of(&requests(rate, streams)).unwrap();
            let by_flow: u64 = (0..streams)
                .map(|flow| {
                    let mut pace = Pace::new(rate, false, flow, streams);
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
        let stream = Options {
            rate: Some(Rate::BitsPerSecond(8_000)),
            request: 100,
            streams: 2,
            ..Options::new(Workload::TcpStream, [0; 16])
        };
        let table = Timetable::of(&stream).unwrap();
        assert!((table.due(Duration::from_millis(1_050)) - 21.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 2.5).abs() < 1e-9);
        let limited = Options {
            limit: Some(Limit::Transactions(7)),
            ..requests(10.0, 1)
        };
        let table = Timetable::of(&limited).unwrap();
        let due = |ms| table.due(Duration::from_millis(ms));
        assert!((due(0) - 1.0).abs() < 1e-9 && (due(5_000) - 7.0).abs() < 1e-9);
        assert!((table.sent(250, 9) - 9.0).abs() < 1e-9);
        assert_eq!(Timetable::of(&Options::new(Workload::UdpRr, [0; 16])), None);
    }
}
