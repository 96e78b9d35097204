//! A ring (io_uring(7)) that exchanges messages over many sockets with one system call for all that can go on.
//!
//! It owns every byte that the kernel reads or writes, and holds on to them until the kernel is done: whoever uses it
//! cannot hand it memory that is gone. Not here: what is sent when, or what an error means.

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

/// `IORING_RECVSEND_POLL_FIRST` (include/uapi/linux/io_uring.h, Linux 5.19): not to look before the socket says that
/// there is something.
const POLL_FIRST: u16 = 1;
/// `IORING_ENTER_NO_IOWAIT` (ibidem, Linux 6.15): a thread that waits for the network is idle, and no core is to be
/// clocked up for it.
const NO_IOWAIT: u32 = 1 << 7;
/// How long a drop waits for the kernel at a time, and how often, before it leaves the memory to it for good.
const PATIENCE: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;

/// What an entry was for, in the low bits of its user data.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const WAKE: u64 = 2;
const CANCEL: u64 = 3;
const KINDS: u64 = 4;

/// Something that is over.
#[derive(Debug)]
pub enum Done {
    /// A socket's receive: so many bytes, 0 at the end of the stream; or why not.
    Received(usize, io::Result<usize>),
    /// A socket's send: so many bytes, which may be fewer than were asked for; or why not.
    Sent(usize, io::Result<usize>),
    /// The descriptor that wakes can be read.
    Woken,
}

/// What the kernel has of a socket's.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    receive: bool,
    send: bool,
}

/// A ring over a fixed set of sockets, known by their places in it.
///
/// It belongs to the thread that made it. Dropping it takes back what is under way and waits until the kernel has let
/// go of sockets and memory.
pub struct Ring {
    // Before the memory: closed first.
    kernel: IoUring,
    incoming: Memory,
    outgoing: Memory,
    each: usize,
    flights: Box<[InFlight]>,
    wake_is_armed: bool,
    /// Entries that were pushed and have not come back.
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
    /// A ring over `sockets`, each of which has a buffer of `each` bytes for what it receives. All of them send the
    /// beginning of `message`. `wake` is waited for beside them. Every page of its memory is there afterwards.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has no rings, `EPERM` where `kernel.io_uring_disabled` or a seccomp filter forbids
    /// them, `Unsupported` before Linux 5.11 (io_uring_enter(2), `IORING_FEAT_EXT_ARG`) or without an operation that
    /// is needed here; what io_uring_register(2) says of too many sockets.
    pub fn new(
        sockets: &[BorrowedFd<'_>],
        wake: BorrowedFd<'_>,
        each: usize,
        message: &[u8],
    ) -> io::Result<Self> {
        // A receive and a send of each socket, and as much again to take them back.
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

    /// Has the kernel receive up to `length` bytes, and no more than its buffer holds, from a socket as soon as there
    /// are any. It is told with the next [`Self::wait`].
    ///
    /// # Errors
    /// `ResourceBusy` where the socket's last receive is under way; what [`Self::wait`] fails with.
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

    /// Has the kernel send the first `length` bytes of the message, and no more than it has, as soon as the socket
    /// takes some. No signal is raised where its peer is gone.
    ///
    /// # Errors
    /// As [`Self::receive`].
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

    /// The bytes of a socket's buffer; none while the kernel may write there.
    pub fn buffer(&self, socket: usize) -> &[u8] {
        if self.flights[socket].receive {
            return &[];
        }
        // SAFETY: within the memory, which the kernel writes only while a receive of this socket is under way; the next
        // one needs `&mut self`.
        unsafe { self.incoming.bytes(socket * self.each, self.each) }
    }

    /// Takes back what is under way of a socket; it comes back all the same, as `ECANCELED` or with what it did.
    ///
    /// # Errors
    /// What [`Self::wait`] fails with.
    pub fn cancel(&mut self, socket: usize) -> io::Result<()> {
        let flight = self.flights[socket];
        for (is_there, kind) in [(flight.receive, RECEIVE), (flight.send, SEND)] {
            if is_there {
                self.take_back(socket as u64 * KINDS + kind)?;
            }
        }
        Ok(())
    }

    /// Tells the kernel what was asked for, and waits until something is over, at most `timeout` (`None`: for ever). A
    /// signal ends the wait with nothing. Not to be called before [`Self::next_done`] has returned `None`.
    ///
    /// # Errors
    /// What io_uring_enter(2) fails with, other than `EINTR` and `ETIME`.
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

    /// The next of what is over.
    pub fn next_done(&mut self) -> Option<Done> {
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
                    return Some(Done::Received(socket, result()));
                }
                SEND => {
                    self.flights[socket].send = false;
                    return Some(Done::Sent(socket, result()));
                }
                WAKE => {
                    self.wake_is_armed = false;
                    return Some(Done::Woken);
                }
                // What it was to take back comes back by itself.
                _ => {}
            }
        }
    }

    /// Waits for the descriptor that wakes again; to be called once it is lowered.
    ///
    /// # Errors
    /// What [`Self::wait`] fails with.
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
                Some(libc::EINTR | libc::ETIME) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes everything back; whether the kernel has let go of all of it.
    fn settle(&mut self) -> bool {
        while self.next_done().is_some() {}
        let taken_back = (0..self.flights.len())
            .try_for_each(|socket| self.cancel(socket))
            .and_then(|()| {
                if self.wake_is_armed {
                    self.take_back(WAKE)?;
                }
                Ok(())
            });
        for _ in 0..LOOKS {
            while self.next_done().is_some() {}
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
            // Better lost than written to by the kernel when it is somebody else's.
            self.incoming.leak();
            self.outgoing.leak();
        }
        // Closing a ring lets go of files later, on a thread of the kernel's; this does it now.
        let _ = self.kernel.submitter().unregister_files();
    }
}

/// A ring, and whether its kernel is of Linux 6.1 at least: work of a ring that one thread has to itself is best left
/// until that thread asks for it.
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
    // Linux 5.19
    match IoUring::builder().setup_coop_taskrun().build(entries) {
        Ok(ring) => return Ok((ring, false)),
        Err(error) if refused(&error) => return Err(error),
        Err(_) => {}
    }
    Ok((IoUring::new(entries)?, false))
}

#[cfg(test)]
mod tests;
