//! Whether standard output was open when the program was started.

#![expect(unsafe_code, reason = "whatever runs before the runtime is unsafe")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the C library before Rust's runtime, which opens /dev/null in place of a closed standard output
/// (`sanitize_standard_fds`): afterwards it cannot be told from a /dev/null that the user chose.
#[used]
// SAFETY: the section holds pointers to functions of this type (System V gABI, "Initialization and Termination
// Functions"); the function calls nothing but fcntl(2) and needs nothing of the runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a flag of a descriptor, which need not be open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was closed at the start.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
