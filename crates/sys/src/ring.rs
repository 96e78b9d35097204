//! An io_uring(7) that exchanges messages over many sockets, with one system call for all operations that can go on.
//!
//! [`Ring`] owns every byte that the kernel reads or writes, and keeps it until the kernel is done: a caller cannot
//! pass memory that is freed too early. Not here: what is sent when, or what an error means.

#![expect(unsafe_code, reason = "entries of a submission queue hold pointers")]

mod memory;
mod refusal;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use ::io_uring::types::{Fixed, SubmitArgs, Timespec};
use ::io_uring::{EnterFlags, IoUring, Probe, opcode, squeue};

use self::memory::Memory;
#[doc(hidden)]
pub use self::refusal::refuse_here;

/// `IORING_RECVSEND_POLL_FIRST` (include/uapi/linux/io_uring.h, Linux 5.19): waits until the socket is readable instead
/// of trying to receive first.
const POLL_FIRST: u16 = 1;
/// `IORING_ENTER_NO_IOWAIT` (ibidem, Linux 6.15): a thread that waits for the network counts as idle, so that no core
/// is clocked up for it.
const NO_IOWAIT: u32 = 1 << 7;
/// Timeout of one wait of a drop, and upper bound on these waits, after which the drop leaks the memory.
const PATIENCE: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;

/// Kind of an entry, in the low bits of its user data.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const WAKE: u64 = 2;
const CANCEL: u64 = 3;
const KINDS: u64 = 4;

/// A completed operation.
#[derive(Debug)]
pub enum Completion {
    /// A receive on the socket of this index: bytes received, 0 at the end of the stream; or the error.
    Received(usize, io::Result<usize>),
    /// A send on the socket of this index: bytes sent, which may be fewer than were asked for; or the error.
    Sent(usize, io::Result<usize>),
    /// The wake descriptor is readable.
    Woken,
}

/// Operations of a socket that are under way.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    receive: bool,
    send: bool,
}

/// An io_uring over a fixed set of sockets, known by their indices in it.
///
/// It belongs to the thread that made it. Dropping it cancels the operations under way and waits until the kernel has
/// released sockets and memory.
pub struct Ring {
    // Declared before the memory, so that it is closed first.
    kernel: IoUring,
    incoming: Memory,
    outgoing: Memory,
    each: usize,
    flights: Box<[InFlight]>,
    wake_is_armed: bool,
    /// Entries that were pushed and are not complete.
    under_way: usize,
    receive_flags: u16,
    enter_flags: EnterFlags,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ring")
            .field("sockets", &self.flights.len())
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring over `sockets`, each with a receive buffer of `each` bytes. All of them send the beginning of `message`.
    /// The ring also waits until `wake` is readable. Every page of its memory is resident afterwards.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has no io_uring, `EPERM` where `kernel.io_uring_disabled` or a seccomp filter forbids
    /// it, `Unsupported` before Linux 5.11 (io_uring_enter(2), `IORING_FEAT_EXT_ARG`) or without an operation that is
    /// needed here; errors of io_uring_register(2) for too many sockets.
    pub fn new(
        sockets: &[BorrowedFd<'_>],
        wake: BorrowedFd<'_>,
        each: usize,
        message: &[u8],
    ) -> io::Result<Self> {
        // A receive and a send of each socket and the poll of `wake`, and as many entries to cancel them.
        let entries = (4 * sockets.len() + 2).next_power_of_two() as u32;
        let (kernel, is_recent) = set_up(entries)?;
        let mut probe = Probe::new();
        kernel.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Recv::CODE,
            opcode::Send::CODE,
            opcode::PollAdd::CODE,
            opcode::AsyncCancel::CODE,
        ];
        if !kernel.params().is_feature_ext_arg()
            || !needed.iter().all(|code| probe.is_supported(*code))
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let files: Vec<RawFd> = sockets
            .iter()
            .chain([&wake])
            .map(AsRawFd::as_raw_fd)
            .collect();
        kernel.submitter().register_files(&files)?;
        let mut enter_flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        if kernel.params().is_feature_no_iowait() {
            enter_flags |= EnterFlags::from_bits_retain(NO_IOWAIT);
        }
        let mut ring = Self {
            kernel,
            incoming: Memory::new(vec![1; each * sockets.len()]),
            outgoing: Memory::new(message.to_vec()),
            each,
            flights: vec![InFlight::default(); sockets.len()].into(),
            wake_is_armed: false,
            under_way: 0,
            receive_flags: if is_recent { POLL_FIRST } else { 0 },
            enter_flags,
        };
        ring.arm_wake()?;
        Ok(ring)
    }

    /// Starts a receive of up to `length` bytes, and no more than the socket's buffer holds. The next [`Self::wait`]
    /// submits it.
    ///
    /// # Errors
    /// `ResourceBusy` where the socket's last receive is under way; errors of [`Self::wait`].
    pub fn receive(&mut self, socket: usize, length: usize) -> io::Result<()> {
        if self.flights[socket].receive {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let at = self.incoming.at(socket * self.each);
        let entry = opcode::Recv::new(
            Fixed(socket as u32),
            at.cast_mut(),
            length.min(self.each) as u32,
        )
        .ioprio(self.receive_flags)
        .build();
        self.push(&entry.user_data(socket as u64 * KINDS + RECEIVE))?;
        self.flights[socket].receive = true;
        Ok(())
    }

    /// Starts a send of the first `length` bytes of the message, and no more than it has. The next [`Self::wait`]
    /// submits it. No signal is raised where the peer is gone.
    ///
    /// # Errors
    /// `ResourceBusy` where the socket's last send is under way; errors of [`Self::wait`].
    pub fn send(&mut self, socket: usize, length: usize) -> io::Result<()> {
        if self.flights[socket].send {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let length = length.min(self.outgoing.len()) as u32;
        let entry = opcode::Send::new(Fixed(socket as u32), self.outgoing.at(0), length)
            .flags(libc::MSG_NOSIGNAL)
            .build();
        self.push(&entry.user_data(socket as u64 * KINDS + SEND))?;
        self.flights[socket].send = true;
        Ok(())
    }

    /// Whether a receive of this socket is under way.
    pub fn is_receiving(&self, socket: usize) -> bool {
        self.flights[socket].receive
    }

    /// Whether a send of this socket is under way.
    pub fn is_sending(&self, socket: usize) -> bool {
        self.flights[socket].send
    }

    /// Bytes of a socket's receive buffer; empty while a receive is under way.
    pub fn buffer(&self, socket: usize) -> &[u8] {
        if self.flights[socket].receive {
            return &[];
        }
        // SAFETY: within the memory, which the kernel writes only while a receive of this socket is under way; the next
        // one needs `&mut self`.
        unsafe { self.incoming.bytes(socket * self.each, self.each) }
    }

    /// Cancels the operations of a socket; each completes all the same, with `ECANCELED` or with what it did.
    ///
    /// # Errors
    /// Errors of [`Self::wait`].
    pub fn cancel(&mut self, socket: usize) -> io::Result<()> {
        let flight = self.flights[socket];
        for (is_there, kind) in [(flight.receive, RECEIVE), (flight.send, SEND)] {
            if is_there {
                self.take_back(socket as u64 * KINDS + kind)?;
            }
        }
        Ok(())
    }

    /// Submits what was started, and waits until an operation is complete, at most `timeout` (`None`: without limit). A
    /// signal ends the wait without a completion. To be called only after [`Self::next_completion`] has returned
    /// `None`.
    ///
    /// # Errors
    /// Errors of io_uring_enter(2), other than `EINTR`, `ETIME`, `EBUSY` and `EAGAIN`.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let time = timeout.map(|timeout| {
            Timespec::new()
                .sec(timeout.as_secs().min(1 << 31))
                .nsec(timeout.subsec_nanos())
        });
        match &time {
            Some(time) => self.enter(1, &SubmitArgs::new().timespec(time)),
            None => self.enter(1, &SubmitArgs::new()),
        }
    }

    /// Next completed operation.
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let entry = self.kernel.completion().next()?;
            self.under_way -= 1;
            let (socket, kind) = (entry.user_data() / KINDS, entry.user_data() % KINDS);
            let socket = socket as usize;
            let result = || match entry.result() {
                error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                bytes => Ok(bytes as usize),
            };
            match kind {
                RECEIVE => {
                    self.flights[socket].receive = false;
                    return Some(Completion::Received(socket, result()));
                }
                SEND => {
                    self.flights[socket].send = false;
                    return Some(Completion::Sent(socket, result()));
                }
                WAKE => {
                    self.wake_is_armed = false;
                    return Some(Completion::Woken);
                }
                // A cancellation: what it cancels completes by itself.
                _ => {}
            }
        }
    }

    /// Waits for the wake descriptor again; to be called once that is not readable any more.
    ///
    /// # Errors
    /// Errors of [`Self::wait`].
    pub fn arm_wake(&mut self) -> io::Result<()> {
        if !self.wake_is_armed {
            let wake = Fixed(self.flights.len() as u32);
            let entry = opcode::PollAdd::new(wake, libc::POLLIN as u32).build();
            self.push(&entry.user_data(WAKE))?;
            self.wake_is_armed = true;
        }
        Ok(())
    }

    fn take_back(&mut self, user_data: u64) -> io::Result<()> {
        self.push(
            &opcode::AsyncCancel::new(user_data)
                .build()
                .user_data(CANCEL),
        )
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: an entry points into this ring's memory only, which is freed when nothing is under way any more, and
        // where it is written no other entry that is under way points to.
        let pushed = unsafe { self.kernel.submission().push(entry) };
        if pushed.is_err() {
            self.enter(0, &SubmitArgs::new())?;
            // SAFETY: as above.
            let pushed = unsafe { self.kernel.submission().push(entry) };
            pushed.map_err(|_| io::ErrorKind::ResourceBusy)?;
        }
        self.under_way += 1;
        Ok(())
    }

    fn enter(&mut self, want: u32, arguments: &SubmitArgs<'_, '_>) -> io::Result<()> {
        let pushed = self.kernel.submission().len() as u32;
        let flags = self.enter_flags.bits();
        // SAFETY: the arguments are those that IORING_ENTER_EXT_ARG means, and outlive the call.
        let entered = unsafe {
            self.kernel
                .submitter()
                .enter(pushed, want, flags, Some(arguments))
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // EBUSY, EAGAIN: completions have to be taken first, or the kernel has no memory now.
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Cancels all operations and waits for them; whether all are complete.
    fn settle(&mut self) -> bool {
        while self.next_completion().is_some() {}
        let taken_back = (0..self.flights.len())
            .try_for_each(|socket| self.cancel(socket))
            .and_then(|()| {
                if self.wake_is_armed {
                    self.take_back(WAKE)?;
                }
                Ok(())
            });
        for _ in 0..LOOKS {
            while self.next_completion().is_some() {}
            if self.under_way == 0 {
                return true;
            }
            if taken_back.is_err() || self.wait(Some(PATIENCE)).is_err() {
                return false;
            }
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.settle() {
            // Leaked, since the kernel might write to it after it is reused.
            self.incoming.leak();
            self.outgoing.leak();
        }
        // Closing a ring releases its files later, on a kernel thread; this releases them now.
        let _ = self.kernel.submitter().unregister_files();
    }
}

/// A ring, and whether the kernel is Linux 6.1 or later: it then defers the ring's work until the thread that owns the
/// ring asks for it (`IORING_SETUP_DEFER_TASKRUN`).
fn set_up(entries: u32) -> io::Result<(IoUring, bool)> {
    let refused = |error: &io::Error| error.raw_os_error() != Some(libc::EINVAL);
    match IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
    {
        Ok(ring) => return Ok((ring, true)),
        Err(error) if refused(&error) => return Err(error),
        Err(_) => {}
    }
    // Linux 5.19.
    match IoUring::builder().setup_coop_taskrun().build(entries) {
        Ok(ring) => return Ok((ring, false)),
        Err(error) if refused(&error) => return Err(error),
        Err(_) => {}
    }
    Ok((IoUring::new(entries)?, false))
}

#[cfg(test)]
mod tests;
