//! `wirecost check`: both agents probe the path at the same time and read their hosts' devices meanwhile; the results
//! are then judged.

mod document;
mod session;
mod step;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::Link;
use wirecost_check::Document;
use wirecost_model::host::HostAddress;
use wirecost_wire::overhead::Stack;

use crate::hosts::{
    AddressError, AgentHost, HostsContext, HostsError, data_plane, link_local, on_device, open,
};

use self::session::Session;
pub use self::step::{CheckStep, Simulation};

/// Time limit of one direction's probes: flows without a result are then undecided.
const DIRECTION_LIMIT: Duration = Duration::from_secs(20);

/// The other end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// A host where an agent can be started.
    Host(HostAddress),
    /// An address without an agent.
    Address(IpAddr),
    /// A link-local address without an agent, and the device of the first host whose link it is on.
    OnLink(IpAddr, String),
}

/// The options of a check.
#[derive(Debug, Clone)]
pub struct Check {
    /// The host that the check starts from.
    pub from: HostAddress,
    /// The other end.
    pub to: CheckTarget,
    /// The size of IP packet that each direction must carry, bytes; `None`: the MTU of the sender's device or route.
    pub expect: Option<u32>,
    /// Flows of each direction, at least 1.
    pub flows: u32,
    /// Destination port of the probes; `None`: any.
    pub port: Option<u16>,
    /// The encapsulation that guests are behind.
    pub encapsulation: Option<Stack>,
    /// Upper bound on the probes of each direction, datagrams per second, above 0.
    pub datagrams_per_s: f64,
    /// Upper bound on the probes of each direction, bytes per second, above 0.
    pub bytes_per_s: f64,
    /// An open TCP port of the other end: the path is then probed over TCP instead of UDP.
    pub tcp: Option<u16>,
    /// Whether each direction is traced hop by hop.
    pub trace: bool,
    /// Whether to report the largest guest MTU that fits.
    pub recommend: bool,
    /// TCP transfers after the probes, for hosts that are network namespaces without other users: they change a sysctl.
    pub simulate: Option<Simulation>,
}

/// Checks a path and returns the result.
///
/// To be called on a thread that outlives the check: the kernel ends agents of this machine with it.
///
/// # Errors
/// Hosts that were not reached, addresses that cannot be determined, a request that an agent could not execute, an
/// interrupt. A fault of the path is a finding, not an error.
pub fn check(
    asked: &Check,
    context: &HostsContext,
    interrupt: &AtomicBool,
    on_step: &mut dyn FnMut(CheckStep),
) -> Result<Document, HostsError> {
    let began = Instant::now();
    let started = jiff::Timestamp::now().to_string();
    on_step(CheckStep::Reaching);
    let hosts: Vec<&HostAddress> = match &asked.to {
        CheckTarget::Host(to) => vec![&asked.from, to],
        CheckTarget::Address(_) | CheckTarget::OnLink(..) => vec![&asked.from],
    };
    let mut links = open(context, &hosts, interrupt)?;
    // First, since the agents read their devices while they probe.
    for (link, name) in links.iter_mut().zip(session::names(asked)) {
        session::gather(link, name, interrupt)?;
    }
    let addresses = match on_link(asked, &mut links, interrupt)? {
        Some(addresses) => addresses,
        None => addresses(asked, &mut links, interrupt)?,
    };
    let mut session = Session::new(asked, &hosts, links, addresses, interrupt);
    let results = session.results(on_step);
    let results = results.map_err(|error| session.blame(error))?;
    let took = began.elapsed().saturating_sub(results.simulating);
    Ok(document::document(asked, results, started, took))
}

/// The addresses of both ends where they are link-local; `None`: they are not.
fn on_link(
    asked: &Check,
    links: &mut [Link],
    interrupt: &AtomicBool,
) -> Result<Option<[IpAddr; 2]>, HostsError> {
    let from = &asked.from;
    match (&asked.to, links) {
        (CheckTarget::OnLink(to, device), [link]) => {
            let own = from.device.as_ref().unwrap_or(device);
            let source = on_device(link, &from.place, (own, from.data), interrupt)?;
            Ok(Some([source, *to]))
        }
        (CheckTarget::Host(to), [from_link, to_link]) => {
            link_local([from, to], [from_link, to_link], interrupt)
        }
        (CheckTarget::Address(to), _) if from.device.is_some() => {
            let host = to.to_string();
            Err(AddressError::NoLink { host }.into())
        }
        _ => Ok(None),
    }
}

/// The addresses of both ends where they are not link-local.
fn addresses(
    asked: &Check,
    links: &mut [Link],
    interrupt: &AtomicBool,
) -> Result<[IpAddr; 2], HostsError> {
    match (&asked.to, links) {
        (CheckTarget::Host(to), [from_link, to_link]) => data_plane(
            [&asked.from, to],
            &mut AgentHost {
                link: from_link,
                interrupt,
            },
            &mut AgentHost {
                link: to_link,
                interrupt,
            },
        ),
        (CheckTarget::Address(to), [link]) => {
            let mut host = AgentHost { link, interrupt };
            crate::hosts::source_towards(&asked.from, &mut host, *to)
        }
        _ => unreachable!("a link for each host, and link-local addresses before"),
    }
}
