//! What source and destination say to each other: a head of fixed size with ranges of pages, then their content.

use std::io;

use super::pages::{MAX_PAGES, PageRange};

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 512;
/// Bytes of a reply.
pub(crate) const REPLY_BYTES: usize = 16;
/// Ranges of a head at most.
pub(crate) const MAX_RANGES: usize = (HEAD_BYTES - FIXED) / RANGE_BYTES;

const MAGIC: u32 = 0x7763_6d67;
const FIXED: usize = 16;
const RANGE_BYTES: usize = 8;
/// In a range's count: the pages are zero, and nothing follows for them.
const ZERO: u32 = 1 << 31;

/// What the source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// Pages follow.
    Pages = 1,
    /// Nothing more comes on this connection: the machine is there once all of its connections said so.
    End = 2,
    /// The move is given up.
    GiveUp = 3,
    /// What does the memory contain?
    Verify = 4,
}

/// What the destination says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Everything of this connection is in the memory, or the end of the move is noted.
    Done,
    /// The digest of the pages of this connection.
    Digest(u64),
}

/// A head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// With whether the pages are zero.
    pub(crate) ranges: Vec<(PageRange, bool)>,
}

fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Writes a head: at most [`MAX_RANGES`] ranges.
pub(crate) fn encode(kind: Kind, ranges: &[(PageRange, bool)], head: &mut [u8; HEAD_BYTES]) {
    head.fill(0);
    let count = ranges.len().min(MAX_RANGES) as u32;
    for (place, value) in head.chunks_exact_mut(4).zip([MAGIC, kind as u32, count]) {
        place.copy_from_slice(&value.to_be_bytes());
    }
    let places = head[FIXED..].chunks_exact_mut(RANGE_BYTES);
    for (place, (range, zero)) in places.zip(ranges) {
        let count = range.count | if *zero { ZERO } else { 0 };
        place[..4].copy_from_slice(&range.first.to_be_bytes());
        place[4..].copy_from_slice(&count.to_be_bytes());
    }
}

/// Reads a head about a machine of so many pages.
///
/// # Errors
/// `InvalidData`: not ours, unknown, too many pages, or pages that the machine does not have.
pub(crate) fn decode(head: &[u8; HEAD_BYTES], pages: u32) -> io::Result<Head> {
    if word(head, 0) != MAGIC {
        return Err(invalid("what came is no head of a migration".to_owned()));
    }
    let kind = match word(head, 4) {
        1 => Kind::Pages,
        2 => Kind::End,
        3 => Kind::GiveUp,
        4 => Kind::Verify,
        other => return Err(invalid(format!("a head of the unknown kind {other}"))),
    };
    let count = word(head, 8) as usize;
    if count > MAX_RANGES || (count == 0) != (kind != Kind::Pages) {
        return Err(invalid(format!(
            "a head {kind:?} with {count} ranges of pages"
        )));
    }
    let mut all = 0;
    let mut ranges = Vec::with_capacity(count);
    for place in head[FIXED..].chunks_exact(RANGE_BYTES).take(count) {
        let (first, field) = (word(place, 0), word(place, 4));
        let (count, zero) = (field & !ZERO, field & ZERO != 0);
        all += u64::from(count);
        let within = first.checked_add(count).is_some_and(|end| end <= pages);
        if count == 0 || !within || all > MAX_PAGES as u64 {
            return Err(invalid(format!(
                "{count} pages from {first} on, {all} in the head, of a machine of {pages}"
            )));
        }
        ranges.push((PageRange { first, count }, zero));
    }
    Ok(Head { kind, ranges })
}

/// Writes a reply.
pub(crate) fn encode_reply(reply: Reply) -> [u8; REPLY_BYTES] {
    let (kind, digest) = match reply {
        Reply::Done => (1u32, 0),
        Reply::Digest(digest) => (2, digest),
    };
    let mut bytes = [0; REPLY_BYTES];
    bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..].copy_from_slice(&digest.to_be_bytes());
    bytes
}

/// Reads a reply.
///
/// # Errors
/// `InvalidData`.
pub(crate) fn decode_reply(bytes: &[u8; REPLY_BYTES]) -> io::Result<Reply> {
    let digest = bytes
        .last_chunk()
        .map_or(0, |digest| u64::from_be_bytes(*digest));
    match (word(bytes, 0), word(bytes, 4)) {
        (MAGIC, 1) => Ok(Reply::Done),
        (MAGIC, 2) => Ok(Reply::Digest(digest)),
        _ => Err(invalid("what came is no reply of a migration".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::migration::pages::{PAGE, bytes_of};

    fn range(first: u32, count: u32) -> PageRange {
        PageRange { first, count }
    }

    #[test]
    fn what_is_written_is_read_and_what_cannot_be_is_named() {
        let mut head = [0; HEAD_BYTES];
        let ranges = [(range(3, 2), false), (range(60, 4), true)];
        encode(Kind::Pages, &ranges, &mut head);
        let read = decode(&head, 64).expect("a head");
        assert_eq!((read.kind, &read.ranges[..]), (Kind::Pages, &ranges[..]));
        let refused = |pages: u32, change: fn(&mut [u8; HEAD_BYTES])| {
            let mut changed = head;
            change(&mut changed);
            decode(&changed, pages).expect_err("refused").to_string()
        };
        assert!(refused(63, |_| ()).contains("4 pages from 60 on"));
        assert!(refused(64, |head| head[0] = 0).contains("no head"));
        assert!(refused(64, |head| head[7] = 9).contains("unknown kind 9"));
        assert!(refused(64, |head| head[7] = 2).contains("End with 2 ranges"));
        assert!(refused(64, |head| head[11] = 63).contains("63 ranges"));
        assert!(refused(64, |head| head[23] = 0).contains("0 pages from 3"));
        assert!(refused(u32::MAX, |head| head[22] = 1).contains("258 pages"));
        for reply in [Reply::Done, Reply::Digest(u64::MAX - 7)] {
            assert_eq!(decode_reply(&encode_reply(reply)).expect("a reply"), reply);
        }
        assert!(decode_reply(&[7; REPLY_BYTES]).is_err());
    }

    proptest! {
        #[test]
        fn a_head_that_is_accepted_lies_within_the_machine(bytes: [u8; 32], pages in 0u32..10_000, count in 0u8..64) {
            let mut head = [0; HEAD_BYTES];
            head[..32].copy_from_slice(&bytes);
            head[..8].copy_from_slice(&[0x77, 0x63, 0x6d, 0x67, 0, 0, 0, 1]);
            head[8..12].copy_from_slice(&[0, 0, 0, count]);
            if let Ok(head) = decode(&head, pages) {
                for (range, _) in head.ranges {
                    prop_assert!(bytes_of(range).end <= pages as usize * PAGE);
                }
            }
        }
    }
}
