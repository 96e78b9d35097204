//! Operations on a file by io_submit(2), for kernels that refuse io_uring. libc has no wrapper: numbers and layout are
//! those of include/uapi/linux/aio_abi.h.

#![expect(unsafe_code, reason = "io_setup(2) and its kin have no wrapper")]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::{FileOperation, Order};

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    second: i64,
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const FDSYNC: u16 = 3;

pub(super) struct AioQueue {
    context: libc::c_ulong,
    /// One block for each slot: the kernel identifies an operation by the address of its block.
    blocks: Box<[libc::iocb]>,
    /// Slots whose operation is not submitted yet.
    queued: VecDeque<usize>,
    over: VecDeque<(usize, i64)>,
    events: Box<[Event]>,
    file: Arc<File>,
    leaked: bool,
}

// SAFETY: the blocks point to memory of the `FileIo` that owns this queue.
unsafe impl Send for AioQueue {}

impl std::fmt::Debug for AioQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AioQueue").finish_non_exhaustive()
    }
}

impl AioQueue {
    pub(super) fn new(file: &Arc<File>, slots: usize) -> io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: a number, and a pointer to a context of zero that the kernel writes.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, slots as u32, &raw mut context) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: plain numbers, of which zero is one.
        let block: libc::iocb = unsafe { std::mem::zeroed() };
        Ok(Self {
            context,
            blocks: vec![block; slots].into(),
            queued: VecDeque::with_capacity(slots),
            over: VecDeque::with_capacity(slots),
            events: vec![Event::default(); slots].into(),
            file: Arc::clone(file),
            leaked: false,
        })
    }

    pub(super) fn push(&mut self, order: Order) {
        let block = &mut self.blocks[order.slot];
        block.aio_data = order.slot as u64;
        block.aio_lio_opcode = match order.operation {
            FileOperation::Read => READ,
            FileOperation::Write => WRITE,
            FileOperation::Flush => FDSYNC,
        };
        block.aio_fildes = self.file.as_raw_fd() as u32;
        // A flush must have no buffer, length or offset (aio_fsync, fs/aio.c).
        let is_flush = order.operation == FileOperation::Flush;
        let (bytes, length, offset) = if is_flush {
            (0, 0, 0)
        } else {
            (order.bytes as u64, order.length.into(), order.offset)
        };
        block.aio_buf = bytes;
        block.aio_nbytes = length;
        block.aio_offset = offset.cast_signed();
        self.queued.push_back(order.slot);
    }

    pub(super) fn submit(&mut self) -> io::Result<()> {
        while let Some(slot) = self.queued.front().copied() {
            let mut all: Vec<*mut libc::iocb> = Vec::with_capacity(self.queued.len());
            for slot in &self.queued {
                all.push(&raw mut self.blocks[*slot]);
            }
            let count = all.len() as libc::c_long;
            // SAFETY: `count` pointers to blocks that stay where they are until their operations are complete.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, count, all.as_mut_ptr())
            };
            if taken > 0 {
                self.queued.drain(..taken as usize);
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => return Ok(()),
                // The first block is invalid: its error becomes the result of its operation.
                Some(code) => {
                    self.queued.pop_front();
                    self.over.push_back((slot, -i64::from(code)));
                }
                None => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let least = libc::c_long::from(self.over.is_empty());
        let mut time = libc::timespec {
            tv_sec: timeout.as_secs().min(1 << 31) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        };
        let most = self.events.len() as libc::c_long;
        // SAFETY: room for `most` events, and a valid time.
        let found = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                least,
                most,
                self.events.as_mut_ptr(),
                &raw mut time,
            )
        };
        if found < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                _ => Err(error),
            };
        }
        let found = self.events[..found as usize].iter();
        self.over
            .extend(found.map(|event| (event.data as usize, event.result)));
        Ok(())
    }

    pub(super) fn next(&mut self) -> Option<(usize, i64)> {
        self.over.pop_front()
    }

    /// Leaves the context to the kernel: a drop does not destroy it.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for AioQueue {
    fn drop(&mut self) {
        if self.leaked {
            // The kernel has copied the blocks, so they may be freed.
            return;
        }
        // SAFETY: a context of io_setup(2), destroyed once.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context, ptr::null::<()>()) };
    }
}
