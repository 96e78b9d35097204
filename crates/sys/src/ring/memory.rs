//! Memory that the kernel uses while nothing here may.

use std::ptr::{self, NonNull};
use std::slice;

/// Bytes behind a pointer: no reference to them exists while the kernel may write them.
#[derive(Debug)]
pub(super) struct Memory {
    bytes: NonNull<[u8]>,
    leaked: bool,
}

impl Memory {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: NonNull::from(Box::leak(bytes.into_boxed_slice())),
            leaked: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Pointer to the byte at `offset`, or to the end of the memory.
    pub(super) fn at(&self, offset: usize) -> *const u8 {
        assert!(offset <= self.len(), "beyond the memory");
        // SAFETY: within the allocation or at its end.
        unsafe { self.bytes.cast::<u8>().as_ptr().add(offset) }
    }

    /// `length` bytes from `offset`.
    ///
    /// # Safety
    /// Nothing may write the bytes as long as they are borrowed.
    pub(super) unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        assert!(offset + length <= self.len(), "beyond the memory");
        // SAFETY: within the allocation, whose every byte was initialised; the rest is the caller's promise.
        unsafe { slice::from_raw_parts(self.at(offset), length) }
    }

    /// Keeps a drop from freeing the memory.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: it was leaked from a box in `new`, and is freed once.
            drop(unsafe { Box::from_raw(ptr::from_mut(self.bytes.as_mut())) });
        }
    }
}
