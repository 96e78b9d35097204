//! What one flow of a load counts.
//!
//! Each counter is declared once, here: its kind says how it is taken over a window and summed over flows. The traffic
//! engine counts (`traffic/src/flow.rs`).

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// A count that only grows: a window has the difference, several flows have the sum.
mod counter {
    pub(super) const fn since(after: u64, before: u64) -> u64 {
        after.saturating_sub(before)
    }

    pub(super) const fn sum(one: u64, other: u64) -> u64 {
        one + other
    }
}

/// A state: a window has the value at its end, several flows have the largest.
mod gauge {
    pub(super) const fn since(after: u64, _: u64) -> u64 {
        after
    }

    pub(super) fn sum(one: u64, other: u64) -> u64 {
        one.max(other)
    }
}

macro_rules! counts {
    ($($(#[$about:meta])* $name:ident: $kind:ident,)*) => {
        /// What one flow counted, in messages and their bytes; packet headers are not included.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct Counts {
            $($(#[$about])* pub $name: u64,)*
        }

        impl Counts {
            /// The counts since the earlier snapshot `before`.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { $($name: $kind::since(self.$name, before.$name),)* }
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name = $kind::sum(self.$name, other.$name);)*
            }
        }
    };
}

counts! {
    /// Bytes handed to the kernel.
    sent_bytes: counter,
    /// Bytes that the application read.
    read_bytes: counter,
    /// Datagrams, requests or responses handed to the kernel. A TCP stream has none.
    sent: counter,
    /// Datagrams, requests or responses read, each counted once. At a client only responses in time: its transactions.
    received: counter,
    /// Datagrams that must have been sent, by the highest sequence number read; once the load has ended, by the
    /// sender's count.
    expected: counter,
    /// Datagrams or responses read that had been read before.
    duplicated: counter,
    /// Received datagrams that came after one with a higher number (RFC 4737).
    reordered: counter,
    /// Datagrams so late that duplicates can no longer be recognised: counted neither as received nor as duplicated.
    too_old: counter,
    /// Interarrival jitter, nanoseconds (RFC 3550). Arrival is when the application read the datagram: one reading of
    /// the clock for each batch.
    jitter_ns: gauge,
    /// Requests without a response in time.
    timeouts: counter,
    /// Responses to requests that had timed out: they enter no latency.
    late: counter,
    /// Sends from the load's own pages (`MSG_ZEROCOPY`).
    zero_copy: counter,
    /// Zero-copy sends that the kernel has completed.
    zero_copy_completed: counter,
    /// Completed zero-copy sends whose data the kernel copied after all.
    zero_copy_copied: counter,
    /// Sends with a copy, because the kernel pinned no more of the load's pages.
    zero_copy_fallbacks: counter,
}

impl Counts {
    /// Bytes sent and read.
    pub const fn bytes(&self) -> u64 {
        self.sent_bytes + self.read_bytes
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_subtracted_and_added_and_a_gauge_is_neither() {
        let at = |sent, jitter_ns| Counts {
            sent,
            jitter_ns,
            ..Counts::default()
        };
        assert_eq!(at(7, 30).since(&at(5, 90)), at(2, 30));
        let all: Counts = [at(1, 20), at(2, 50), at(3, 10)].into_iter().sum();
        assert_eq!(all, at(6, 50));
    }
}
