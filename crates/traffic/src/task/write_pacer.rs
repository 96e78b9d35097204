//! Limits how far a TCP stream with a rate may be ahead of the rate.
//!
//! The kernel paces what is in the socket (`SO_MAX_PACING_RATE`), but not the first ten segments, and a write takes
//! whatever fits into the socket: at 100 kbit/s 64 KiB are five seconds of data, which would count as sent at once.
//! Small messages without Nagle's algorithm are paced here one by one, and not by the kernel.

use super::pacer::Pacer;
use crate::options::{Options, Rate};

/// A write holds what is due within this time, seconds.
const FINE: f64 = 0.01;
/// Where that is less than a segment a write holds up to a segment, but no more than is due within this time, seconds.
const COARSE: f64 = 0.1;
/// Payload of a segment at any usual MTU, bytes.
const SEGMENT: f64 = 1_200.0;

/// Paces the writes of one flow.
#[derive(Debug, Clone)]
pub(crate) struct WritePacer {
    pace: Pacer,
    /// Bytes of a write.
    quantum: f64,
    /// Writes that have become due.
    granted: u64,
}

impl WritePacer {
    /// The pacer of one flow; `None` where the load has no rate in bit/s.
    pub(crate) fn of(options: &Options, flow: u32) -> Option<Self> {
        let Some(Rate::BitsPerSecond(bits)) = options.load.rate else {
            return None;
        };
        let per_second = bits as f64 / 8.0;
        let paces_messages = options.paces_messages();
        let least = if options.load.nodelay {
            // With `TCP_NODELAY` messages smaller than a segment are not split.
            SEGMENT.min(f64::from(options.load.request))
        } else {
            SEGMENT.min(per_second * COARSE)
        };
        let quantum = if paces_messages {
            f64::from(options.load.request)
        } else {
            (per_second * FINE).max(least).max(1.0)
        };
        Some(Self {
            // Where the kernel paces the stream, and only there, everything due may be written after a stall.
            pace: Pacer::new(
                per_second / quantum,
                paces_messages,
                flow,
                options.load.streams,
            ),
            quantum,
            granted: 0,
        })
    }

    /// Starts the schedule at `start`, if sending has started.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let Some(start) = start {
            self.pace.begin(start);
        }
    }

    /// Bytes that may be written at `now` after `written` bytes of the stream.
    ///
    /// # Errors
    /// When the next write is due, nanoseconds, where nothing may be written yet.
    pub(crate) fn open(&mut self, now: u64, written: u64) -> Result<usize, u64> {
        let due = self.pace.due(now);
        self.pace.sent(due);
        self.granted += due;
        let left = self.granted as f64 * self.quantum - written as f64;
        if left >= 1.0 {
            Ok(left as usize)
        } else {
            Err(self.pace.next())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Workload;

    fn gate(bits: u64, streams: u32, flow: u32) -> WritePacer {
        let options = Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.rate = Some(Rate::BitsPerSecond(bits));
            load.streams = streams;
        });
        WritePacer::of(&options, flow).unwrap()
    }

    proptest! {
        #[test]
        fn whoever_writes_what_is_due_keeps_the_rate(
            bits in 8u64..100_000_000_000, steps in prop::collection::vec(1u64..500_000_000, 1..50),
        ) {
            let mut gate = gate(bits, 1, 0);
            let (mut now, mut written) = (7, 0);
            for step in steps {
                if let Ok(due) = gate.open(now, written) {
                    prop_assert!(due >= 1);
                    written += due as u64;
                }
                let fair = (now - 7) as f64 / 1e9 * bits as f64 / 8.0;
                let ahead = written as f64 - fair;
                prop_assert!(ahead <= gate.quantum + 1.0 + fair * 1e-9, "{ahead}");
                // The next ones are due within a tenth of a second, or when it is time for a byte.
                let next = gate.open(now, written).unwrap_err();
                let wait = (next - now) as f64 / 1e9;
                prop_assert!(wait <= (COARSE + 8.0 / bits as f64) * 1.01 + 2e-9, "{wait}");
                prop_assert!(gate.clone().open(next + 1, written).is_ok());
                now += step;
            }
        }
    }

    #[test]
    fn flows_take_turns_and_a_stream_without_a_rate_has_no_gate() {
        let first = |flow| gate(8_000_000, 4, flow).open(100, 0);
        assert_eq!(first(0), Ok(10_000));
        assert_eq!(first(1), Err(100 + 2_500_000));
        assert_eq!(first(3), Err(100 + 7_500_000));
        assert!(WritePacer::of(&Options::new(Workload::TcpStream, [0; 16]), 0).is_none());
    }

    #[test]
    fn messages_that_leave_at_once_are_not_cut() {
        let options = Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.rate = Some(Rate::BitsPerSecond(80_000));
            load.nodelay = true;
            load.request = 1_000;
        });
        let mut gate = WritePacer::of(&options, 0).unwrap();
        assert_eq!(gate.open(0, 0), Ok(1_000));
        assert_eq!(gate.open(1, 1_000), Err(100_000_000));
    }

    #[test]
    fn small_messages_come_one_by_one_and_no_burst_makes_up_for_a_stall() {
        let options = Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.rate = Some(Rate::BitsPerSecond(8_000_000));
            load.nodelay = true;
            load.request = 100;
        });
        let mut gate = WritePacer::of(&options, 0).unwrap();
        assert_eq!(gate.open(0, 0), Ok(100));
        assert_eq!(gate.open(1, 100), Err(100_000));
        assert_eq!(gate.open(100_000, 100), Ok(100));
        // A second later: what was due within 10 ms, and the one that is due now.
        assert_eq!(gate.open(1_000_000_000, 200), Ok(101 * 100));
    }
}
