//! Memory that several threads and the kernel read and write at once: what a storage target keeps an export in.
//!
//! Bytes go from it to sockets and from sockets to it without a copy of our own. Overlapping accesses mix their bytes,
//! as those of a disk do; nothing is locked.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory that no Rust reference to plain bytes may point to"
)]

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Parts that one call sends at most.
pub const MAX_PARTS: usize = 64;

/// Memory that may be shared.
#[derive(Debug)]
pub struct SharedMemory {
    words: Box<[AtomicU64]>,
}

/// A part of what is sent.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// A range of the memory.
    Memory(Range<usize>),
}

impl SharedMemory {
    /// Zeroes, every page of them resident. `bytes` is rounded up to a multiple of 8.
    pub fn new(bytes: usize) -> Self {
        let words = bytes.div_ceil(WORD);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.words.len() * WORD
    }

    /// The address of a range.
    ///
    /// # Panics
    /// Where the range is not within the memory.
    fn address(&self, range: &Range<usize>) -> *mut libc::c_void {
        assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: the offset is within the memory, as was just checked.
        unsafe { self.words.as_ptr().cast::<u8>().add(range.start) }
            .cast_mut()
            .cast()
    }

    /// Copies bytes to an offset.
    ///
    /// # Panics
    /// Where they do not fit.
    pub fn store(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len());
        let misaligned = (WORD - at % WORD) % WORD;
        let (first, rest) = bytes.split_at(misaligned.min(bytes.len()));
        self.store_part(at, first);
        let words = &self.words[(at + first.len()) / WORD..];
        let mut chunks = rest.chunks_exact(WORD);
        for (word, chunk) in words.iter().zip(&mut chunks) {
            word.store(chunk.try_into().map_or(0, u64::from_ne_bytes), Relaxed);
        }
        let last = chunks.remainder();
        self.store_part(at + bytes.len() - last.len(), last);
    }

    /// Copies less than a word. Its other bytes are written as they were read.
    fn store_part(&self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let word = &self.words[at / WORD];
        let mut content = word.load(Relaxed).to_ne_bytes();
        content[at % WORD..][..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(content), Relaxed);
    }

    /// Copies bytes from an offset.
    ///
    /// # Panics
    /// Where there are not so many.
    pub fn load(&self, at: usize, bytes: &mut [u8]) {
        for (offset, byte) in bytes.iter_mut().enumerate() {
            let place = at + offset;
            *byte = self.words[place / WORD].load(Relaxed).to_ne_bytes()[place % WORD];
        }
    }

    /// Sends up to [`MAX_PARTS`] parts on a connection (sendmsg(2)): a broken one is `EPIPE`, never a signal. Returns
    /// how many bytes were taken.
    ///
    /// # Panics
    /// Where a range is not within the memory.
    pub fn send<'a>(
        &self,
        fd: &impl AsFd,
        parts: impl Iterator<Item = Part<'a>>,
    ) -> io::Result<usize> {
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
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

    /// Receives into a range (recv(2)). Returns how many bytes were read; 0 at the end of a connection.
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
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_are_where_they_were_put_whatever_their_alignment() {
        let memory = SharedMemory::new(61);
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
        let memory = SharedMemory::new(32);
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
        drop(other);
        assert_eq!(memory.receive(&one, &(0..1)).expect("its end"), 0);
        let parts = [Part::Memory(0..8)];
        let error = memory.send(&one, parts.into_iter()).expect_err("broken");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
