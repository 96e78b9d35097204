//! A record of a migration as it is sent: a head, and pages from the machine's memory.

use std::ops::Range;

use wirecost_sys::shared_memory::Part;

use crate::migration::pages::{MAX_PAGES, PageRange, bytes_of, is_zero};
use crate::migration::record::{HEAD_BYTES, Kind, MAX_RANGES, encode, encode_switch};
use crate::migration::source::Source;

pub(super) struct MoveRecord {
    head: [u8; HEAD_BYTES],
    /// Byte ranges of the machine's memory that follow the head.
    data: Vec<Range<usize>>,
    /// Page ranges of the head, each with whether its pages are zero.
    ranges: Vec<(PageRange, bool)>,
    /// Bytes of the record that were sent.
    sent: usize,
    /// Bytes of the record, head and data.
    bytes: usize,
}

impl MoveRecord {
    /// A record that is completely sent.
    pub(super) fn sent() -> Self {
        Self {
            head: [0; HEAD_BYTES],
            data: Vec::with_capacity(MAX_RANGES),
            ranges: Vec::with_capacity(MAX_RANGES),
            sent: HEAD_BYTES,
            bytes: HEAD_BYTES,
        }
    }

    /// Makes this a record without pages.
    pub(super) fn set_empty(&mut self, kind: Kind) {
        self.ranges.clear();
        self.begin(kind);
    }

    /// Makes this a record that names pages, without their content.
    pub(super) fn set_ranges(&mut self, kind: Kind, pages: &[PageRange]) {
        self.ranges.clear();
        self.ranges
            .extend(pages.iter().map(|range| (*range, false)));
        encode(kind, &self.ranges, &mut self.head);
        self.restart();
    }

    /// Makes this the record that resumes the machine at its destination, after `writes` writes.
    pub(super) fn switch(&mut self, writes: u64) {
        encode_switch(writes, &mut self.head);
        self.restart();
    }

    /// Makes this a record of the next pages of `list`, from index `at` on, and takes these from the list. Returns
    /// how many have content and how many are zero.
    pub(super) fn fill(
        &mut self,
        machine: &Source,
        list: &mut [PageRange],
        at: &mut usize,
    ) -> [u64; 2] {
        self.ranges.clear();
        let mut counts = [0; 2];
        while let Some(range) = list.get_mut(*at) {
            let first = range.first;
            let zero = is_zero(&machine.memory, first);
            if counts[0] + counts[1] == MAX_PAGES as u64 {
                break;
            }
            let more = match self.ranges.last_mut() {
                Some((before, kind)) if *kind == zero && before.first + before.count == first => {
                    before.count += 1;
                    true
                }
                _ => false,
            };
            if !more {
                if self.ranges.len() == MAX_RANGES {
                    break;
                }
                self.ranges.push((PageRange { first, count: 1 }, zero));
            }
            counts[usize::from(zero)] += 1;
            range.first += 1;
            range.count -= 1;
            if range.count == 0 {
                *at += 1;
            }
        }
        if counts != [0; 2] {
            self.begin(Kind::Pages);
        }
        counts
    }

    fn begin(&mut self, kind: Kind) {
        encode(kind, &self.ranges, &mut self.head);
        self.restart();
        let full = self.ranges.iter().filter(|(_, zero)| !zero);
        self.data.extend(full.map(|(range, _)| bytes_of(*range)));
        self.bytes += self.data.iter().map(Range::len).sum::<usize>();
    }

    /// Starts over: nothing of the head is sent, and no content follows.
    fn restart(&mut self) {
        self.data.clear();
        (self.sent, self.bytes) = (0, HEAD_BYTES);
    }

    pub(super) fn is_sent(&self) -> bool {
        self.sent == self.bytes
    }

    /// Notes `sent` more bytes as sent. Returns how many of them were content of pages.
    pub(super) fn advance(&mut self, sent: usize) -> u64 {
        let data = |at: usize| at.saturating_sub(HEAD_BYTES) as u64;
        let before = data(self.sent);
        self.sent += sent;
        data(self.sent) - before
    }

    /// The parts that are left to send.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let head = (self.sent < HEAD_BYTES).then(|| Part::Bytes(&self.head[self.sent..]));
        let mut skip = self.sent.saturating_sub(HEAD_BYTES);
        let data = self.data.iter().filter_map(move |range| {
            let skipped = skip.min(range.len());
            skip -= skipped;
            let left = range.start + skipped..range.end;
            (!left.is_empty()).then_some(Part::Memory(left))
        });
        head.into_iter().chain(data)
    }
}
