//! Post-copy at the source: what one connection sends once the machine resumes at its destination. First which pages
//! are missing there, then these pages, requested ones first. No I/O.

use std::collections::VecDeque;

use super::page_set::PageSet;
use super::pages::PageRange;
use super::record::{Kind, MAX_RANGES};

/// Upper bound on the pages of a record that were not requested: a page that is requested meanwhile waits for no more
/// than these.
pub(crate) const MAX_PUSHED_PAGES: usize = 16;

/// What is left to announce and to send.
#[derive(Debug)]
pub(crate) struct PostCopySender {
    /// Pages missing at the destination that have not been announced.
    unannounced: VecDeque<PageRange>,
    /// The destination has been told that all missing pages are announced ([`Kind::Switch`]).
    switched: bool,
    /// Pages that have not been sent.
    left: PageSet,
    /// Pages that the destination has requested, in order.
    asked: VecDeque<u32>,
    /// Where to continue without requests: behind the page sent last, since a machine that writes in order needs the
    /// next ones.
    cursor: u32,
}

impl PostCopySender {
    /// The pages of `list` are to be sent, of a machine with `pages` pages.
    pub(crate) fn new(list: &[PageRange], pages: u32) -> Self {
        let mut left = PageSet::none_of(pages);
        let all = list
            .iter()
            .flat_map(|range| range.first..range.first + range.count);
        for page in all {
            left.insert(page);
        }
        Self {
            unannounced: list.iter().copied().collect(),
            switched: false,
            left,
            asked: VecDeque::new(),
            cursor: 0,
        }
    }

    /// Notes that the machine waits for a page. A page that was sent already is under way.
    pub(crate) fn ask(&mut self, page: u32) {
        if self.left.contains(page) {
            self.asked.push_back(page);
        }
    }

    /// The kind of the next record; `ranges` are the pages that it announces or sends. `End`: nothing is left.
    pub(crate) fn next(&mut self, ranges: &mut Vec<PageRange>) -> Kind {
        ranges.clear();
        if !self.unannounced.is_empty() {
            let count = self.unannounced.len().min(MAX_RANGES);
            ranges.extend(self.unannounced.drain(..count));
            return Kind::Missing;
        }
        if !self.switched {
            self.switched = true;
            return Kind::Switch;
        }
        while let Some(page) = self.asked.pop_front() {
            if self.left.remove(page) {
                self.cursor = page + 1;
                ranges.push(PageRange {
                    first: page,
                    count: 1,
                });
                return Kind::Pages;
            }
        }
        for _ in 0..MAX_PUSHED_PAGES {
            let Some(page) = self.left.next_from(self.cursor) else {
                break;
            };
            self.left.remove(page);
            self.cursor = page + 1;
            match ranges.last_mut() {
                Some(last) if last.first + last.count == page => last.count += 1,
                _ => ranges.push(PageRange {
                    first: page,
                    count: 1,
                }),
            }
        }
        if ranges.is_empty() {
            Kind::End
        } else {
            Kind::Pages
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, count: u32) -> PageRange {
        PageRange { first, count }
    }

    #[test]
    fn what_is_missing_is_told_before_the_machine_goes_on_and_what_it_waits_for_comes_first() {
        let mut sender = PostCopySender::new(&[range(10, 20), range(40, 2)], 64);
        let mut ranges = Vec::new();
        assert_eq!(sender.next(&mut ranges), Kind::Missing);
        assert_eq!(ranges, [range(10, 20), range(40, 2)]);
        assert_eq!(sender.next(&mut ranges), Kind::Switch);
        assert_eq!(sender.next(&mut ranges), Kind::Pages);
        assert_eq!(ranges, [range(10, 16)]);
        // Under way, not there at all, twice, and of no machine.
        for page in [12, 5, 40, 40, u32::MAX] {
            sender.ask(page);
        }
        assert_eq!(sender.next(&mut ranges), Kind::Pages);
        assert_eq!(ranges, [range(40, 1)]);
        // It goes on where the machine is.
        assert_eq!(sender.next(&mut ranges), Kind::Pages);
        assert_eq!(ranges, [range(41, 1), range(26, 4)]);
        assert_eq!(sender.next(&mut ranges), Kind::End);
    }

    proptest! {
        #[test]
        fn every_page_is_sent_once_whatever_is_asked_for(
            first in 0u32..200, count in 0u32..100, asked in proptest::collection::vec(0u32..400, 0..50),
        ) {
            let list = [range(first, count), range(310, 7)];
            let list = if count == 0 { &list[1..] } else { &list[..] };
            let mut sender = PostCopySender::new(list, 400);
            let (mut ranges, mut sent, mut asked) = (Vec::new(), Vec::new(), asked.into_iter());
            loop {
                match sender.next(&mut ranges) {
                    Kind::End => break,
                    Kind::Pages => sent.extend(ranges.iter().flat_map(|one| one.first..one.first + one.count)),
                    _ => {}
                }
                asked.next().into_iter().for_each(|page| sender.ask(page));
            }
            sent.sort_unstable();
            let all: Vec<u32> = list.iter().flat_map(|one| one.first..one.first + one.count).collect();
            prop_assert_eq!(sent, all);
        }
    }
}
