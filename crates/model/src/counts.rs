//! What one flow of a load counts.
//!
//! Each figure is declared once, here: how it is taken over a window and summed over flows follows from its kind. What
//! counts it is in the traffic engine (`traffic/src/flow.rs`).

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Only grows: a window has the difference, several flows have the sum.
mod counter {
    pub(super) const fn since(after: u64, before: u64) -> u64 {
        after.saturating_sub(before)
    }

    pub(super) const fn sum(one: u64, other: u64) -> u64 {
        one + other
    }
}

/// A state: a window has the one at its end, several flows have the largest.
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
        /// What one flow counted. All of it is of messages; headers of packets are not in it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct Counts {
            $($(#[$about])* pub $name: u64,)*
        }

        impl Counts {
            /// What was counted since `before`.
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
    /// Datagrams, requests or responses read, each counted once; at a client those that came in time: its
    /// transactions.
    received: counter,
    /// Datagrams that must have been sent, by the highest number read; at the end by what the sender says.
    expected: counter,
    /// Datagrams read that had been read before; responses likewise.
    duplicated: counter,
    /// Of those received, the ones that came after a higher number (RFC 4737).
    reordered: counter,
    /// So late that it is not known any more whether they are duplicates: neither received nor duplicated.
    too_old: counter,
    /// Interarrival jitter, nanoseconds (RFC 3550). Arrival is when the application read it: one reading of the clock
    /// for each batch.
    jitter_ns: gauge,
    /// Requests given up.
    timeouts: counter,
    /// Responses to requests that had been given up: never a latency.
    late: counter,
    /// Sends from the load's own pages (`MSG_ZEROCOPY`).
    zero_copy: counter,
    /// Of these, the ones that the kernel is done with.
    zero_copy_completed: counter,
    /// Of these, the ones that it copied after all.
    zero_copy_copied: counter,
    /// Sends with a copy since the kernel took no more of the load's pages.
    zero_copy_fallbacks: counter,
}

impl Counts {
    /// Bytes both ways.
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
