//! A set of pages of a machine.

/// A set of page numbers, one bit for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageSet {
    bits: Box<[u64]>,
    count: u32,
}

impl PageSet {
    /// An empty set for a machine of `pages` pages.
    pub(crate) fn none_of(pages: u32) -> Self {
        Self {
            bits: vec![0; pages.div_ceil(64) as usize].into_boxed_slice(),
            count: 0,
        }
    }

    /// Number of pages in the set.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Whether the set contains a page.
    pub(crate) fn contains(&self, page: u32) -> bool {
        let word = self.bits.get((page / 64) as usize);
        word.is_some_and(|word| word & 1 << (page % 64) != 0)
    }

    /// Adds a page; `false` where the set contains it already, or has no bit for it.
    pub(crate) fn insert(&mut self, page: u32) -> bool {
        let new = !self.contains(page) && (page / 64) < self.bits.len() as u32;
        if new {
            self.bits[(page / 64) as usize] |= 1 << (page % 64);
            self.count += 1;
        }
        new
    }

    /// Removes a page; `false` where the set does not contain it.
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let there = self.contains(page);
        if there {
            self.bits[(page / 64) as usize] &= !(1 << (page % 64));
            self.count -= 1;
        }
        there
    }

    /// The first page of the set at or after `page`, else the first page of the set; `None`: the set is empty.
    pub(crate) fn next_from(&self, page: u32) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let words = self.bits.len();
        let begin = (page / 64) as usize % words;
        // The word of `page` is searched twice: first from `page` on, and at the end for pages before it.
        (0..=words).find_map(|step| {
            let at = (begin + step) % words;
            let from = if step == 0 {
                u64::MAX << (page % 64)
            } else {
                u64::MAX
            };
            let found = self.bits[at] & from;
            (found != 0).then(|| at as u32 * 64 + found.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_was_added_and_not_taken_out(
            pages in 1u32..300, steps in proptest::collection::vec((any::<bool>(), 0u32..300), 0..200),
        ) {
            let (mut set, mut model) = (PageSet::none_of(pages), BTreeSet::new());
            for (adds, page) in steps {
                let page = page % pages;
                if adds {
                    prop_assert_eq!(set.insert(page), model.insert(page));
                } else {
                    prop_assert_eq!(set.remove(page), model.remove(&page));
                }
                prop_assert_eq!(set.len() as usize, model.len());
                prop_assert_eq!(set.contains(page), model.contains(&page));
                for from in [0, page, pages - 1] {
                    let next = model.range(from..).next().or_else(|| model.first()).copied();
                    prop_assert_eq!(set.next_from(from), next);
                }
            }
        }
    }

    #[test]
    fn what_no_machine_has_is_not_in_it() {
        let mut set = PageSet::none_of(64);
        assert!(!set.insert(64) && !set.remove(u32::MAX) && !set.contains(64));
        assert_eq!(set.next_from(0), None);
    }
}
