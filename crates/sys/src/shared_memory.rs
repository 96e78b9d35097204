//! Memory that several threads and the kernel read and write at once, such as the export of a storage target.
//!
//! Bytes go from it to sockets and from sockets to it without a copy in user space. Overlapping accesses mix their
//! bytes, as those of a disk do; nothing is locked.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory that no Rust reference to plain bytes may point to"
)]

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Size of a word, bytes.
const WORD: usize = size_of::<u64>();
/// Lower bound on the page size, bytes.
const PAGE: usize = 4096;
/// Upper bound on the parts that one call sends, and on the ranges that it receives into.
pub const MAX_PARTS: usize = 64;

/// Memory that may be shared: a mapping of its own, unmapped when dropped.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the words are atomics in a mapping that only the drop ends.
unsafe impl Send for SharedMemory {}
// SAFETY: likewise.
unsafe impl Sync for SharedMemory {}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * WORD) };
    }
}

/// A part of a message to send.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// A range of the memory.
    Memory(Range<usize>),
}

impl SharedMemory {
    /// Zeroed memory, every page resident. `bytes` is rounded up to a multiple of 8, at least 8.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, false)
    }

    /// As [`Self::new`], never in huge pages, so that writes can be tracked page by page.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn in_small_pages(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, true)
    }

    /// Mapping of a file, shared with other processes that map it. A page is allocated when it is first written to.
    pub(crate) fn of_file(file: &OwnedFd, bytes: usize) -> io::Result<Self> {
        Self::map_at(bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map_at(bytes: usize, flags: i32, file: i32) -> io::Result<Self> {
        let words = bytes.div_ceil(WORD).max(1);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                words * WORD,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }

    fn map(bytes: usize, small_pages: bool) -> io::Result<Self> {
        let memory = Self::map_at(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        let (address, words) = (memory.start.as_ptr().cast(), memory.words);
        if small_pages {
            // A kernel without huge pages refuses this.
            // SAFETY: the range is the new mapping.
            let _ = unsafe { libc::madvise(address, words * WORD, libc::MADV_NOHUGEPAGE) };
        }
        for word in memory.words().iter().step_by(PAGE / WORD) {
            word.store(0, Relaxed);
        }
        Ok(memory)
    }

    /// The memory as words of 8 bytes.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped at the address, page-aligned and zero or what was stored since, and only the
        // drop unmaps them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Length, bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.words * WORD
    }

    /// Address of a range of bytes.
    ///
    /// # Panics
    /// Where the range is not within the memory.
    fn address(&self, range: &Range<usize>) -> *mut libc::c_void {
        assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: the offset is within the memory, as was just checked.
        unsafe { self.start.as_ptr().cast::<u8>().add(range.start) }.cast()
    }

    /// Copies `bytes` to offset `at`.
    ///
    /// # Panics
    /// Where the bytes do not fit.
    pub fn store(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len());
        let misaligned = (WORD - at % WORD) % WORD;
        let (first, rest) = bytes.split_at(misaligned.min(bytes.len()));
        self.store_part(at, first);
        let words = &self.words()[(at + first.len()) / WORD..];
        let mut chunks = rest.chunks_exact(WORD);
        for (word, chunk) in words.iter().zip(&mut chunks) {
            word.store(chunk.try_into().map_or(0, u64::from_ne_bytes), Relaxed);
        }
        let last = chunks.remainder();
        self.store_part(at + bytes.len() - last.len(), last);
    }

    /// Copies bytes within one word, whose other bytes are written back as they were read.
    fn store_part(&self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let word = &self.words()[at / WORD];
        let mut content = word.load(Relaxed).to_ne_bytes();
        content[at % WORD..][..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(content), Relaxed);
    }

    /// Fills `bytes` from offset `at`.
    ///
    /// # Panics
    /// Where the memory ends before.
    pub fn load(&self, at: usize, bytes: &mut [u8]) {
        for (offset, byte) in bytes.iter_mut().enumerate() {
            let place = at + offset;
            *byte = self.words()[place / WORD].load(Relaxed).to_ne_bytes()[place % WORD];
        }
    }

    /// Sends up to [`MAX_PARTS`] parts on a connection (sendmsg(2)) and returns how many bytes were taken. A broken
    /// connection is `EPIPE`, never a signal.
    ///
    /// # Panics
    /// Where a range is not within the memory.
    pub fn send<'a>(
        &self,
        fd: &impl AsFd,
        parts: impl Iterator<Item = Part<'a>>,
    ) -> io::Result<usize> {
        let empty = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        let mut vectors = [empty; MAX_PARTS];
        let mut count = 0;
        for (vector, part) in vectors.iter_mut().zip(parts) {
            *vector = match part {
                Part::Bytes(bytes) => libc::iovec {
                    iov_base: bytes.as_ptr().cast_mut().cast(),
                    iov_len: bytes.len(),
                },
                Part::Memory(range) => libc::iovec {
                    iov_base: self.address(&range),
                    iov_len: range.len(),
                },
            };
            count += 1;
        }
        // SAFETY: all-zero is a message without address, data and control data.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = count as _;
        // SAFETY: the vectors describe bytes and memory that outlive the call; the kernel only reads them.
        let sent = unsafe {
            libc::sendmsg(
                fd.as_fd().as_raw_fd(),
                &raw const message,
                libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(sent as usize)
        }
    }

    /// Receives into a range (recv(2)). Returns how many bytes were received; 0 at the end of a connection.
    ///
    /// # Panics
    /// Where the range is not within the memory.
    pub fn receive(&self, fd: &impl AsFd, range: &Range<usize>) -> io::Result<usize> {
        let address = self.address(range);
        // SAFETY: there are so many bytes, all of them in atomics, which anyone may write to at any time.
        let received = unsafe { libc::recv(fd.as_fd().as_raw_fd(), address, range.len(), 0) };
        if received < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(received as usize)
        }
    }

    /// Receives into up to [`MAX_PARTS`] ranges, one after the other (recvmsg(2)). Returns how many bytes were
    /// received; 0 at the end of a connection.
    ///
    /// # Panics
    /// Where a range is not within the memory.
    pub fn receive_into(
        &self,
        fd: &impl AsFd,
        ranges: impl Iterator<Item = Range<usize>>,
    ) -> io::Result<usize> {
        let empty = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        let mut vectors = [empty; MAX_PARTS];
        let mut count = 0;
        for (vector, range) in vectors.iter_mut().zip(ranges) {
            *vector = libc::iovec {
                iov_base: self.address(&range),
                iov_len: range.len(),
            };
            count += 1;
        }
        // SAFETY: all-zero is a message without address, data and control data.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = count as _;
        // SAFETY: the vectors describe memory that outlives the call, all of it atomics, which anyone may write to at
        // any time.
        let received = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut message, 0) };
        if received < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(received as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_are_where_they_were_put_whatever_their_alignment() {
        let memory = SharedMemory::new(61).expect("memory");
        assert_eq!(memory.len(), 64);
        let mut mirror = [0u8; 64];
        let pieces = [(0, 64), (3, 2), (5, 20), (7, 1), (8, 8), (15, 33), (60, 4)];
        for (number, (at, length)) in pieces.into_iter().enumerate() {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8 ^ number as u8).collect();
            memory.store(at, &bytes);
            mirror[at..at + length].copy_from_slice(&bytes);
            let mut read = [0; 64];
            memory.load(0, &mut read);
            assert_eq!(read, mirror);
        }
    }

    #[test]
    fn parts_are_sent_in_order_and_received_in_place() {
        let (one, mut other) = UnixStream::pair().expect("a pair");
        let memory = SharedMemory::new(32).expect("memory");
        other.write_all(b"within").expect("written");
        assert_eq!(memory.receive(&one, &(4..20)).expect("received"), 6);
        let parts = [
            Part::Bytes(b"<"),
            Part::Memory(4..10),
            Part::Bytes(b">"),
            Part::Memory(0..2),
        ];
        let sent = memory.send(&one, parts.into_iter()).expect("sent");
        let mut read = [0; 10];
        other.read_exact(&mut read).expect("read");
        assert_eq!((sent, &read), (10, b"<within>\0\0"));
        other.write_all(b"scattered").expect("written");
        let ranges = [0..2, 30..32, 8..16];
        assert_eq!(
            memory
                .receive_into(&one, ranges.into_iter())
                .expect("received"),
            9
        );
        for (at, there) in [(0, &b"sc"[..]), (30, b"at"), (8, b"tered")] {
            let mut found = vec![0; there.len()];
            memory.load(at, &mut found);
            assert_eq!(found, there);
        }
        drop(other);
        assert_eq!(memory.receive(&one, &(0..1)).expect("its end"), 0);
        let parts = [Part::Memory(0..8)];
        let error = memory.send(&one, parts.into_iter()).expect_err("broken");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
