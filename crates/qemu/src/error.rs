//! Errors of a virtual machine.

use std::io;
use std::time::Duration;

/// A virtual machine could not be started, failed a command or ended.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// QEMU is not installed.
    #[error(
        "there is no qemu-system-x86_64 in PATH: install it (Debian: qemu-system-x86), or use `engine: memory`"
    )]
    Absent,
    /// QEMU is installed, but no machine runs in it; the reason in words.
    #[error("{0}")]
    Unusable(String),
    /// The QEMU process, its memory or a thread could not be created.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The QEMU process ended.
    #[error("QEMU ended ({status}){}{stderr}", if stderr.is_empty() { "" } else { ": " })]
    Died {
        /// Its exit status, in words.
        status: String,
        /// The end of its standard error, lines joined by `; `.
        stderr: String,
    },
    /// The monitor refused a command.
    #[error("QEMU refused `{command}`: {words}")]
    Refused {
        /// The command.
        command: String,
        /// QEMU's message.
        words: String,
    },
    /// The monitor did not answer.
    #[error("QEMU did not answer `{command}` within {} s", after.as_secs())]
    Silent {
        /// The command.
        command: String,
        /// The time-out.
        after: Duration,
    },
    /// The guest did not start in time.
    #[error("the guest did not start within {} s", after.as_secs())]
    NotBooted {
        /// The time-out.
        after: Duration,
    },
}
