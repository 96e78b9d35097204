//! Operations on a file in an io_uring(7).

#![expect(unsafe_code, reason = "entries of a submission queue hold pointers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use ::io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use ::io_uring::{EnterFlags, IoUring, Probe, opcode, squeue};

use super::{FileOperation, Order};

/// User data of the entries that cancel an operation.
const CANCEL: u64 = u64::MAX;

pub(super) struct RingQueue {
    kernel: IoUring,
    _file: Arc<File>,
}

impl std::fmt::Debug for RingQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RingQueue").finish_non_exhaustive()
    }
}

impl RingQueue {
    /// # Errors
    /// Those of [`crate::ring::Ring::new`].
    pub(super) fn new(file: &Arc<File>, slots: usize) -> io::Result<Self> {
        let entries = (2 * slots).next_power_of_two() as u32;
        // IORING_SETUP_COOP_TASKRUN (Linux 5.19) lets threads other than this one use the ring.
        let kernel = match IoUring::builder().setup_coop_taskrun().build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
            built => built,
        }?;
        let mut probe = Probe::new();
        kernel.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Fsync::CODE,
            opcode::AsyncCancel::CODE,
        ];
        if !kernel.params().is_feature_ext_arg()
            || !needed.iter().all(|code| probe.is_supported(*code))
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        kernel.submitter().register_files(&[file.as_raw_fd()])?;
        Ok(Self {
            kernel,
            _file: Arc::clone(file),
        })
    }

    pub(super) fn push(&mut self, order: Order) -> io::Result<()> {
        let (file, bytes, length) = (Fixed(0), order.bytes, order.length);
        let entry = match order.operation {
            FileOperation::Read => opcode::Read::new(file, bytes, length)
                .offset(order.offset)
                .build(),
            FileOperation::Write => opcode::Write::new(file, bytes, length)
                .offset(order.offset)
                .build(),
            FileOperation::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        self.push_entry(&entry.user_data(order.slot as u64))
    }

    /// Requests that a slot's operation be cancelled; its completion arrives all the same.
    pub(super) fn cancel(&mut self, slot: usize) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(slot as u64).build();
        self.push_entry(&entry.user_data(CANCEL))
    }

    fn push_entry(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: an entry points into the memory of its `FileIo`, which keeps it until the entry is complete.
        if unsafe { self.kernel.submission().push(entry) }.is_err() {
            self.enter(None)?;
            // SAFETY: as above.
            let pushed = unsafe { self.kernel.submission().push(entry) };
            pushed.map_err(|_| io::ErrorKind::ResourceBusy)?;
        }
        Ok(())
    }

    /// Submits the queued entries; with a timeout, also waits for one completion.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let pushed = self.kernel.submission().len() as u32;
        let time = timeout.map(|timeout| {
            Timespec::new()
                .sec(timeout.as_secs().min(1 << 31))
                .nsec(timeout.subsec_nanos())
        });
        let mut arguments = SubmitArgs::new();
        if let Some(time) = &time {
            arguments = arguments.timespec(time);
        }
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        let wanted = u32::from(timeout.is_some());
        // SAFETY: the arguments are those that IORING_ENTER_EXT_ARG means, and outlive the call.
        let entered = unsafe {
            self.kernel
                .submitter()
                .enter(pushed, wanted, flags.bits(), Some(&arguments))
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // EBUSY, EAGAIN: completions have to be taken first.
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Next slot whose operation is complete, and its result: bytes moved, or a negative errno.
    pub(super) fn next(&mut self) -> Option<(usize, i64)> {
        loop {
            let entry = self.kernel.completion().next()?;
            if entry.user_data() != CANCEL {
                return Some((entry.user_data() as usize, entry.result().into()));
            }
        }
    }
}
