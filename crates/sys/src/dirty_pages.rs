//! Pages of a memory that were written to since the last query, as the kernel tracks them: asynchronous write
//! protection (userfaultfd(2), `UFFD_FEATURE_WP_ASYNC`) and the ioctl that scans for it (`PAGEMAP_SCAN`, Linux 6.7).

#![expect(unsafe_code, reason = "ioctls without a wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::shared_memory::SharedMemory;
use crate::userfaultfd::{Faults, Userfaultfd};

/// Size of a tracked page, bytes.
pub const PAGE: usize = 4096;
/// `UFFD_FEATURE_WP_UNPOPULATED` and `UFFD_FEATURE_WP_ASYNC` (include/uapi/linux/userfaultfd.h).
const FEATURES: u64 = 1 << 13 | 1 << 15;
/// `_IOWR(0xaa, 0x00, struct uffdio_register)`.
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const REGISTER_MODE_WP: u64 = 1 << 1;
/// `_IOWR('f', 16, struct pm_scan_arg)` (include/uapi/linux/fs.h).
const PAGEMAP_SCAN: u64 = 0xc060_6610;
const SCAN_WP_MATCHING: u64 = 1;
const SCAN_CHECK_WPASYNC: u64 = 1 << 1;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
/// Upper bound on the ranges that one scan returns.
const RANGES: usize = 512;

/// `struct pm_scan_arg`.
#[repr(C)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

const _: () = assert!(size_of::<ScanArguments>() == 96 && size_of::<PageRegion>() == 24);

/// Dirty-page tracking of one memory. Ends when dropped.
#[derive(Debug)]
pub struct DirtyPages {
    memory: Arc<SharedMemory>,
    pagemap: File,
    _userfaultfd: Userfaultfd,
    start: u64,
}

impl DirtyPages {
    /// Starts tracking a memory. Until the first [`Self::clear`] every page counts as written to.
    ///
    /// # Errors
    /// `EINVAL` or `ENOTTY` before Linux 6.7; `EPERM` or `ENOSYS` where userfaultfd(2) is forbidden or missing.
    pub fn track(memory: Arc<SharedMemory>) -> io::Result<Self> {
        // The kernel resolves every fault itself, so no privilege is needed.
        let userfaultfd = Userfaultfd::open_with(Faults::UserModeOnly, FEATURES)?;
        let start = memory.words().as_ptr() as u64;
        let length = memory.len().next_multiple_of(PAGE) as u64;
        // struct uffdio_register: range, mode, ioctls.
        let mut order = [start, length, REGISTER_MODE_WP, 0];
        let fd = userfaultfd.as_fd().as_raw_fd();
        // SAFETY: the kernel reads and writes one uffdio_register, which is as large; the range is that of the mapping.
        let result = unsafe { libc::ioctl(fd, UFFDIO_REGISTER as _, order.as_mut_ptr()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let tracking = Self {
            pagemap: File::open("/proc/self/pagemap")?,
            _userfaultfd: userfaultfd,
            start,
            memory,
        };
        tracking.count()?;
        Ok(tracking)
    }

    /// Self-test: tracks a memory of its own, writes to known pages, and expects exactly these to be found.
    ///
    /// # Errors
    /// Errors of [`Self::track`]; `Other` where the kernel reports other pages.
    pub fn check() -> io::Result<()> {
        const PAGES: usize = 64;
        let memory = Arc::new(SharedMemory::in_small_pages(PAGES * PAGE)?);
        let tracking = Self::track(Arc::clone(&memory))?;
        tracking.clear(|_, _| ())?;
        for known in [&[][..], &[5, 7, 8, 63], &[0], &[8]] {
            for page in known {
                memory.words()[page * PAGE / 8 + page].store(1, Relaxed);
            }
            let counted = tracking.count()?;
            let mut found = Vec::new();
            tracking.clear(|first, pages| found.extend(first..first + pages))?;
            if found != known || counted != known.len() {
                let words =
                    format!("pages {known:?} were written to, and the kernel says {found:?}");
                return Err(io::Error::other(words));
            }
        }
        Ok(())
    }

    /// Number of pages that were written to since [`Self::clear`].
    ///
    /// # Errors
    /// Errors of `PAGEMAP_SCAN`.
    pub fn count(&self) -> io::Result<usize> {
        let mut count = 0;
        self.scan(SCAN_CHECK_WPASYNC, |_, pages| count += pages)?;
        Ok(count)
    }

    /// Calls `each` with the first page and the number of pages of every range that was written to, in order, and
    /// resets the tracking. A page that is written to during the call is reported by this call or by the next.
    ///
    /// # Errors
    /// Errors of `PAGEMAP_SCAN`.
    pub fn clear(&self, each: impl FnMut(usize, usize)) -> io::Result<()> {
        self.scan(SCAN_WP_MATCHING | SCAN_CHECK_WPASYNC, each)
    }

    fn scan(&self, flags: u64, mut each: impl FnMut(usize, usize)) -> io::Result<()> {
        let mut ranges = [PageRegion::default(); RANGES];
        let mut from = self.start;
        let end = self.start + self.memory.len().next_multiple_of(PAGE) as u64;
        while from < end {
            let mut order = ScanArguments {
                size: size_of::<ScanArguments>() as u64,
                flags,
                start: from,
                end,
                walk_end: 0,
                vec: ranges.as_mut_ptr() as u64,
                vec_len: RANGES as u64,
                max_pages: 0,
                category_inverted: 0,
                category_mask: PAGE_IS_WRITTEN,
                category_anyof_mask: 0,
                return_mask: PAGE_IS_WRITTEN,
            };
            // SAFETY: the kernel reads the arguments, and writes them and as many ranges as they say; of the memory it
            // changes only the write protection that this tracking set.
            let found =
                unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut order) };
            if found < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            for range in &ranges[..found as usize] {
                let page = |address: u64| ((address - self.start) as usize) / PAGE;
                each(page(range.start), page(range.end) - page(range.start));
            }
            from = order.walk_end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_written_to_are_found_where_the_kernel_can() {
        match DirtyPages::check() {
            Ok(()) => {}
            Err(error) => {
                let code = error.raw_os_error();
                let old = [libc::EINVAL, libc::ENOTTY, libc::ENOSYS, libc::EPERM];
                assert!(code.is_some_and(|code| old.contains(&code)), "{error}");
                wirecost_skips::skip(format!("this kernel does not track writes: {error}"));
            }
        }
    }

    #[test]
    fn more_ranges_than_one_scan_returns_are_all_told() {
        const PAGES: usize = 8 * RANGES;
        let memory = Arc::new(SharedMemory::in_small_pages(PAGES * PAGE).expect("memory"));
        let Ok(tracking) = DirtyPages::track(Arc::clone(&memory)) else {
            wirecost_skips::skip("this kernel does not track writes");
            return;
        };
        tracking.clear(|_, _| ()).expect("a scan");
        let odd = || (1..PAGES).step_by(2);
        for page in odd() {
            memory.words()[page * PAGE / 8].store(1, Relaxed);
        }
        let mut found = Vec::new();
        tracking
            .clear(|first, pages| found.extend(first..first + pages))
            .expect("a scan");
        assert_eq!(found, odd().collect::<Vec<_>>());
        assert_eq!(tracking.count().expect("a scan"), 0);
    }
}
