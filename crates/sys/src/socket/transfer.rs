//! send(2) and recv(2) as bare system calls.
//!
//! In a program with threads the C library surrounds each of these calls with the switching on and off of cancellation
//! (pthread_setcanceltype(3)), two locked instructions that nothing here needs: about a twentieth of the reading core
//! where messages of 128 bytes are read one by one.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// send(2) on a connection; returns how many bytes were taken. A broken connection is `EPIPE`, never a signal.
pub fn send(fd: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    send_with(fd, bytes, libc::MSG_NOSIGNAL)
}

/// [`send`] with the caller's flags.
pub(super) fn send_with(fd: &impl AsFd, bytes: &[u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `bytes`; no address. With MSG_ZEROCOPY the kernel pins the pages for
    // as long as it needs them.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd.as_fd().as_raw_fd(),
            bytes.as_ptr(),
            bytes.len(),
            flags,
            ptr::null::<libc::sockaddr>(),
            0,
        )
    };
    counted(sent)
}

/// [`send`] of several parts, at most 1024 (sendmsg(2)).
pub fn send_vectored(fd: &impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: all-zero is a message without address, data and control data.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    // An `IoSlice` is an iovec (its documentation).
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the vectors describe bytes that outlive the call; the kernel only reads them.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmsg,
            fd.as_fd().as_raw_fd(),
            &raw const message,
            libc::MSG_NOSIGNAL,
        )
    };
    counted(sent)
}

/// recv(2). Returns how many bytes were read; 0 at the end of a connection.
pub fn receive(fd: &impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    receive_with(fd, bytes, 0)
}

/// [`receive`] with the caller's flags; with `MSG_TRUNC` the length of a datagram may exceed the buffer.
pub(super) fn receive_with(
    fd: &impl AsFd,
    bytes: &mut [u8],
    flags: libc::c_int,
) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `bytes`, into which the kernel writes at most so much.
    unsafe { receive_at(fd, bytes.as_mut_ptr(), bytes.len(), flags) }
}

/// Takes up to `length` bytes from a TCP connection and discards them uncopied (`MSG_TRUNC`, tcp(7)). Returns how many;
/// 0 at the end of the stream.
pub fn receive_discarding(fd: &impl AsFd, length: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer, which may therefore be null (net/ipv4/tcp.c,
    // tcp_recvmsg_locked).
    unsafe { receive_at(fd, ptr::null_mut(), length, libc::MSG_TRUNC) }
}

/// # Safety
/// There are `length` bytes at `bytes` that the kernel may write to, or it writes none.
unsafe fn receive_at(
    fd: &impl AsFd,
    bytes: *mut u8,
    length: usize,
    flags: libc::c_int,
) -> io::Result<usize> {
    // SAFETY: as the caller promised; the sender's address is not asked for.
    let received = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd.as_fd().as_raw_fd(),
            bytes,
            length,
            flags,
            ptr::null_mut::<libc::sockaddr>(),
            ptr::null_mut::<libc::socklen_t>(),
        )
    };
    counted(received)
}

fn counted(returned: libc::c_long) -> io::Result<usize> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned as usize)
    }
}
