//! Contents of a file or device: checks that it is empty, fills it, verifies it and empties it again.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use wirecost_nbd::protocol::command;
use wirecost_sys::block_file::set_direct;

use super::{OpenPath, in_words};
use crate::options::Options;
use crate::storage::content::{STAMP_BYTES, Writer, body, first_difference, rest, seed, stamp};
use crate::storage::read_back::ReadBack;

/// Bytes at the beginning and at the end that are checked: signatures of file systems, partition tables, volumes and
/// RAID are there (libblkid's probes).
const ENDS: u64 = 1 << 20;
/// Bytes of one write when a file is filled, rounded to whole I/Os.
const AT_ONCE: usize = 1 << 20;
/// Alignment of memory that any direct I/O is content with, bytes.
const PAGE: usize = 4096;

/// Signatures: what has them, their offset in bytes, and their bytes.
const SIGNATURES: &[(&str, usize, &[u8])] = &[
    ("a GPT partition table", 512, b"EFI PART"),
    ("a GPT partition table", 4096, b"EFI PART"),
    ("an XFS file system", 0, b"XFSB"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("swap", 4086, b"SWAPSPACE2"),
    ("a Btrfs file system", 65_600, b"_BHRfS_M"),
    ("a Linux RAID member", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a QEMU disk image", 0, b"QFI\xfb"),
    ("a boot sector or a partition table", 510, &[0x55, 0xaa]),
];

/// Bytes of memory on a page boundary.
struct Aligned {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let memory = vec![0; length + PAGE];
        let from = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self {
            memory,
            from,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}

/// Bytes of a file or device.
pub(super) fn size(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Offsets and lengths of the first and of the last [`ENDS`] of so many bytes, without overlap.
fn ends(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let first = bytes.min(ENDS);
    let last = (bytes - first).min(ENDS);
    [(0, first), (bytes - last, last)]
        .into_iter()
        .filter(|(_, length)| *length > 0)
        .map(|(at, length)| (at, length as usize))
}

/// Checks that a file or device is zero at its beginning and end ([`ENDS`]).
///
/// # Errors
/// `InvalidInput` with what was found; the kernel's error.
pub(super) fn must_be_empty(path: &str, file: &File, bytes: u64) -> io::Result<()> {
    for (at, length) in ends(bytes) {
        let mut buffer = Aligned::new(length);
        let read = file.read_exact_at(buffer.bytes(), at);
        read.map_err(|error| in_words("looking whether it is empty", &error))?;
        let Some(byte) = buffer.bytes().iter().position(|byte| *byte != 0) else {
            continue;
        };
        let found = (at == 0).then(|| signature(buffer.bytes())).flatten();
        let found = found.map_or_else(
            || format!("byte {} is not zero", at + byte as u64),
            |what| format!("it looks like {what}"),
        );
        let words = format!(
            "it is not empty ({found}), and the load would write over it: where that may be lost, name it twice with \
             `overwrite` = {path}"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    Ok(())
}

fn signature(beginning: &[u8]) -> Option<&'static str> {
    let there = |at: usize, bytes: &[u8]| {
        beginning
            .get(at..at + bytes.len())
            .is_some_and(|found| found == bytes)
    };
    let mut all = SIGNATURES.iter();
    all.find(|(_, at, bytes)| there(*at, bytes))
        .map(|(what, ..)| *what)
}

/// Fills a file of the load's own: every I/O of its size has content that can be verified.
pub(super) fn fill(open: &OpenPath, options: &Options) -> io::Result<()> {
    let length = options.load.request as usize;
    let (seed, body) = (seed(options), body(options));
    let places = open.bytes / length as u64;
    let each = (AT_ONCE / length).max(1) as u64;
    let mut buffer = Aligned::new(each as usize * length);
    let mut place = 0;
    while place < places {
        let count = each.min(places - place);
        let bytes = &mut buffer.bytes()[..count as usize * length];
        for (number, block) in (place..).zip(bytes.chunks_exact_mut(length)) {
            write_block(block, &body, seed, Writer::Target, number * length as u64);
        }
        open.file.write_all_at(bytes, place * length as u64)?;
        place += count;
    }
    open.file.sync_data()
}

/// Writes the content of the I/O at `offset` into `block`.
pub(crate) fn write_block(block: &mut [u8], body: &[u8], seed: u64, writer: Writer, offset: u64) {
    let length = block.len();
    block[..STAMP_BYTES].copy_from_slice(&stamp(seed, writer, offset));
    block[STAMP_BYTES..].copy_from_slice(rest(body, offset, length));
}

/// Reads the I/Os of the jobs' samples back, and compares them with what was written.
pub(super) fn verify(
    open: &OpenPath,
    options: &Options,
    read_backs: &[ReadBack],
) -> io::Result<()> {
    let body = body(options);
    let length = options.load.request as usize;
    let seed = seed(options);
    let mut buffer = Aligned::new(length);
    for read_back in read_backs {
        let writer = if read_back.command == command::WRITE {
            Writer::Client
        } else {
            Writer::Target
        };
        for offset in &read_back.offsets {
            let read = open.file.read_exact_at(buffer.bytes(), *offset);
            read.map_err(|error| in_words(&format!("reading back offset {offset}"), &error))?;
            let stamp = stamp(seed, writer, *offset);
            let different = first_difference(buffer.bytes(), &body, stamp, *offset);
            if let Some(byte) = different {
                let words = format!(
                    "the {length} bytes at offset {offset} are not what was written there, from byte {byte} on"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
        }
    }
    Ok(())
}

/// Zeroes both ends ([`ENDS`]), so that nothing there looks like content any more.
pub(super) fn empty(open: &OpenPath) -> io::Result<()> {
    // A file may end at any byte, but direct I/O only at a block boundary.
    set_direct(&open.file, false)?;
    for (at, length) in ends(size(&open.file)?) {
        open.file.write_all_at(&vec![0; length], at)?;
    }
    open.file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_looked_at_once() {
        let all = |bytes| ends(bytes).collect::<Vec<_>>();
        assert_eq!(all(512), [(0, 512)]);
        assert_eq!(all(ENDS), [(0, 1 << 20)]);
        assert_eq!(all(ENDS + 512), [(0, 1 << 20), (ENDS, 512)]);
        assert_eq!(all(10 * ENDS), [(0, 1 << 20), (9 * ENDS, 1 << 20)]);
    }

    #[test]
    fn signatures_are_told_by_their_place() {
        for (what, at, bytes) in SIGNATURES {
            let mut beginning = vec![0; 128 << 10];
            beginning[*at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(signature(&beginning), Some(*what));
            assert_eq!(signature(&beginning[..*at]), None);
        }
        assert_eq!(signature(&[1; 4096]), None);
    }

    #[test]
    fn memory_begins_on_a_page() {
        for length in [512, 4096, 1 << 20] {
            let mut memory = Aligned::new(length);
            assert_eq!(memory.bytes().len(), length);
            assert_eq!(memory.bytes().as_ptr() as usize % PAGE, 0);
        }
    }
}
