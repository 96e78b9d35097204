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
/// No machine writes more often.
const MAX_WRITES: u64 = 1 << 56;

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
    /// These pages are missing or out of date at the destination, where the machine is to go on all the same.
    Missing = 5,
    /// All that are missing have been told: the machine goes on there once all of its connections said so. Pages that
    /// follow are those that were missing.
    Switch = 6,
}

/// What the destination says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Everything of this connection is in the memory, or the end of the move is noted. With post-copy, so many of its
    /// pages the machine has waited for.
    Done(u64),
    /// The digest of the pages of this connection.
    Digest(u64),
    /// The machine runs at the destination.
    Runs,
    /// It waits for this page.
    Fetch(u32),
    /// It has been stopped there, and has written so often, before its move and since.
    Wrote(u64),
}

/// A head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// With whether the pages are zero.
    pub(crate) ranges: Vec<(PageRange, bool)>,
    /// Of a switch: how often the machine has written so far.
    pub(crate) writes: u64,
}

fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
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

/// Writes the head of a switch.
pub(crate) fn encode_switch(writes: u64, head: &mut [u8; HEAD_BYTES]) {
    encode(Kind::Switch, &[], head);
    head[FIXED..FIXED + 8].copy_from_slice(&writes.to_be_bytes());
}

/// Reads a head about a machine of so many pages.
///
/// # Errors
/// `InvalidData`: not ours, unknown, too many pages with content, or pages that the machine does not have.
pub(crate) fn decode(head: &[u8; HEAD_BYTES], pages: u32) -> io::Result<Head> {
    if word(head, 0) != MAGIC {
        return Err(invalid("what came is no head of a migration".to_owned()));
    }
    let kind = match word(head, 4) {
        1 => Kind::Pages,
        2 => Kind::End,
        3 => Kind::GiveUp,
        4 => Kind::Verify,
        5 => Kind::Missing,
        6 => Kind::Switch,
        other => return Err(invalid(format!("a head of the unknown kind {other}"))),
    };
    let count = word(head, 8) as usize;
    let with_pages = matches!(kind, Kind::Pages | Kind::Missing);
    if count > MAX_RANGES || (count > 0) != with_pages {
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
        let many = kind == Kind::Pages && all > MAX_PAGES as u64;
        if count == 0 || !within || many {
            return Err(invalid(format!(
                "{count} pages from {first} on, {all} in the head, of a machine of {pages}"
            )));
        }
        ranges.push((PageRange { first, count }, zero));
    }
    let writes = match kind {
        Kind::Switch => long(head, FIXED),
        _ => 0,
    };
    if writes > MAX_WRITES {
        return Err(invalid(format!(
            "a machine that is said to have written {writes} times"
        )));
    }
    Ok(Head {
        kind,
        ranges,
        writes,
    })
}

/// Writes a reply.
pub(crate) fn encode_reply(reply: Reply) -> [u8; REPLY_BYTES] {
    let (kind, number) = match reply {
        Reply::Done(fetched) => (1u32, fetched),
        Reply::Digest(digest) => (2, digest),
        Reply::Runs => (3, 0),
        Reply::Fetch(page) => (4, page.into()),
        Reply::Wrote(writes) => (5, writes),
    };
    let mut bytes = [0; REPLY_BYTES];
    bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Reads a reply.
///
/// # Errors
/// `InvalidData`.
pub(crate) fn decode_reply(bytes: &[u8; REPLY_BYTES]) -> io::Result<Reply> {
    let number = long(bytes, 8);
    match (word(bytes, 0), word(bytes, 4)) {
        (MAGIC, 1) => Ok(Reply::Done(number)),
        (MAGIC, 2) => Ok(Reply::Digest(number)),
        (MAGIC, 3) => Ok(Reply::Runs),
        (MAGIC, 4) if number <= u32::MAX.into() => Ok(Reply::Fetch(number as u32)),
        (MAGIC, 5) if number <= MAX_WRITES => Ok(Reply::Wrote(number)),
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
        for reply in [
            Reply::Done(3),
            Reply::Digest(u64::MAX - 7),
            Reply::Runs,
            Reply::Fetch(u32::MAX),
            Reply::Wrote(1 << 40),
        ] {
            assert_eq!(decode_reply(&encode_reply(reply)).expect("a reply"), reply);
        }
        assert!(decode_reply(&encode_reply(Reply::Wrote(u64::MAX))).is_err());
        assert!(decode_reply(&[7; REPLY_BYTES]).is_err());
    }

    #[test]
    fn any_number_of_pages_may_be_missing_and_a_switch_says_how_often_was_written() {
        let mut head = [0; HEAD_BYTES];
        encode(Kind::Missing, &[(range(0, 1000), false)], &mut head);
        let read = decode(&head, 1000).expect("a head");
        assert_eq!((read.kind, read.ranges.len()), (Kind::Missing, 1));
        assert!(decode(&head, 999).is_err());
        encode_switch(77, &mut head);
        let read = decode(&head, 1000).expect("a head");
        assert_eq!((read.kind, read.writes), (Kind::Switch, 77));
        encode_switch(u64::MAX, &mut head);
        let error = decode(&head, 1000).expect_err("refused");
        assert!(
            error.to_string().contains("said to have written"),
            "{error}"
        );
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
