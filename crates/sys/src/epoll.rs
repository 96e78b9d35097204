//! epoll(7) with waits of nanosecond resolution, and a waker for them.

#![expect(
    unsafe_code,
    reason = "epoll_pwait2(2) has no wrapper in nix, whose waits end on whole milliseconds"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Events to wait for on a descriptor. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Readable, or the peer has shut down its sending side (`EPOLLIN`, `EPOLLRDHUP`).
    pub read: bool,
    /// Writable (`EPOLLOUT`).
    pub write: bool,
}

impl Interest {
    /// Readable only.
    pub const READ: Self = Self {
        read: true,
        write: false,
    };
    /// No event; errors are reported all the same (epoll_ctl(2)).
    pub const NONE: Self = Self {
        read: false,
        write: false,
    };
    /// Writable only.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
    };

    fn bits(self) -> u32 {
        let bit = |on: bool, bit: i32| if on { bit as u32 } else { 0 };
        bit(self.read, libc::EPOLLIN | libc::EPOLLRDHUP) | bit(self.write, libc::EPOLLOUT)
    }
}

/// Buffer for the events that one wait returns.
#[derive(Debug)]
pub struct Events {
    raw: Box<[libc::epoll_event]>,
    filled: usize,
}

impl Events {
    /// Buffer for `count` events, at least one.
    pub fn with_capacity(count: usize) -> Self {
        Self {
            raw: vec![libc::epoll_event { events: 0, u64: 0 }; count.max(1)].into_boxed_slice(),
            filled: 0,
        }
    }

    /// Tokens of the descriptors that the last wait found ready.
    pub fn tokens(&self) -> impl Iterator<Item = u64> + '_ {
        self.raw[..self.filled].iter().map(|event| event.u64)
    }
}

/// A set of descriptors that are waited for, level-triggered.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a flag, returns a new descriptor or -1.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Adds a descriptor, reported as `token`; closing its last duplicate removes it.
    pub fn add(&self, fd: &impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, interest.bits(), token)
    }

    /// Adds a descriptor that several sets wait for, of which the kernel need wake only one (`EPOLLEXCLUSIVE`).
    pub fn add_exclusive(&self, fd: &impl AsFd, token: u64) -> io::Result<()> {
        let bits = libc::EPOLLIN as u32 | libc::EPOLLEXCLUSIVE as u32;
        self.control(libc::EPOLL_CTL_ADD, fd, bits, token)
    }

    /// Changes the events that a descriptor is waited for.
    pub fn modify(&self, fd: &impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, interest.bits(), token)
    }

    /// Removes a descriptor.
    pub fn remove(&self, fd: &impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: &impl AsFd,
        events: u32,
        token: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: both descriptors are open, and `event` outlives the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                operation,
                fd.as_fd().as_raw_fd(),
                &raw mut event,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Waits until a descriptor is ready, at most `timeout` (`None`: without limit). A signal ends the wait without
    /// events.
    ///
    /// Kernels before 5.11 wait whole milliseconds only, to which the timeout is then rounded up.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.filled = 0;
        let time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(1 << 31) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        });
        let count = events.raw.len() as libc::c_int;
        // SAFETY: the array has room for `count` events, the time is a valid timespec or null, no signal mask.
        let mut ready = unsafe {
            libc::epoll_pwait2(
                self.fd.as_raw_fd(),
                events.raw.as_mut_ptr(),
                count,
                time.as_ref()
                    .map_or(std::ptr::null(), std::ptr::from_ref::<libc::timespec>),
                std::ptr::null(),
            )
        };
        if ready < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            let milliseconds = timeout.map_or(-1, |timeout| {
                timeout
                    .as_micros()
                    .div_ceil(1000)
                    .min(u128::from(i32::MAX.unsigned_abs())) as libc::c_int
            });
            // SAFETY: as above.
            ready = unsafe {
                libc::epoll_wait(
                    self.fd.as_raw_fd(),
                    events.raw.as_mut_ptr(),
                    count,
                    milliseconds,
                )
            };
        }
        if ready >= 0 {
            events.filled = ready as usize;
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}

/// Wakes a thread that waits for this in an [`Epoll`] (eventfd(2)).
#[derive(Debug)]
pub struct Waker(EventFd);

impl Waker {
    /// A waker that is not raised.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Raises the waker; has no effect where it is raised already.
    pub fn raise(&self) {
        // Fails only where the counter is full, and then the waker is raised.
        let _ = self.0.write(1);
    }

    /// Lowers the waker.
    pub fn lower(&self) {
        // Fails only where the waker is not raised.
        let _ = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_secs(10));

    #[test]
    fn a_wait_tells_who_is_ready_and_forgets_who_was_removed() {
        let epoll = Epoll::new().unwrap();
        let mut events = Events::with_capacity(4);
        let (mut near, far) = UnixStream::pair().unwrap();
        epoll.add(&far, Interest::READ, 7).unwrap();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.tokens().count(), 0);
        near.write_all(&[1]).unwrap();
        epoll.wait(&mut events, LONG).unwrap();
        assert_eq!(events.tokens().collect::<Vec<_>>(), [7]);
        epoll.modify(&far, Interest::WRITE, 8).unwrap();
        epoll.wait(&mut events, LONG).unwrap();
        assert_eq!(events.tokens().collect::<Vec<_>>(), [8]);
        epoll.remove(&far).unwrap();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.tokens().count(), 0);
    }

    #[test]
    fn a_wake_stays_raised_until_it_is_lowered() {
        let epoll = Epoll::new().unwrap();
        let mut events = Events::with_capacity(1);
        let wake = Waker::new().unwrap();
        epoll.add(&wake, Interest::READ, 1).unwrap();
        wake.raise();
        wake.raise();
        for _ in 0..2 {
            epoll.wait(&mut events, LONG).unwrap();
            assert_eq!(events.tokens().count(), 1);
        }
        wake.lower();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.tokens().count(), 0);
    }

    #[test]
    fn a_wait_for_nothing_ends_by_its_time() {
        let epoll = Epoll::new().unwrap();
        let mut events = Events::with_capacity(1);
        epoll
            .wait(&mut events, Some(Duration::from_nanos(1)))
            .unwrap();
        assert_eq!(events.tokens().count(), 0);
    }
}
