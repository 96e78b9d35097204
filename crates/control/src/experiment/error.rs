//! Errors of a run: it has no record, or an incomplete one.

use std::io;
use std::path::{Path, PathBuf};

use wirecost_agent::link::LinkError;

use super::directory::DirectoryError;
use crate::hosts::HostsError;

/// Why a run left no record, or only an incomplete one.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No lab could be built.
    #[error("no lab could be built: {0}")]
    NoLab(LinkError),
    /// No tunnel could be built between existing hosts.
    #[error("no tunnel could be built between the hosts: {0}")]
    NoTunnel(String),
    /// The plan is for existing hosts, and neither it nor the command line names them.
    #[error(
        "the plan is for existing hosts and names none: write `hosts: {{ a: ..., b: ... }}` into it, or give --hosts A,B"
    )]
    NoHosts,
    /// An existing host was not reached.
    #[error(transparent)]
    NoHost(HostsError),
    /// A setting that the plan varies cannot be applied here; nothing was measured.
    #[error("{0}")]
    Setting(String),
    /// A system call on this machine failed.
    #[error("{what}: {source}")]
    Machine {
        /// The step that failed.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The run directory could not be made; nothing was measured.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The record could not be written to the end.
    #[error("{source}; {}", kept(*samples, directory))]
    Record {
        /// The run directory.
        directory: PathBuf,
        /// Samples in the run directory.
        samples: u32,
        /// Why the record could not be written.
        source: DirectoryError,
    },
    /// The user interrupted the run before there was a record.
    #[error("interrupted before the first sample: nothing was measured, and there is no record")]
    Interrupted,
}

fn kept(samples: u32, directory: &Path) -> String {
    let at = directory.display();
    match samples {
        0 => format!("no sample was kept in {at}"),
        1 => format!("the one sample written before is kept in {at}"),
        _ => format!("the {samples} samples written before are kept in {at}"),
    }
}
