//! Loss, duplication, reordering and jitter of numbered datagrams, from the order of their arrival. No I/O, no clock.

/// Numbers below the highest within which a duplicate is recognised.
pub(crate) const WINDOW: u64 = 16_384;

/// The numbers that one flow's receiver has seen.
#[derive(Debug, Clone)]
pub(crate) struct SequenceTracker {
    /// A bit for each of the last [`WINDOW`] numbers below `next`, at the number modulo `WINDOW`.
    seen: Box<[u64; (WINDOW / 64) as usize]>,
    /// One above the highest number that arrived.
    next: u64,
    received: u64,
    duplicated: u64,
    reordered: u64,
    too_old: u64,
    jitter: Jitter,
}

/// What a datagram is, given those that arrived before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Its number is above all that arrived before.
    InOrder,
    /// Its first arrival, but after a higher number (RFC 4737, section 3.3).
    Reordered,
    /// It had arrived before.
    Duplicate,
    /// More than [`WINDOW`] numbers behind the highest: it is not known whether it is a duplicate.
    TooOld,
}

impl SequenceTracker {
    pub(crate) fn new() -> Self {
        Self {
            seen: Box::new([0; (WINDOW / 64) as usize]),
            next: 0,
            received: 0,
            duplicated: 0,
            reordered: 0,
            too_old: 0,
            jitter: Jitter::default(),
        }
    }

    /// Records the datagram `number`, sent and received at these times in nanoseconds, each by the clock of its own
    /// end.
    pub(crate) fn record(&mut self, number: u64, sent: Timestamp, arrived_ns: u64) -> Arrival {
        let arrival = self.place(number);
        match arrival {
            Arrival::InOrder | Arrival::Reordered => {
                self.received += 1;
                self.reordered += u64::from(arrival == Arrival::Reordered);
                self.jitter.record(sent, arrived_ns);
            }
            Arrival::Duplicate => self.duplicated += 1,
            Arrival::TooOld => self.too_old += 1,
        }
        arrival
    }

    fn place(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            self.advance(number);
            return Arrival::InOrder;
        }
        if self.next - number > WINDOW {
            return Arrival::TooOld;
        }
        let (word, bit) = place_of(number);
        if self.seen[word] & bit != 0 {
            return Arrival::Duplicate;
        }
        self.seen[word] |= bit;
        Arrival::Reordered
    }

    fn advance(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
        } else {
            for skipped in self.next..number {
                let (word, bit) = place_of(skipped);
                self.seen[word] &= !bit;
            }
        }
        let (word, bit) = place_of(number);
        self.seen[word] |= bit;
        self.next = number + 1;
    }

    /// Datagrams that arrived, each counted once.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Datagrams sent, as far as the receiver knows: one above the highest number.
    pub(crate) fn expected(&self) -> u64 {
        self.next
    }

    /// Datagrams that had arrived before.
    pub(crate) fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Received datagrams that came after a higher number.
    pub(crate) fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Datagrams more than [`WINDOW`] numbers behind the highest: counted neither as received nor as duplicated.
    pub(crate) fn too_old(&self) -> u64 {
        self.too_old
    }

    /// Interarrival jitter (RFC 3550), nanoseconds.
    pub(crate) fn jitter_ns(&self) -> u64 {
        self.jitter.estimate as u64
    }
}

fn place_of(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

/// A sending time as carried in a datagram: units of 64 ns, modulo 2^32 (275 s).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp(pub(crate) u32);

impl Timestamp {
    pub(crate) fn of(ns: u64) -> Self {
        Self((ns >> 6) as u32)
    }
}

/// Interarrival jitter (RFC 3550, section 6.4.1 and appendix A.8). A constant offset between the clocks does not
/// matter.
#[derive(Debug, Clone, Default)]
struct Jitter {
    last_transit: Option<u32>,
    /// The jitter, nanoseconds.
    estimate: f64,
}

impl Jitter {
    fn record(&mut self, sent: Timestamp, arrived_ns: u64) {
        let transit = Timestamp::of(arrived_ns).0.wrapping_sub(sent.0);
        if let Some(last) = self.last_transit.replace(transit) {
            let change = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            self.estimate += (f64::from(change) * 64.0 - self.estimate) / 16.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn record_all(numbers: impl IntoIterator<Item = u64>) -> SequenceTracker {
        let mut tracker = SequenceTracker::new();
        for number in numbers {
            tracker.record(number, Timestamp(0), 0);
        }
        tracker
    }

    proptest! {
        #[test]
        fn every_arrival_within_the_window_is_told_for_what_it_is(numbers in prop::collection::vec(0..WINDOW, 0..300)) {
            let mut tracker = SequenceTracker::new();
            let (mut seen, mut next) = (HashSet::new(), 0);
            for number in numbers {
                let expected = if number >= next {
                    Arrival::InOrder
                } else if seen.contains(&number) {
                    Arrival::Duplicate
                } else {
                    Arrival::Reordered
                };
                prop_assert_eq!(tracker.record(number, Timestamp(0), 0), expected);
                seen.insert(number);
                next = next.max(number + 1);
            }
            prop_assert_eq!(tracker.received(), seen.len() as u64);
            prop_assert_eq!(tracker.expected(), next);
        }

        #[test]
        fn loss_is_what_is_missing_however_the_rest_is_ordered(
            lost in prop::collection::hash_set(0u64..1_000, 0..300), order in Just((0u64..1_000).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            // The last one arrives, or nobody could know that it was sent.
            let tracker = record_all(order.into_iter().filter(|number| *number == 999 || !lost.contains(number)));
            let missing = lost.iter().filter(|number| **number != 999).count() as u64;
            prop_assert_eq!(tracker.expected() - tracker.received(), missing);
            prop_assert_eq!((tracker.duplicated(), tracker.too_old()), (0, 0));
        }

        #[test]
        fn the_window_moves_along_without_remembering_what_left_it(
            steps in prop::collection::vec(1..3 * WINDOW, 1..100),
        ) {
            let mut number = 0;
            let mut tracker = SequenceTracker::new();
            for step in steps {
                number += step;
                prop_assert_eq!(tracker.record(number, Timestamp(0), 0), Arrival::InOrder);
                let before = number.saturating_sub(step.min(WINDOW) - 1);
                let expected = if before == number { Arrival::Duplicate } else { Arrival::Reordered };
                prop_assert_eq!(tracker.record(before, Timestamp(0), 0), expected);
            }
        }

        #[test]
        fn a_constant_difference_of_clocks_is_no_jitter(offset: u32, gaps in prop::collection::vec(0u64..1_000_000, 2..50)) {
            let mut tracker = SequenceTracker::new();
            let mut at = 0;
            for (number, gap) in (0..).zip(gaps) {
                at += gap * 64;
                tracker.record(number, Timestamp(Timestamp::of(at).0.wrapping_add(offset)), at);
            }
            prop_assert_eq!(tracker.jitter_ns(), 0);
        }

        #[test]
        fn jitter_never_exceeds_the_largest_change_of_transit_time(late in prop::collection::vec(0u64..1_000, 2..200)) {
            let mut tracker = SequenceTracker::new();
            for (number, late) in (0u64..).zip(&late) {
                let sent = number * 64_000;
                tracker.record(number, Timestamp::of(sent), sent + late * 64);
            }
            let largest = late.windows(2).map(|pair| pair[0].abs_diff(pair[1]) * 64).max().unwrap();
            prop_assert!(tracker.jitter_ns() <= largest);
        }
    }

    #[test]
    fn jitter_follows_the_rfcs_recurrence() {
        let mut tracker = SequenceTracker::new();
        // Transit times 0, 16, 0 units of 64 ns: |D| = 1024 ns twice; J = 64, then 64 + (1024 - 64) / 16 = 124.
        for (number, late) in [(0, 0), (1, 1024), (2, 0)] {
            let sent = number * 64_000;
            tracker.record(number, Timestamp::of(sent), sent + late);
        }
        assert_eq!(tracker.jitter_ns(), 124);
    }

    #[test]
    fn what_is_too_far_behind_is_neither_received_nor_a_duplicate() {
        let tracker = record_all([WINDOW, 0]);
        assert_eq!((tracker.received(), tracker.too_old()), (1, 1));
        let tracker = record_all([WINDOW, 1]);
        assert_eq!((tracker.received(), tracker.reordered()), (2, 1));
    }
}
