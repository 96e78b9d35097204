//! What can go wrong with a virtual machine.

use std::io;
use std::time::Duration;

/// Why a virtual machine could not be had, or does not do what it is told.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// There is no QEMU.
    #[error(
        "there is no qemu-system-x86_64 in PATH: install it (Debian: qemu-system-x86), or use `engine: memory`"
    )]
    Absent,
    /// It was found and no machine runs in it.
    #[error("{0}")]
    Unusable(String),
    /// The process, its memory or a thread could not be made.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The process ended.
    #[error("QEMU ended ({status}){}{said}", if said.is_empty() { "" } else { ": " })]
    Died {
        /// Its exit status, in words.
        status: String,
        /// The end of its standard error.
        said: String,
    },
    /// The monitor refused a command.
    #[error("QEMU refused `{command}`: {words}")]
    Refused {
        /// The command.
        command: String,
        /// QEMU's own words.
        words: String,
    },
    /// The monitor did not answer.
    #[error("QEMU did not answer `{command}` within {} s", after.as_secs())]
    Silent {
        /// The command.
        command: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The guest did not come up.
    #[error("the guest did not start within {} s", after.as_secs())]
    NotBooted {
        /// How long it was waited for.
        after: Duration,
    },
}
