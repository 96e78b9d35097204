//! userfaultfd(2): whether page faults can be handled by a program, and which kinds.

#![expect(unsafe_code, reason = "userfaultfd(2) has no wrapper in nix")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const UFFD_USER_MODE_ONLY: i32 = 1;
const UFFD_API: u64 = 0xaa;
/// `_IOWR(0xaa, 0x3f, struct uffdio_api)`.
const UFFDIO_API: u64 = 0xc018_aa3f;
/// `UFFD_FEATURE_PAGEFAULT_FLAG_WP`: write protection of anonymous memory.
const FEATURE_WRITE_PROTECT: u64 = 1;

/// Page faults that are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Those in user mode and those in system calls: what a migration needs.
    All,
    /// Those in user mode only; needs no privilege since Linux 5.11.
    UserModeOnly,
}

/// An open userfaultfd; memory is registered with it by its users. Closed when dropped.
#[derive(Debug)]
pub struct Userfaultfd {
    features: u64,
    fd: OwnedFd,
}

impl Userfaultfd {
    /// Opens a userfaultfd and agrees on the version of the interface.
    ///
    /// # Errors
    /// `EPERM` without privilege where `vm.unprivileged_userfaultfd` is 0, `ENOSYS` where the kernel has no
    /// userfaultfd(2).
    pub fn open(faults: Faults) -> io::Result<Self> {
        Self::open_with(faults, 0)
    }

    /// As [`Self::open`], with features of struct uffdio_api.
    pub(crate) fn open_with(faults: Faults, features: u64) -> io::Result<Self> {
        let mode = match faults {
            Faults::All => 0,
            Faults::UserModeOnly => UFFD_USER_MODE_ONLY,
        };
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | mode;
        // SAFETY: takes an integer, returns a new descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // struct uffdio_api: api, features, ioctls.
        let mut api = [UFFD_API, features, 0];
        // SAFETY: the kernel reads and writes one uffdio_api at the pointer, which is as large.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_API as _, api.as_mut_ptr()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            features: api[1],
            fd,
        })
    }

    /// Whether the kernel can write-protect anonymous memory, to track written pages.
    pub fn write_protects(&self) -> bool {
        self.features & FEATURE_WRITE_PROTECT != 0
    }
}

impl AsFd for Userfaultfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_opens_or_the_refusal_is_a_known_one() {
        for faults in [Faults::All, Faults::UserModeOnly] {
            // EINVAL and ENOTTY would be our own mistake, save for kernels before 5.11 and the flag.
            if let Err(error) = Userfaultfd::open(faults) {
                let known = match faults {
                    Faults::All => [libc::EPERM, libc::ENOSYS],
                    Faults::UserModeOnly => [libc::EINVAL, libc::ENOSYS],
                };
                assert!(
                    known.contains(&error.raw_os_error().expect("code")),
                    "{error}"
                );
            }
        }
    }
}
