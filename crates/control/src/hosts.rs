//! Existing hosts: their agents, and the data-plane addresses that measured packets go between.

mod data_plane;
mod link_local;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

pub use wirecost_agent::link::Binaries;
use wirecost_agent::link::{HostAgent, Link, LinkError, StartingAgent};
use wirecost_agent::orphan::Owner;
use wirecost_agent::protocol::{OwnAddress, Reply, Request};
pub use wirecost_agent::role::AgentRole;
use wirecost_model::host::HostAddress;

use crate::timeouts::PROMPT;

pub use data_plane::{AddressError, data_plane, source_towards};
pub use link_local::{link_local, on_device};

/// What the agents of all hosts are started with.
#[derive(Debug, Clone)]
pub struct HostsContext {
    /// The `wirecost` program.
    pub program: PathBuf,
    /// `wirecost` programs for hosts of other architectures.
    pub binaries: Binaries,
    /// This process, the controller that starts the agents.
    pub owner: Owner,
    /// What agents of existing hosts are for, which decides the capabilities that they keep.
    pub role: AgentRole,
    /// The longest time for which an agent may not be asked for anything, such as while other hosts are measured.
    pub idle: Duration,
    /// How much the agents log to standard error: 0 nothing, 1 their steps, 2 everything.
    pub verbose: u8,
}

/// Why two hosts could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// An agent failed, or the connection to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The data-plane addresses could not be determined.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Starts the agents of all hosts at the same time.
///
/// To be called on a thread that lives as long as the agents: the kernel ends the agents of this machine when the
/// thread ends.
///
/// # Errors
/// The error of the first host, in the given order, whose agent did not start. The other agents are ended.
pub fn open(
    context: &HostsContext,
    hosts: &[&HostAddress],
    interrupt: &AtomicBool,
) -> Result<Vec<Link>, LinkError> {
    let agent = |host: &HostAddress| HostAgent {
        program: context.program.clone(),
        binaries: context.binaries.clone(),
        host: host.clone(),
        owner: context.owner,
        role: context.role,
        idle: context.idle,
        verbose: context.verbose,
    };
    thread::scope(|scope| {
        // An agent of this machine ends with the thread that starts it: start it on this thread.
        let starting: Vec<_> = hosts
            .iter()
            .map(|host| {
                let agent = agent(host);
                if host.place.is_here() {
                    StartingHost::Local(Link::begin(&agent))
                } else {
                    StartingHost::Remote(scope.spawn(move || Link::open(&agent, interrupt)))
                }
            })
            .collect();
        // Wait for every agent, also after one failed, so that each is ended.
        let opened: Vec<_> = starting
            .into_iter()
            .map(|start| match start {
                StartingHost::Local(starting) => {
                    starting.and_then(|starting| starting.finish(interrupt))
                }
                StartingHost::Remote(remote) => remote
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            })
            .collect();
        opened.into_iter().collect()
    })
}

/// An agent that is being started.
enum StartingHost<'scope> {
    /// On this machine.
    Local(Result<StartingAgent, LinkError>),
    /// On another machine, or behind a command.
    Remote(thread::ScopedJoinHandle<'scope, Result<Link, LinkError>>),
}

/// What the choice of data-plane addresses asks a host.
pub trait HostAddresses {
    /// The host's name in messages.
    fn name(&self) -> &str;
    /// The host's addresses that other hosts may reach it by.
    fn own(&mut self) -> Result<Vec<OwnAddress>, LinkError>;
    /// The source address of the host's packets to `target`.
    fn towards(&mut self, target: IpAddr) -> Result<IpAddr, LinkError>;
}

/// A host that answers through its agent.
#[derive(Debug)]
pub struct AgentHost<'a> {
    /// The host's agent.
    pub link: &'a mut Link,
    /// When set, ends every wait for an answer.
    pub interrupt: &'a AtomicBool,
}

impl HostAddresses for AgentHost<'_> {
    fn name(&self) -> &str {
        self.link.host()
    }

    fn own(&mut self) -> Result<Vec<OwnAddress>, LinkError> {
        match self
            .link
            .call(&Request::Addresses, PROMPT, self.interrupt)?
        {
            Reply::Addresses(own) => Ok(own),
            _ => Err(self.link.unexpected_reply("Addresses")),
        }
    }

    fn towards(&mut self, target: IpAddr) -> Result<IpAddr, LinkError> {
        let request = Request::SourceTowards(target);
        match self.link.call(&request, PROMPT, self.interrupt)? {
            Reply::Source(source) => Ok(source),
            _ => Err(self.link.unexpected_reply("SourceTowards")),
        }
    }
}
