//! Errors of a run: it has no record, or an incomplete one.

use std::io;
use std::path::{Path, PathBuf};

use wirecost_agent::link::LinkError;
use wirecost_model::plan::Hosts;

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
    /// An existing host was not reached, or its agent ended.
    #[error(transparent)]
    NoHost(HostsError),
    /// A setting that the plan varies cannot be applied here; nothing was measured.
    #[error("{0}")]
    Setting(String),
    /// An existing host cannot do what the plan asks of it; nothing was measured.
    #[error("{0}")]
    OnHost(String),
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

impl RunError {
    /// The error of a run that could not begin because of an agent; `hosts` are those of its plan.
    pub(super) fn not_built(error: LinkError, hosts: &Hosts) -> Self {
        match error {
            LinkError::Interrupted => Self::Interrupted,
            LinkError::Refused { message, .. } if hosts.is_tunnel() => Self::NoTunnel(message),
            error if *hosts == Hosts::Lab => Self::NoLab(error),
            error => Self::NoHost(error.into()),
        }
    }

    /// The error of a run that could not begin because a setting could not be tried; `hosts` as above.
    pub(super) fn not_set(error: LinkError, hosts: &Hosts) -> Self {
        match error {
            LinkError::Refused { message, .. } | LinkError::NotUndone { message } => match hosts {
                Hosts::Lab => Self::Setting(message),
                Hosts::Existing(_) | Hosts::Tunnel(_) => Self::OnHost(message),
            },
            error => Self::not_built(error, hosts),
        }
    }
}

fn kept(samples: u32, directory: &Path) -> String {
    let at = directory.display();
    match samples {
        0 => format!("no sample was kept in {at}"),
        1 => format!("the one sample written before is kept in {at}"),
        _ => format!("the {samples} samples written before are kept in {at}"),
    }
}

#[cfg(test)]
mod tests {
    use wirecost_agent::protocol::Stage;

    use super::*;

    #[test]
    fn a_lab_is_missed_only_where_a_lab_was_to_be_built() {
        let refused = || LinkError::Refused {
            host: "a".into(),
            stage: Stage::Build,
            message: "why".into(),
        };
        let ended = || LinkError::Ended {
            host: "netns:x".into(),
            during: "describing the machine",
            how: "signal: 9".into(),
        };
        let told = |error, hosts: Hosts| RunError::not_built(error, &hosts).to_string();
        let (existing, tunnel) = (|| Hosts::Existing(None), || Hosts::Tunnel(None));
        let lab = told(ended(), Hosts::Lab);
        assert!(lab.starts_with("no lab could be built: the agent"), "{lab}");
        assert_eq!(
            told(refused(), tunnel()),
            "no tunnel could be built between the hosts: why"
        );
        for hosts in [existing(), tunnel()] {
            let words = told(ended(), hosts);
            assert!(
                words.starts_with("the agent of host netns:x ended"),
                "{words}"
            );
        }
        let set = |hosts: Hosts| RunError::not_set(refused(), &hosts);
        assert!(matches!(set(Hosts::Lab), RunError::Setting(_)));
        assert!(matches!(set(existing()), RunError::OnHost(_)));
    }
}
