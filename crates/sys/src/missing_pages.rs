//! Missing pages of a memory: a thread that touches one waits until its content is placed, or until the memory is
//! released (userfaultfd(2), `UFFDIO_REGISTER_MODE_MISSING`).
//!
//! Only faults in user mode are handled, which needs no privilege since Linux 5.11: a system call that is given a
//! missing page fails with `EFAULT`.

#![expect(unsafe_code, reason = "ioctls without a wrapper")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::shared_memory::SharedMemory;
use crate::socket::poll_readable;
use crate::userfaultfd::{Faults, Userfaultfd};

/// Page size, bytes.
pub const PAGE: usize = 4096;
/// `_IOWR(0xaa, 0x00, struct uffdio_register)`, and its mode.
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const REGISTER_MODE_MISSING: u64 = 1;
/// `_IOR(0xaa, 0x01, struct uffdio_range)`.
const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
/// `_IOWR(0xaa, 0x03, struct uffdio_copy)`, and its bit among the ioctls that a registered range supports.
const UFFDIO_COPY: u64 = 0xc028_aa03;
const HAS_COPY: u64 = 1 << 3;
/// `UFFD_EVENT_PAGEFAULT`, and the size of a `struct uffd_msg`, bytes.
const EVENT_PAGE_FAULT: u8 = 0x12;
const MESSAGE: usize = 32;
/// How long the self-test waits for the kernel to report a fault.
const PATIENCE: Duration = Duration::from_secs(5);

/// A memory whose pages may be missing. When this is dropped, waiting threads go on: missing pages read as zeros.
#[derive(Debug)]
pub struct MissingPages {
    // Declared before the memory, so that it is closed first: no thread may be left waiting in the memory.
    userfaultfd: Userfaultfd,
    memory: Arc<SharedMemory>,
}

impl AsFd for MissingPages {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.userfaultfd.as_fd()
    }
}

impl MissingPages {
    /// Registers a memory of [`SharedMemory::in_small_pages`], whose pages are all there.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.11, `EPERM` or `ENOSYS` where a container forbids it or the kernel has none.
    pub fn of(memory: Arc<SharedMemory>) -> io::Result<Self> {
        let userfaultfd = Userfaultfd::open(Faults::UserModeOnly)?;
        let pages = Self {
            userfaultfd,
            memory,
        };
        let [start, length] = pages.range(0, pages.pages());
        // struct uffdio_register: range, mode, ioctls.
        let mut order = [start, length, REGISTER_MODE_MISSING, 0];
        pages.order(UFFDIO_REGISTER, order.as_mut_ptr())?;
        if order[3] & HAS_COPY == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(pages)
    }

    /// Self-test with a memory of its own: a thread that waits for a page reads what is placed, and a thread that waits
    /// for a page which never comes goes on after a release.
    ///
    /// # Errors
    /// Errors of [`Self::of`]; `Other` where the kernel does something else.
    pub fn check() -> io::Result<()> {
        const PAGES: usize = 8;
        let memory = Arc::new(SharedMemory::in_small_pages(PAGES * PAGE)?);
        let missing = Self::of(Arc::clone(&memory))?;
        missing.remove(2, 4)?;
        let wrong = |words: &str| Err(io::Error::other(words.to_owned()));
        for (page, placed) in [(3, Some(7u8)), (5, None)] {
            let word = page * PAGE / 8;
            let toucher = Arc::clone(&memory);
            let touching = thread::Builder::new()
                .name("touches-a-page".to_owned())
                .stack_size(128 << 10)
                .spawn(move || toucher.words()[word].fetch_add(1, Relaxed))?;
            let told = poll_readable(&[missing.as_fd()], PATIENCE)
                .and_then(|_| missing.next_fault())
                .and_then(|fault| {
                    if fault == Some(page) {
                        placed.map_or(Ok(()), |byte| missing.place(page, &[byte; PAGE]))
                    } else {
                        wrong("the kernel did not tell of a page that was missing")
                    }
                });
            if placed.is_none() || told.is_err() {
                // The waiting thread ends now and can be joined.
                missing.release()?;
            }
            let found = touching.join();
            told?;
            let content = placed.map_or(0, |byte| u64::from_ne_bytes([byte; 8]));
            if found.ok() != Some(content) || memory.words()[word].load(Relaxed) != content + 1 {
                return wrong("a page that was placed has another content");
            }
        }
        Ok(())
    }

    fn pages(&self) -> usize {
        self.memory.len().div_ceil(PAGE)
    }

    /// Address and length of `count` pages from page `first`, bytes.
    ///
    /// # Panics
    /// Where the memory does not have these pages.
    fn range(&self, first: usize, count: usize) -> [u64; 2] {
        assert!(first + count <= self.pages());
        let start = self.memory.words().as_ptr() as u64;
        [start + (first * PAGE) as u64, (count * PAGE) as u64]
    }

    fn order(&self, request: u64, argument: *mut u64) -> io::Result<()> {
        let fd = self.userfaultfd.as_fd().as_raw_fd();
        // SAFETY: the callers' arrays are as large as the request says; the ranges in them are the memory's mapping.
        if unsafe { libc::ioctl(fd, request as _, argument) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Removes `count` pages from page `first`: they are missing from now on, and their content is lost.
    ///
    /// # Errors
    /// Errors of madvise(2).
    ///
    /// # Panics
    /// Where the memory does not have these pages.
    pub fn remove(&self, first: usize, count: usize) -> io::Result<()> {
        let [start, length] = self.range(first, count);
        // SAFETY: the range is within the memory's private mapping, all of it atomics: its next reader finds zeros or
        // waits.
        let done = unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                length as usize,
                libc::MADV_DONTNEED,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Places the content of a missing page, and wakes the threads that wait for it.
    ///
    /// # Errors
    /// `EEXIST`: the page is not missing. `ENOENT`: the memory was released ([`Self::release`]).
    ///
    /// # Panics
    /// Where the memory does not have the page, or `content` is not [`PAGE`] bytes long.
    pub fn place(&self, page: usize, content: &[u8]) -> io::Result<()> {
        assert_eq!(content.len(), PAGE);
        let [start, length] = self.range(page, 1);
        loop {
            // struct uffdio_copy: dst, src, len, mode, copy.
            let mut order = [start, content.as_ptr() as u64, length, 0, 0];
            match self.order(UFFDIO_COPY, order.as_mut_ptr()) {
                // The mapping was being changed: try again.
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                done => return done,
            }
        }
    }

    /// Next page that a thread waits for and that was not reported yet. Does not block: the descriptor is readable
    /// while there is one.
    ///
    /// # Errors
    /// Errors of read(2); `InvalidData` for a message that is not a page fault in this memory.
    pub fn next_fault(&self) -> io::Result<Option<usize>> {
        let mut message = [0u8; MESSAGE];
        let fd = self.userfaultfd.as_fd().as_raw_fd();
        // SAFETY: the buffer has as many bytes.
        let read = unsafe { libc::read(fd, message.as_mut_ptr().cast(), MESSAGE) };
        if read < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        // struct uffd_msg: event 1, reserved 7, flags 8, address 8.
        let address = message[16..]
            .first_chunk()
            .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let [start, length] = self.range(0, self.pages());
        let within = address.checked_sub(start).filter(|at| *at < length);
        match within {
            Some(at) if message[0] == EVENT_PAGE_FAULT => Ok(Some(at as usize / PAGE)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Lets all waiting threads go on, now and later: missing pages read as zeros.
    ///
    /// # Errors
    /// Errors of `UFFDIO_UNREGISTER`.
    pub fn release(&self) -> io::Result<()> {
        let mut order = self.range(0, self.pages());
        self.order(UFFDIO_UNREGISTER, order.as_mut_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None`: not on this kernel, or not here.
    fn of(pages: usize) -> Option<(Arc<SharedMemory>, MissingPages)> {
        let memory = Arc::new(SharedMemory::in_small_pages(pages * PAGE).expect("memory"));
        match MissingPages::of(Arc::clone(&memory)) {
            Ok(missing) => Some((memory, missing)),
            Err(error) => {
                let known = [libc::EINVAL, libc::ENOSYS, libc::EPERM];
                assert!(
                    error
                        .raw_os_error()
                        .is_some_and(|code| known.contains(&code)),
                    "{error}"
                );
                wirecost_skips::skip(format!("pages cannot be waited for here: {error}"));
                None
            }
        }
    }

    #[test]
    fn who_touches_a_missing_page_gets_what_is_placed_and_who_waits_in_vain_is_let_go() {
        if of(1).is_some() {
            MissingPages::check().expect("as the kernel says");
        }
    }

    #[test]
    fn a_page_is_placed_once_and_only_where_it_was_missing() {
        let Some((memory, missing)) = of(4) else {
            return;
        };
        let code = |done: io::Result<()>| done.expect_err("refused").raw_os_error();
        assert_eq!(code(missing.place(1, &[1; PAGE])), Some(libc::EEXIST));
        missing.remove(1, 2).expect("removed");
        missing.place(1, &[1; PAGE]).expect("placed");
        assert_eq!(code(missing.place(1, &[2; PAGE])), Some(libc::EEXIST));
        assert_eq!(
            memory.words()[PAGE / 8].load(Relaxed),
            u64::from_ne_bytes([1; 8])
        );
        assert_eq!(missing.next_fault().expect("read"), None);
        missing.release().expect("released");
        assert_eq!(code(missing.place(2, &[1; PAGE])), Some(libc::ENOENT));
        assert_eq!(memory.words()[2 * PAGE / 8].load(Relaxed), 0);
    }

    #[test]
    fn a_system_call_that_is_given_a_missing_page_does_not_wait() {
        let Some((memory, missing)) = of(2) else {
            return;
        };
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        io::Write::write_all(&mut &other, &[1; 16]).expect("written");
        missing.remove(1, 1).expect("removed");
        let error = memory
            .receive(&one, &(PAGE..PAGE + 16))
            .expect_err("refused");
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
