//! Hosts that are used as they are: their agents, and the addresses that measured packets go between.

mod data_plane;
mod link_local;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;

pub use wirecost_agent::duty::Duty;
pub use wirecost_agent::link::Binaries;
use wirecost_agent::link::{HostAgent, Link, LinkError, Starting};
use wirecost_agent::orphan::Owner;
use wirecost_agent::protocol::{OwnAddress, Reply, Request};
use wirecost_model::host::HostAddress;

use crate::calls::PROMPT;

pub use data_plane::{AddressError, data_plane, source_towards};
pub use link_local::{link_local, on_device};

/// What the agents of all hosts are started with.
#[derive(Debug, Clone)]
pub struct HostsContext {
    /// The `wirecost` program.
    pub program: PathBuf,
    /// Those for hosts of other architectures.
    pub binaries: Binaries,
    /// This process.
    pub owner: Owner,
    /// What agents of existing hosts are for.
    pub duty: Duty,
    /// How much the agents log to standard error: 0 nothing, 1 their steps, 2 everything.
    pub verbose: u8,
}

/// What is in the way of two hosts.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// An agent, or its line.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Which addresses are meant.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Starts the agents of all hosts at the same time.
///
/// To be called on a thread that lives as long as they: the kernel ends the agents of this machine with it.
///
/// # Errors
/// The first host, as they are given, whose agent did not come up. The others' are ended.
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
        duty: context.duty,
        verbose: context.verbose,
    };
    thread::scope(|scope| {
        // An agent of this machine ends with the thread that starts it, so that is this one.
        let starting: Vec<_> = hosts
            .iter()
            .map(|host| {
                let agent = agent(host);
                if host.place.is_here() {
                    Start::Near(Link::begin(&agent))
                } else {
                    Start::Far(scope.spawn(move || Link::open(&agent, interrupt)))
                }
            })
            .collect();
        // All of them, though one may have failed: each is waited for, and ended.
        let opened: Vec<_> = starting
            .into_iter()
            .map(|start| match start {
                Start::Near(starting) => starting.and_then(|starting| starting.finish(interrupt)),
                Start::Far(far) => far
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            })
            .collect();
        opened.into_iter().collect()
    })
}

/// An agent on its way.
enum Start<'scope> {
    /// Of this machine.
    Near(Result<Starting, LinkError>),
    /// At the end of a network.
    Far(thread::ScopedJoinHandle<'scope, Result<Link, LinkError>>),
}

/// A host as the choice of addresses sees it.
pub trait Reachable {
    /// As messages call it.
    fn name(&self) -> &str;
    /// Its addresses that others may reach it by.
    fn own(&mut self) -> Result<Vec<OwnAddress>, LinkError>;
    /// The address that its packets to `target` leave with.
    fn towards(&mut self, target: IpAddr) -> Result<IpAddr, LinkError>;
}

/// A host that is asked over its line.
#[derive(Debug)]
pub struct LinkedHost<'a> {
    /// Its agent.
    pub link: &'a mut Link,
    /// Ends every wait.
    pub interrupt: &'a AtomicBool,
}

impl Reachable for LinkedHost<'_> {
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
