//! TAP devices (Documentation/networking/tuntap.rst).

#![expect(unsafe_code, reason = "TUNSETIFF takes a raw struct ifreq")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A TAP device that exists until this is dropped.
#[derive(Debug)]
pub struct Tap {
    _file: File,
}

impl Tap {
    /// Creates a TAP device in the calling thread's network namespace.
    ///
    /// # Errors
    /// `ENOENT` or `ENODEV` without the driver, `EACCES` where this user may not open /dev/net/tun, `EPERM` without
    /// `CAP_NET_ADMIN`; `InvalidInput` for a name that is too long.
    pub fn create(name: &str) -> io::Result<Self> {
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::options()
            .read(true)
            .write(true)
            .open("/dev/net/tun")?;
        // SAFETY: an all-zero ifreq is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request is an ifreq whose name is terminated (checked above), and outlives the call.
        let result = unsafe {
            libc::ioctl(
                file.as_raw_fd(),
                libc::TUNSETIFF as _,
                std::ptr::from_mut(&mut request),
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self { _file: file })
        }
    }
}
