//! What has arrived of a read's data, which may come in chunks of any order.

use std::ops::Range;

/// Upper bound on the ranges that are kept: memory is bounded whatever a server sends.
const MAX_APART: usize = 1024;

/// The parts of a read's data that have arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrivedData {
    /// Bytes that have arrived without a gap, from the beginning of the read on.
    front: u32,
    /// Ranges of bytes beyond these, counted from the beginning of the read: ascending, with gaps between them.
    apart: Vec<Range<u32>>,
}

impl ArrivedData {
    /// Forgets what has arrived, for another read.
    pub fn clear(&mut self) {
        self.front = 0;
        self.apart.clear();
    }

    /// Whether all bytes of a read of this length have arrived.
    pub(crate) fn is_all(&self, length: u32) -> bool {
        self.front == length
    }

    /// Adds a range of bytes, at least one, counted from the beginning of the read.
    ///
    /// # Errors
    /// What is wrong with the range, in words: some of it has arrived before, or there are more than [`MAX_APART`] with
    /// gaps between them.
    pub(crate) fn add(&mut self, range: Range<u32>) -> Result<(), &'static str> {
        let at = self
            .apart
            .partition_point(|other| other.start < range.start);
        let before = at
            .checked_sub(1)
            .map_or(self.front, |last| self.apart[last].end);
        let next = self.apart.get(at).map(|other| other.start);
        if range.start < before || next.is_some_and(|next| next < range.end) {
            return Err("data that came twice");
        }
        let joins_next = next == Some(range.end);
        if range.start == self.front {
            self.front = if joins_next {
                self.apart.remove(at).end
            } else {
                range.end
            };
            return Ok(());
        }
        match (range.start == before, joins_next) {
            (true, true) => self.apart[at - 1].end = self.apart.remove(at).end,
            (true, false) => self.apart[at - 1].end = range.end,
            (false, true) => self.apart[at].start = range.start,
            (false, false) if self.apart.len() >= MAX_APART => {
                return Err("data in too many pieces with gaps between them");
            }
            (false, false) => self.apart.insert(at, range),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_came_twice_does_not_stand_for_what_is_missing() {
        let mut arrived = ArrivedData::default();
        assert_eq!(arrived.add(0..512), Ok(()));
        let twice = Err("data that came twice");
        for range in [0..512, 0..1, 511..600] {
            assert_eq!(arrived.add(range), twice);
        }
        assert_eq!(arrived.add(600..700), Ok(()));
        for range in [600..700, 550..601, 699..1024, 512..1024] {
            assert_eq!(arrived.add(range), twice);
        }
        assert!(!arrived.is_all(700));
        assert_eq!(arrived.add(512..600), Ok(()));
        assert!(arrived.is_all(700));
        arrived.clear();
        assert_eq!(arrived, ArrivedData::default());
    }

    #[test]
    fn pieces_with_gaps_are_bounded() {
        let mut arrived = ArrivedData::default();
        let pieces = (1..).step_by(2).map(|at| arrived.add(at..at + 1));
        assert_eq!(pieces.take_while(Result::is_ok).count(), MAX_APART);
    }

    proptest! {
        #[test]
        fn all_has_arrived_with_the_last_piece_whatever_their_order(
            order in Just((0u32..40).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut arrived = ArrivedData::default();
            for (count, piece) in order.iter().enumerate() {
                prop_assert!(!arrived.is_all(400), "after {count}");
                prop_assert_eq!(arrived.add(piece * 10..piece * 10 + 10), Ok(()));
                prop_assert!(arrived.add(piece * 10 + 9..piece * 10 + 10).is_err());
            }
            prop_assert!(arrived.is_all(400));
        }
    }
}
