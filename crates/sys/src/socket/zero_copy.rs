//! `MSG_ZEROCOPY` (Documentation/networking/msg_zerocopy.rst): sends that pin the caller's pages, and their
//! completions.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use super::set_int;
use super::transfer::send_with;

/// `SO_EE_ORIGIN_ZEROCOPY`, include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`, ibid.
const CODE_COPIED: u8 = 1;

/// Counts of sends that the kernel has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completions {
    /// Completed send calls.
    pub completed: u64,
    /// Those of them whose data was copied after all (`SO_EE_CODE_ZEROCOPY_COPIED`), as over loopback and veth.
    pub copied: u64,
}

/// Allows [`send_zero_copy`] on a socket (`SO_ZEROCOPY`).
pub fn enable_zero_copy(fd: &impl AsFd) -> io::Result<()> {
    set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Sends from the caller's own pages. Their content must not change until the send is completed: otherwise the peer may
/// receive the later content, but nothing worse happens.
///
/// `None` where too many sends are not completed (`net.core.optmem_max`): send with a copy then.
pub fn send_zero_copy(fd: &impl AsFd, buffer: &[u8]) -> io::Result<Option<usize>> {
    match send_with(fd, buffer, libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL) {
        Ok(sent) => Ok(Some(sent)),
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Buffer for one control message of the error queue: `sock_extended_err` and an address.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Takes every completion from the error queue. Never blocks, allocates nothing.
pub fn read_completions(fd: &impl AsFd) -> io::Result<Completions> {
    let mut all = Completions::default();
    loop {
        let mut control = Control([0; 128]);
        // SAFETY: an all-zero msghdr is valid: no name, no data, no control.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: `message` points at `control`, and both outlive the call.
        let result = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut message, flags) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(all),
                io::ErrorKind::Interrupted => continue,
                _ => Err(error),
            };
        }
        // SAFETY: recvmsg filled `message`; CMSG_FIRSTHDR returns null or a whole header within `control`.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        if header.is_null() {
            continue;
        }
        // SAFETY: the kernel puts a whole `sock_extended_err` behind the header of IP_RECVERR and IPV6_RECVERR, the
        // only control messages of an error queue entry; it is plain integers.
        let error: libc::sock_extended_err =
            unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
        if error.ee_errno == 0 && error.ee_origin == ORIGIN_ZEROCOPY {
            // A range of sends, numbered from 0 in 32 bits; both ends are included.
            let count = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
            all.completed += count;
            if error.ee_code == CODE_COPIED {
                all.copied += count;
            }
        }
    }
}
