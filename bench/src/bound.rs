//! What has to hold in a row.

use std::fmt;

use wirecost_stats::Interval;

/// What has to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// The lower end of the ratio's interval is at least this.
    AtLeast(f64),
    /// The whole interval is within so much of 1, at half the rate that the stack can.
    Agree(f64),
    /// Nothing: it is told for comparison.
    Shown,
    /// No error, and peak memory of each end's process below so many bytes.
    Memory(u64),
}

impl Bound {
    /// Where the whole interval of the ratio has to be, ends included; `None` where none has to be anywhere.
    fn range(self) -> Option<[f64; 2]> {
        match self {
            Self::AtLeast(times) => Some([times, f64::INFINITY]),
            Self::Agree(by) => Some([1.0 - by, 1.0 + by]),
            Self::Shown | Self::Memory(_) => None,
        }
    }

    /// What the ratio has to be at least, where it is that.
    pub(crate) fn least(self) -> Option<f64> {
        match self {
            Self::AtLeast(times) => Some(times),
            Self::Agree(_) | Self::Shown | Self::Memory(_) => None,
        }
    }

    /// Whether the interval is where it has to be; `None` where nothing has to hold.
    pub(crate) fn reached(self, interval: Option<Interval>) -> Option<bool> {
        let is_in = |([low, high], interval): ([f64; 2], Interval)| {
            interval.low >= low && interval.high <= high
        };
        (self != Self::Shown).then(|| self.range().zip(interval).is_some_and(is_in))
    }

    /// Whether more pairs would not change that: all of the interval is on one side of each end.
    pub(crate) fn is_settled(self, interval: Option<Interval>) -> bool {
        self.range().is_none_or(|[low, high]| {
            self.reached(interval) == Some(true)
                || interval.is_some_and(|interval| interval.high < low || interval.low > high)
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(times) => write!(f, "at least {times}"),
            Self::Agree(by) => write!(f, "1 within {} %", by * 100.0),
            Self::Shown => f.write_str("shown"),
            Self::Memory(bytes) => write!(f, "below {} MiB at each end", bytes >> 20),
        }
    }
}
