//! How far a TCP stream with a rate may be ahead of it.
//!
//! The kernel paces what is in the socket (`SO_MAX_PACING_RATE`), but not a connection's first ten segments, and a write
//! takes whatever the socket has room for: at 100 kbit/s a buffer segment of 64 KiB is five seconds of data, which
//! counted as sent at once and was waited for at the end. Small messages that are to leave at once are let through one by
//! one, and the kernel does not pace them.

use super::pace::Pace;
use crate::options::{Options, Rate};

/// What is written at once is due within this time, seconds.
const FINE: f64 = 0.01;
/// Where that is less than a segment, up to a segment, but not more than is due within this time.
const COARSE: f64 = 0.1;
/// What fits into a segment of any usual MTU, bytes.
const SEGMENT: f64 = 1_200.0;

/// Opens for what is due.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pace: Pace,
    /// Bytes that are written at once.
    quantum: f64,
    /// How many of these were due so far.
    granted: u64,
}

impl Gate {
    /// Of one of a load's flows; `None` where it has no rate in bits.
    pub(crate) fn of(options: &Options, flow: u32) -> Option<Self> {
        let Some(Rate::BitsPerSecond(bits)) = options.rate else {
            return None;
        };
        let per_second = bits as f64 / 8.0;
        let paces_messages = options.paces_messages();
        let least = if options.nodelay {
            // Messages that leave at once do so whole.
            SEGMENT.min(f64::from(options.request))
        } else {
            SEGMENT.min(per_second * COARSE)
        };
        let quantum = if paces_messages {
            f64::from(options.request)
        } else {
            (per_second * FINE).max(least).max(1.0)
        };
        Some(Self {
            // What a path that stood still holds back may all be written afterwards where the kernel's pacing keeps that
            // apart, and only there.
            pace: Pace::new(per_second / quantum, paces_messages, flow, options.streams),
            quantum,
            granted: 0,
        })
    }

    /// The rate counts from `start`.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let Some(start) = start {
            self.pace.begin(start);
        }
    }

    /// Bytes that may be written at `now` where `written` were before, or when there will be some.
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

    fn gate(bits: u64, streams: u32, flow: u32) -> Gate {
        let options = Options {
            rate: Some(Rate::BitsPerSecond(bits)),
            streams,
            ..Options::new(Workload::TcpStream, [0; 16])
        };
        Gate::of(&options, flow).unwrap()
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
        assert!(Gate::of(&Options::new(Workload::TcpStream, [0; 16]), 0).is_none());
    }

    #[test]
    fn messages_that_leave_at_once_are_not_cut() {
        let options = Options {
            rate: Some(Rate::BitsPerSecond(80_000)),
            nodelay: true,
            request: 1_000,
            ..Options::new(Workload::TcpStream, [0; 16])
        };
        let mut gate = Gate::of(&options, 0).unwrap();
        assert_eq!(gate.open(0, 0), Ok(1_000));
        assert_eq!(gate.open(1, 1_000), Err(100_000_000));
    }

    #[test]
    fn small_messages_come_one_by_one_and_no_burst_makes_up_for_a_stall() {
        let options = Options {
            rate: Some(Rate::BitsPerSecond(8_000_000)),
            nodelay: true,
            request: 100,
            ..Options::new(Workload::TcpStream, [0; 16])
        };
        let mut gate = Gate::of(&options, 0).unwrap();
        assert_eq!(gate.open(0, 0), Ok(100));
        assert_eq!(gate.open(1, 100), Err(100_000));
        assert_eq!(gate.open(100_000, 100), Ok(100));
        // A second later: what was due within 10 ms, and the one that is due now.
        assert_eq!(gate.open(1_000_000_000, 200), Ok(101 * 100));
    }
}
