//! io_uring: whether a ring can be set up. I/O by a ring is in [`crate::ring`].

#![expect(unsafe_code, reason = "io_uring_setup(2) has no wrapper in nix")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `struct io_uring_params` (include/uapi/linux/io_uring.h): 120 bytes, of which word 5 is `features`.
const PARAMS_WORDS: usize = 30;
const FEATURES_WORD: usize = 5;

/// A ring that nothing is submitted to. Closed when dropped.
#[derive(Debug)]
pub struct IdleRing {
    features: u32,
    _fd: OwnedFd,
}

impl IdleRing {
    /// Sets up a ring with `entries` submission entries.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has no io_uring, `EPERM` where `kernel.io_uring_disabled` or a seccomp filter forbids
    /// it.
    pub fn set_up(entries: u32) -> io::Result<Self> {
        let mut params = [0u32; PARAMS_WORDS];
        // SAFETY: the kernel reads and writes one io_uring_params at the pointer, which is as large.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, params.as_mut_ptr()) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            features: params[FEATURES_WORD],
            // SAFETY: the kernel has just returned it to us, nobody else owns it.
            _fd: unsafe { OwnedFd::from_raw_fd(fd as i32) },
        })
    }

    /// `IORING_FEAT_*` bits of the kernel.
    pub fn features(&self) -> u32 {
        self.features
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_features_or_the_refusal_is_a_known_one() {
        match IdleRing::set_up(4) {
            // IORING_FEAT_SINGLE_MMAP, since Linux 5.4.
            Ok(ring) => assert_eq!(ring.features() & 1, 1),
            Err(error) => assert!(
                [libc::ENOSYS, libc::EPERM, libc::ENOMEM]
                    .contains(&error.raw_os_error().expect("code")),
                "{error}"
            ),
        }
    }
}
