//! Errors of applying and undoing settings.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use wirecost_netbuild::BuildError;

use crate::error::joined;

/// Why the settings of a level cannot be applied or undone.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A level cannot be applied.
    #[error("{place}: {level}: {source}")]
    NotApplied {
        /// The place, as messages call it.
        place: String,
        /// The level: "the level `x` of `y`".
        level: String,
        /// The setting that failed, and why.
        source: Box<SettingsError>,
    },
    /// A change could not be undone; the next undoing tries it again.
    #[error("{place}: {level}: it could not be undone: {source}")]
    NotUndone {
        /// The place, as messages call it.
        place: String,
        /// The level that made the change.
        level: String,
        /// Why it could not be undone.
        source: Box<SettingsError>,
    },
    /// Several changes could not be undone.
    #[error("{}", joined(.0))]
    Several(Vec<SettingsError>),
    /// A name or value that no plan can have.
    #[error("{0}")]
    Faulty(String),
    /// A sysctl cannot be read or set.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The kernel or its driver refused a change of a device.
    #[error(transparent)]
    Device(#[from] BuildError),
    /// A step of a journal names something other than a device.
    #[error("{0:?} is no device")]
    NoDevice(String),
    /// A command could not be run.
    #[error("the command `{command}` could not be run: {source}")]
    CommandNotRun {
        /// The command.
        command: String,
        /// The error of starting it or of waiting for it.
        source: io::Error,
    },
    /// A command failed, or was killed at its time limit.
    #[error("the command `{command}` {how} and {}", said(output))]
    CommandFailed {
        /// The command.
        command: String,
        /// How it ended, such as "ended with exit code 1".
        how: String,
        /// The end of its output, in one line.
        output: String,
    },
    /// A journal cannot be made.
    #[error("making a journal: {0}")]
    NoJournal(#[source] io::Error),
    /// The journal cannot be written; the change is not made.
    #[error("the journal {} cannot be written, and without it nothing is changed: {source}", path.display())]
    JournalNotWritten {
        /// Path of the journal.
        path: PathBuf,
        /// The error of writing it.
        source: io::Error,
    },
    /// A journal that an ended process left cannot be read.
    #[error("{}: {source}", path.display())]
    JournalNotRead {
        /// Path of the journal.
        path: PathBuf,
        /// The error of reading it.
        source: io::Error,
    },
    /// Another run has changed settings in this network namespace.
    #[error(
        "settings of this host are changed by another run at this moment (process {process}): wait for its end"
    )]
    AnotherRun {
        /// Process id of the other run.
        process: String,
    },
}

/// Why a sysctl cannot be read or set.
#[derive(Debug, Error)]
pub enum SysctlError {
    /// The name leads elsewhere than below /proc/sys.
    #[error("{0:?} is not the name of a sysctl")]
    NoName(String),
    /// This machine has no such sysctl.
    #[error(
        "this machine has no sysctl `{0}`: look for the name in `sysctl -a`, and whether its module is loaded"
    )]
    MissingHere(String),
    /// The network namespace of a lab has no such sysctl.
    #[error(
        "there is no sysctl `{0}` in its network namespace: check the name; where it belongs to the whole machine, \
         write `on: machine` in this level and run as root"
    )]
    MissingInLab(String),
    /// The earlier value cannot be read, so that it could not be restored.
    #[error("the sysctl `{name}` cannot be read ({source}), and so could not be undone")]
    Unreadable {
        /// Name of the sysctl.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Changing a sysctl of this machine needs root.
    #[error("changing the sysctl `{name}` of this machine needs root: {source}")]
    NeedsRoot {
        /// Name of the sysctl.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The network namespace of a lab may not change the sysctl.
    #[error(
        "the sysctl `{name}` may not be changed in a network namespace, because it is the machine's or needs more \
         privilege ({source}): write `on: machine` in this level and run as root"
    )]
    NotOfLab {
        /// Name of the sysctl.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// This kernel does not restrict sysctls to their network namespace.
    #[error(
        "this kernel is older than Linux 5.13, which does not restrict `{0}` to its network namespace: run it on a \
         newer one"
    )]
    OldKernel(String),
    /// The value removes IPv6 addresses of an existing host.
    #[error(
        "the sysctl `{0}` takes IPv6 addresses off devices, which setting it back does not restore: use a command"
    )]
    TakesAddresses(String),
    /// The kernel does not take the value.
    #[error("the kernel does not take `{value}` for the sysctl `{name}` ({source})")]
    Value {
        /// Name of the sysctl.
        name: String,
        /// The value.
        value: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Writing the value failed for another reason.
    #[error("writing `{value}` to the sysctl `{name}`: {source}")]
    NotWritten {
        /// Name of the sysctl.
        name: String,
        /// The value.
        value: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel took the value and has another one.
    #[error(
        "the sysctl `{name}` was set to `{value}` and reads back as `{found}`: write the value as it reads back"
    )]
    ReadBack {
        /// Name of the sysctl.
        name: String,
        /// The value that was written.
        value: String,
        /// The value that was read back.
        found: String,
    },
}

fn said(output: &str) -> String {
    match output {
        "" => "printed nothing".to_owned(),
        output => format!("said: {output}"),
    }
}
