//! A thread to which the kernel refuses io_uring, for tests of what replaces it.

use std::io;

/// Makes the kernel refuse io_uring_setup(2) with `EPERM` to the calling thread and to those that it starts, as
/// container runtimes do (seccomp(2)). For tests; cannot be undone.
///
/// # Errors
/// Errors of prctl(2); `EINVAL` where the kernel filters no system calls.
#[doc(hidden)]
pub fn refuse_here() -> io::Result<()> {
    refuse(libc::SYS_io_uring_setup, libc::EPERM)
}

/// Makes the kernel refuse a system call, with this error, to the calling thread and to those that it starts.
pub(super) fn refuse(call: libc::c_long, error: i32) -> io::Result<()> {
    // struct seccomp_data: the call's number is its first word.
    let statement = |code: u32, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32)
        },
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | error as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: plain numbers; then a program that the kernel copies, with its length.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
