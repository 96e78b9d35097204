//! The messages between source and destination: records with a head of fixed size that names ranges of pages,
//! followed by their content; and replies of fixed size. Integers are big-endian.

use std::io;

use super::pages::{MAX_PAGES, PageRange};

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 512;
/// Bytes of a reply.
pub(crate) const REPLY_BYTES: usize = 16;
/// Upper bound on the ranges of a head.
pub(crate) const MAX_RANGES: usize = (HEAD_BYTES - FIXED) / RANGE_BYTES;

const MAGIC: u32 = 0x7763_6d67;
const FIXED: usize = 16;
const RANGE_BYTES: usize = 8;
/// Flag in a range's count: the pages are zero, and no content follows for them.
const ZERO: u32 = 1 << 31;
/// Upper bound on a machine's number of writes: no machine writes more often.
const MAX_WRITES: u64 = 1 << 56;

/// The kinds of records, from the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The content of these pages follows, except of zero pages.
    Pages = 1,
    /// Nothing more comes on this connection: the machine has moved once all of its connections have sent this.
    End = 2,
    /// The move is given up.
    GiveUp = 3,
    /// Asks for the digest of the memory; with post-copy also stops the machine.
    Verify = 4,
    /// With post-copy: these pages are missing or out of date at the destination, where the machine will resume
    /// without them.
    Missing = 5,
    /// With post-copy: all missing pages have been announced. The machine resumes at the destination once all of its
    /// connections have sent this. Pages that follow are missing ones.
    Switch = 6,
}

/// The replies, from the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Everything of this connection is in the memory, or the end of the move is noted. With post-copy, the number of
    /// its pages that the machine has waited for; else 0.
    Done(u64),
    /// The digest of the pages of this connection.
    Digest(u64),
    /// The machine runs at the destination.
    Runs,
    /// The machine waits for this page.
    Fetch(u32),
    /// The machine has been stopped at the destination, after this number of writes, those at the source included.
    Wrote(u64),
}

/// A decoded head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Ranges of pages, each with whether the pages are zero.
    pub(crate) ranges: Vec<(PageRange, bool)>,
    /// Of a [`Kind::Switch`]: how many writes the machine has made so far; else 0.
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

/// Encodes a head of at most [`MAX_RANGES`] ranges.
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

/// Encodes the head of a [`Kind::Switch`].
pub(crate) fn encode_switch(writes: u64, head: &mut [u8; HEAD_BYTES]) {
    encode(Kind::Switch, &[], head);
    head[FIXED..FIXED + 8].copy_from_slice(&writes.to_be_bytes());
}

/// Decodes a head about a machine of `pages` pages.
///
/// # Errors
/// `InvalidData`: another magic number or kind, more than [`MAX_PAGES`] pages in a [`Kind::Pages`], pages that the
/// machine does not have, or an impossible number of ranges or writes.
pub(crate) fn decode(head: &[u8; HEAD_BYTES], pages: u32) -> io::Result<Head> {
    if word(head, 0) != MAGIC {
        return Err(invalid("not a migration header".to_owned()));
    }
    let kind = match word(head, 4) {
        1 => Kind::Pages,
        2 => Kind::End,
        3 => Kind::GiveUp,
        4 => Kind::Verify,
        5 => Kind::Missing,
        6 => Kind::Switch,
        other => {
            return Err(invalid(format!(
                "a migration header of unknown kind {other}"
            )));
        }
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

/// Encodes a reply.
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

/// Decodes a reply.
///
/// # Errors
/// `InvalidData`: another magic number or kind, or a number out of range.
pub(crate) fn decode_reply(bytes: &[u8; REPLY_BYTES]) -> io::Result<Reply> {
    let number = long(bytes, 8);
    match (word(bytes, 0), word(bytes, 4)) {
        (MAGIC, 1) => Ok(Reply::Done(number)),
        (MAGIC, 2) => Ok(Reply::Digest(number)),
        (MAGIC, 3) => Ok(Reply::Runs),
        (MAGIC, 4) if number <= u32::MAX.into() => Ok(Reply::Fetch(number as u32)),
        (MAGIC, 5) if number <= MAX_WRITES => Ok(Reply::Wrote(number)),
        _ => Err(invalid("not a migration reply".to_owned())),
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
        assert!(refused(64, |head| head[0] = 0).contains("not a migration header"));
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
