//! Asynchronous reads and writes of one file or block device, in buffers of this module: by io_uring(7), or by
//! io_submit(2) where the kernel refuses io_uring.
//!
//! [`FileIo`] owns every byte that the kernel reads or writes, and keeps it until the kernel is done. Not here: which
//! I/O is issued when, or what an error means.

mod aio;
mod memory;
mod queue;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::aio::AioQueue;
use self::memory::AlignedMemory;
use self::queue::RingQueue;

/// How long a drop waits for operations under way before it leaks their memory.
const PATIENCE: Duration = Duration::from_secs(2);

/// What an operation does with the bytes of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOperation {
    /// Reads them from the file.
    Read,
    /// Writes them to the file.
    Write,
    /// Makes written data durable, as fdatasync(2) does. Uses no bytes.
    Flush,
}

/// One operation as it is submitted to the kernel.
#[derive(Debug, Clone, Copy)]
struct Order {
    operation: FileOperation,
    slot: usize,
    bytes: *mut u8,
    length: u32,
    offset: u64,
}

#[derive(Debug)]
enum Backend {
    Ring(RingQueue),
    Aio(AioQueue),
}

/// A fixed number of slots with a buffer each, for operations on one file.
///
/// Dropping it cancels the operations under way and waits for them, at most 2 s: memory that the kernel may still write
/// is never freed.
#[derive(Debug)]
pub struct FileIo {
    // Declared before the memory, so that it is closed first.
    backend: Backend,
    memory: AlignedMemory,
    each: usize,
    busy: Box<[bool]>,
    under_way: usize,
}

impl FileIo {
    /// Makes `slots` buffers of `each` bytes, page-aligned, every page resident. Also returns why the kernel refused
    /// io_uring, where it did.
    ///
    /// # Errors
    /// `OutOfMemory`; errors of io_setup(2) where io_uring is refused, such as `EAGAIN` beyond `fs.aio-max-nr`.
    pub fn new(
        file: &Arc<File>,
        slots: usize,
        each: usize,
    ) -> io::Result<(Self, Option<io::Error>)> {
        let (backend, refused) = match RingQueue::new(file, slots) {
            Ok(ring) => (Backend::Ring(ring), None),
            Err(refused) => (Backend::Aio(AioQueue::new(file, slots)?), Some(refused)),
        };
        let io = Self {
            backend,
            memory: AlignedMemory::new(slots * each)?,
            each,
            busy: vec![false; slots].into(),
            under_way: 0,
        };
        Ok((io, refused))
    }

    /// Bytes of a slot's buffer; empty while an operation on the slot is under way.
    pub fn buffer(&mut self, slot: usize) -> &mut [u8] {
        let length = if self.busy[slot] { 0 } else { self.each };
        self.memory.bytes(slot * self.each, length)
    }

    /// Queues an operation on bytes `from..to` of a slot, at `offset` bytes in the file. The next [`Self::wait`]
    /// submits it.
    ///
    /// # Errors
    /// `ResourceBusy` where the slot's last operation is under way; `InvalidInput` for a range that the slot does not
    /// have.
    pub fn start(
        &mut self,
        operation: FileOperation,
        slot: usize,
        [from, to]: [usize; 2],
        offset: u64,
    ) -> io::Result<()> {
        if self.busy[slot] {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if from > to || to > self.each {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let order = Order {
            operation,
            slot,
            bytes: self.memory.at(slot * self.each + from),
            length: (to - from) as u32,
            offset,
        };
        match &mut self.backend {
            Backend::Ring(ring) => ring.push(order)?,
            Backend::Aio(aio) => aio.push(order),
        }
        self.busy[slot] = true;
        self.under_way += 1;
        Ok(())
    }

    /// Submits what was queued, and waits until an operation is complete, at most `timeout`, which may be zero. A
    /// signal ends the wait.
    ///
    /// # Errors
    /// Errors of io_uring_enter(2), io_submit(2) or io_getevents(2), other than `EINTR` and `ETIME`.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        match &mut self.backend {
            Backend::Ring(ring) => ring.enter((!timeout.is_zero()).then_some(timeout)),
            Backend::Aio(aio) => aio.submit().and_then(|()| aio.wait(timeout)),
        }
    }

    /// Next slot whose operation is complete: the bytes moved, which may be fewer than were asked for, or why it
    /// failed.
    pub fn next_completion(&mut self) -> Option<(usize, io::Result<usize>)> {
        let (slot, result) = match &mut self.backend {
            Backend::Ring(ring) => ring.next()?,
            Backend::Aio(aio) => aio.next()?,
        };
        self.busy[slot] = false;
        self.under_way -= 1;
        let result = if result < 0 {
            Err(io::Error::from_raw_os_error(-result as i32))
        } else {
            Ok(result as usize)
        };
        Some((slot, result))
    }

    /// Cancels the operations under way and waits for them; `false` where some are left after [`PATIENCE`].
    fn settle(&mut self) -> bool {
        while self.next_completion().is_some() {}
        if let Backend::Ring(ring) = &mut self.backend {
            let busy = (0..self.busy.len()).filter(|slot| self.busy[*slot]);
            if busy.map(|slot| ring.cancel(slot)).any(|done| done.is_err()) {
                return self.under_way == 0;
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while self.under_way > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(left).is_err() {
                return false;
            }
            while self.next_completion().is_some() {}
        }
        true
    }
}

impl Drop for FileIo {
    fn drop(&mut self) {
        if !self.settle() {
            self.memory.leak();
            if let Backend::Aio(aio) = &mut self.backend {
                // io_destroy(2) would wait for operations that do not complete.
                aio.leak();
            }
        }
    }
}

#[cfg(test)]
mod tests;
