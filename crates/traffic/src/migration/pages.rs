//! Pages of a machine: which go over which connection, what they contain, and their digest.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use wirecost_model::load::Migration;
use wirecost_sys::shared_memory::SharedMemory;

use crate::storage::content::mix;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Upper bound on the pages of one record; also the number of consecutive pages with the same connection.
pub(crate) const MAX_PAGES: usize = 64;
/// 64-bit words of a page.
const WORDS: usize = PAGE / 8;
/// Number of consecutive pages with the same connection.
const CHUNK: u32 = MAX_PAGES as u32;

/// A range of consecutive pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The byte range of pages in a memory.
pub(crate) fn bytes_of(range: PageRange) -> Range<usize> {
    let first = range.first as usize * PAGE;
    first..first + range.count as usize * PAGE
}

/// Index of the connection that carries a page.
pub(crate) fn channel_of(page: u32, channels: u32) -> u32 {
    page / CHUNK % channels
}

/// Splits a range where the connection changes, and calls `each` with the index of the connection and each part.
pub(crate) fn by_channel(range: PageRange, channels: u32, mut each: impl FnMut(usize, PageRange)) {
    let end = range.first + range.count;
    let mut first = range.first;
    while first < end {
        let count = end.min((first / CHUNK + 1) * CHUNK) - first;
        let channel = channel_of(first, channels);
        each(channel as usize, PageRange { first, count });
        first += count;
    }
}

/// The ranges of pages that one connection carries.
pub(crate) fn of_channel(
    pages: u32,
    channels: u32,
    channel: u32,
) -> impl Iterator<Item = PageRange> {
    let chunks = (channel..pages.div_ceil(CHUNK)).step_by(channels as usize);
    chunks.map(move |chunk| {
        let first = chunk * CHUNK;
        PageRange {
            first,
            count: CHUNK.min(pages - first),
        }
    })
}

/// Whether all bytes of a page are zero.
pub(crate) fn is_zero(memory: &SharedMemory, page: u32) -> bool {
    let words = &memory.words()[page as usize * WORDS..][..WORDS];
    words.iter().all(|word| word.load(Relaxed) == 0)
}

/// Zeroes pages; does not write to those that are zero already.
pub(crate) fn clear(memory: &SharedMemory, range: PageRange) {
    for page in range.first..range.first + range.count {
        if !is_zero(memory, page) {
            for word in &memory.words()[page as usize * WORDS..][..WORDS] {
                word.store(0, Relaxed);
            }
        }
    }
}

/// Fills every page that is not to be zero with a content of its own.
pub(crate) fn fill(memory: &SharedMemory, migration: &Migration, seed: u64) {
    let filled = (migration.pages() - migration.zero()) as usize;
    for (page, words) in memory.words().chunks(WORDS).take(filled).enumerate() {
        let base = mix(seed ^ page as u64) | 1;
        for (at, word) in (0..).zip(words) {
            word.store(base.wrapping_add(at << 32 | at), Relaxed);
        }
    }
}

/// A hash of the content of pages, in which each word counts with its position.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    /// Adds the pages of a range to the hash.
    pub(crate) fn add(&mut self, memory: &SharedMemory, range: PageRange) {
        let start = range.first as usize * WORDS;
        for word in &memory.words()[start..start + range.count as usize * WORDS] {
            let mixed = self.0 ^ word.load(Relaxed);
            self.0 = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_connection_whatever_range_it_is_in() {
        for (pages, channels) in [(256u32, 1u32), (1000, 3), (64, 4), (65, 2)] {
            let mut owner = vec![None; pages as usize];
            for channel in 0..channels {
                for range in of_channel(pages, channels, channel) {
                    for page in range.first..range.first + range.count {
                        assert_eq!(owner[page as usize].replace(channel), None);
                    }
                }
            }
            for first in 0..pages {
                let mut next = first;
                let count = (pages - first).min(150);
                by_channel(PageRange { first, count }, channels, |channel, part| {
                    assert_eq!(part.first, next);
                    for page in part.first..part.first + part.count {
                        assert_eq!(owner[page as usize], Some(channel as u32));
                    }
                    next += part.count;
                });
                assert_eq!(next, first + count);
            }
        }
    }

    #[test]
    fn a_digest_tells_every_word_and_its_place() {
        let migration = Migration {
            memory: 1 << 20,
            zero_pages: 50,
            ..Migration::USUAL
        };
        let all = PageRange {
            first: 0,
            count: 256,
        };
        let memory = SharedMemory::new(1 << 20).expect("memory");
        fill(&memory, &migration, 7);
        assert!(!is_zero(&memory, 127) && is_zero(&memory, 128));
        let digest = || {
            let mut digest = Digest::default();
            digest.add(&memory, all);
            digest
        };
        let before = digest();
        let words = memory.words();
        words[5000].fetch_xor(1 << 63, Relaxed);
        assert_ne!(digest(), before);
        words[5000].fetch_xor(1 << 63, Relaxed);
        assert_eq!(digest(), before);
        let (one, other) = (words[10].load(Relaxed), words[11].load(Relaxed));
        words[10].store(other, Relaxed);
        words[11].store(one, Relaxed);
        assert_ne!(digest(), before, "in another order");
        clear(&memory, all);
        assert!((0..256).all(|page| is_zero(&memory, page)));
    }
}
