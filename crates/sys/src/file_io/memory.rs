//! Page-aligned memory that the kernel writes to.

#![expect(
    unsafe_code,
    reason = "memory that O_DIRECT takes has an alignment, and the kernel writes it"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::slice;

/// Alignment that satisfies any direct I/O, bytes.
const PAGE: usize = 4096;

/// Bytes behind a pointer: no reference to any of them exists while the kernel may write them.
#[derive(Debug)]
pub(super) struct AlignedMemory {
    bytes: NonNull<u8>,
    layout: Layout,
    leaked: bool,
}

// SAFETY: it is the only owner of its bytes.
unsafe impl Send for AlignedMemory {}

impl AlignedMemory {
    /// Memory of `length` bytes, every page resident: the first byte of a page is 1, the others are 0.
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let layout = Layout::from_size_align(length.max(1), PAGE)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: the size is not zero.
        let bytes =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut memory = Self {
            bytes,
            layout,
            leaked: false,
        };
        for page in memory.bytes(0, length).chunks_mut(PAGE) {
            page[0] = 1;
        }
        Ok(memory)
    }

    /// Pointer to the byte at `offset`, or to the end of the memory.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.layout.size(), "beyond the memory");
        // SAFETY: within the allocation or at its end.
        unsafe { self.bytes.as_ptr().add(offset) }
    }

    /// `length` bytes from `offset`, on which no operation may be under way.
    pub(super) fn bytes(&mut self, offset: usize, length: usize) -> &mut [u8] {
        assert!(offset + length <= self.layout.size(), "beyond the memory");
        // SAFETY: within the allocation, all of it initialised; borrowed from `self`, and [`super::FileIo`] asks only
        // for slots that the kernel does not have.
        unsafe { slice::from_raw_parts_mut(self.at(offset), length) }
    }

    /// Keeps a drop from freeing the memory.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: from `alloc_zeroed` with this layout, and freed once.
            unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
        }
    }
}
