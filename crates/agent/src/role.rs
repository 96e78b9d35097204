//! The role of an agent on an existing host: the capabilities (capabilities(7)) that it keeps, and the
//! requests that it executes.

use std::io;

use wirecost_model::vary::Setting;
use wirecost_sys::capability::{self, Capability};

use crate::error::Result;
use crate::protocol::Request;

/// What an agent on an existing host may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentRole {
    /// Loads between addresses of the host, and proofs of its path.
    Load,
    /// Proofs and searches of a path, and the audit of the host.
    Check,
    /// Guests, bridges and tunnels in namespaces of the agent.
    Build,
    /// Changes of the host's settings.
    Change,
    /// Commands of plans, and whatever else the login allows.
    #[default]
    Commands,
}

/// Capabilities for loads.
const LOAD: &[Capability] = &[
    // SO_BUSY_POLL, SO_RCVBUFFORCE and SO_SNDBUFFORCE, and congestion controls that are restricted to privileged users.
    Capability::NET_ADMIN,
    // Listening on a `--port` below 1024.
    Capability::NET_BIND_SERVICE,
    // Priority for a thread that accepts hundreds of connections, and for the meter's threads.
    Capability::SYS_NICE,
    // More descriptors than the hard limit of RLIMIT_NOFILE.
    Capability::SYS_RESOURCE,
    // Memory that is registered with io_uring.
    Capability::IPC_LOCK,
    // Interrupts to idle cores, for the meter (perf_event_open(2)).
    Capability::PERFMON,
    // Page faults in the kernel, for the memory of a migrated machine (userfaultfd(2)).
    Capability::SYS_PTRACE,
    // The socket of an NBD server that runs as another user.
    Capability::DAC_OVERRIDE,
];

/// Capabilities for checks, in addition to those for loads.
const CHECK: &[Capability] = &[
    // Packet sockets, raw ICMP sockets, and proofs over TCP.
    Capability::NET_RAW,
    // Entering other network namespaces of the host for the audit; SYS_PTRACE is needed for those of processes.
    Capability::SYS_ADMIN,
    Capability::DAC_READ_SEARCH,
];

/// Capabilities for tunnels between hosts, in addition to those for loads.
const BUILD: &[Capability] = &[
    // Making namespaces for guests, and mounting a sysfs in each.
    Capability::SYS_ADMIN,
    // Packet sockets that capture full-size frames.
    Capability::NET_RAW,
];

impl AgentRole {
    const ALL: [Self; 5] = [
        Self::Load,
        Self::Check,
        Self::Build,
        Self::Change,
        Self::Commands,
    ];

    /// Whether the role needs root.
    pub const fn needs_root(self) -> bool {
        matches!(self, Self::Build | Self::Change)
    }

    /// The role as the value of an agent's `--duty` argument.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Check => "check",
            Self::Build => "build",
            Self::Change => "change",
            Self::Commands => "commands",
        }
    }

    /// The role with this `--duty` value.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// The capabilities to keep; `None`: all that the process has.
    fn kept_capabilities(self) -> Option<Vec<Capability>> {
        let more = match self {
            Self::Load => &[][..],
            Self::Check => CHECK,
            Self::Build => BUILD,
            // Commands of plans are child processes, which inherit the capabilities.
            Self::Change | Self::Commands => return None,
        };
        Some([LOAD, more].concat())
    }

    /// Checks that this role includes a request. `in_place` is whether the agent uses the existing host's namespaces,
    /// and not some that it has made.
    ///
    /// # Errors
    /// The role does not include it; the message names both.
    pub(crate) fn check(self, request: &Request, in_place: bool) -> Result<()> {
        let changes = matches!(self, Self::Change | Self::Commands);
        let builds = matches!(self, Self::Build | Self::Commands);
        let included = match request {
            Request::ApplySettings(settings) => {
                changes || (builds && !in_place) || settings.iter().all(Setting::is_empty)
            }
            Request::UndoLeft => changes,
            Request::Prepare(_)
            | Request::Wire { .. }
            | Request::Build { .. }
            | Request::RemoveTunnel
            | Request::Adapt { .. }
            | Request::LiftLine
            | Request::SetLine => builds,
            // `check --simulate`.
            Request::Transfer(_) => matches!(self, Self::Check | Self::Commands),
            Request::OpenServers(_) | Request::OpenClients(_) => self != Self::Check,
            _ => true,
        };
        if included {
            return Ok(());
        }
        let (word, doing) = (self.word(), request.doing());
        Err(
            format!("the agent was started with `--duty {word}`, which does not include {doing}")
                .into(),
        )
    }

    /// Drops all capabilities that the role does not need, from every set permanently, and sets `no_new_privs`, so
    /// that no program that it executes regains them. To be called while the process has one thread.
    ///
    /// # Errors
    /// Errors of prctl(2) and capset(2).
    pub(crate) fn confine(self) -> io::Result<()> {
        match self.kept_capabilities() {
            Some(kept) => capability::keep_only(&kept),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    use wirecost_model::vary::{CommandPair, Scope};

    use super::*;
    use crate::protocol::{Secret, TransferRequest};

    /// The requests that change a host or load its network, and the roles that include them on a host as it is.
    fn restricted() -> Vec<(Request, &'static [AgentRole])> {
        const CHANGES: &[AgentRole] = &[AgentRole::Change, AgentRole::Commands];
        const BUILDS: &[AgentRole] = &[AgentRole::Build, AgentRole::Commands];
        const SIMULATES: &[AgentRole] = &[AgentRole::Check, AgentRole::Commands];
        const LOADS: &[AgentRole] = &[
            AgentRole::Load,
            AgentRole::Build,
            AgentRole::Change,
            AgentRole::Commands,
        ];
        const ALL: &[AgentRole] = &AgentRole::ALL;
        let secret = Secret {
            probe: [7; 16],
            acknowledgement: [8; 8],
        };
        let receive = TransferRequest::Receive {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            secret,
        };
        vec![
            (Request::ApplySettings(vec![command()]), CHANGES),
            (Request::UndoLeft, CHANGES),
            (Request::Wire { peer: 1 }, BUILDS),
            (Request::Build { secret, ovn: None }, BUILDS),
            (Request::RemoveTunnel, BUILDS),
            (Request::LiftLine, BUILDS),
            (Request::SetLine, BUILDS),
            (Request::Transfer(Box::new(receive)), SIMULATES),
            (Request::OpenServers(Vec::new()), LOADS),
            (Request::OpenClients(Vec::new()), LOADS),
            (Request::Machine, ALL),
            (Request::ApplySettings(Vec::new()), ALL),
        ]
    }

    fn command() -> Setting {
        Setting {
            factor: "f".into(),
            label: "l".into(),
            sysctl: BTreeMap::new(),
            ethtool: BTreeMap::new(),
            device: BTreeMap::new(),
            device_name: None,
            command: Some(CommandPair {
                before: "id".into(),
                after: "true".into(),
            }),
            on: Scope::Hosts,
        }
    }

    #[test]
    fn an_agent_does_only_what_it_was_started_for() {
        for (request, roles) in restricted() {
            for role in AgentRole::ALL {
                let included = role.check(&request, true).is_ok();
                assert_eq!(included, roles.contains(&role), "{role:?}: {request:?}");
            }
        }
    }

    #[test]
    fn an_agent_that_builds_changes_its_own_namespaces_and_not_the_hosts() {
        let request = Request::ApplySettings(vec![command()]);
        assert!(AgentRole::Build.check(&request, false).is_ok());
        let error = AgentRole::Build
            .check(&request, true)
            .expect_err("the host's");
        assert_eq!(
            error.to_string(),
            "the agent was started with `--duty build`, which does not include applying the settings of a level"
        );
    }

    #[test]
    fn every_duty_has_a_word_and_only_what_changes_the_host_keeps_everything() {
        for role in AgentRole::ALL {
            assert_eq!(AgentRole::of_word(role.word()), Some(role));
            let changes = matches!(role, AgentRole::Change | AgentRole::Commands);
            assert_eq!(role.kept_capabilities().is_none(), changes);
        }
        assert_eq!(AgentRole::of_word("all"), None);
        let load = AgentRole::Load.kept_capabilities().expect("a list");
        assert!(!load.contains(&Capability::SYS_ADMIN) && !load.contains(&Capability::NET_RAW));
    }
}
