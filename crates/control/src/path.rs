//! A check of the path between two hosts: both agents probe at the same time, read their devices meanwhile, and what
//! came of it is judged.

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
    AddressError, HostsContext, HostsError, LinkedHost as AskedHost, data_plane, link_local,
    on_device, open,
};

use self::session::Session;
pub use self::step::{Simulation, Step};

/// What a direction's probes may take before what is still open gets no answer.
const MOST: Duration = Duration::from_secs(20);

/// The other end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// A host where an agent can be started.
    Host(HostAddress),
    /// An address, and nothing else.
    Address(IpAddr),
    /// A link-local one on the link of a device of the first host.
    OnLink(IpAddr, String),
}

/// What is to be checked.
#[derive(Debug, Clone)]
pub struct Check {
    /// One host.
    pub from: HostAddress,
    /// The other end.
    pub to: CheckTarget,
    /// What every direction should carry, bytes; `None`: what the sender's device or route takes.
    pub expect: Option<u32>,
    /// Flows of each direction, at least 1.
    pub flows: u32,
    /// Destination port of the probes; `None`: any.
    pub port: Option<u16>,
    /// What guests are behind.
    pub encapsulation: Option<Stack>,
    /// Datagrams per second of each direction at most, above 0.
    pub datagrams_per_s: f64,
    /// Bytes per second of each direction at most, above 0.
    pub bytes_per_s: f64,
    /// An open TCP port of the other end: what is asked is asked over TCP then, and nothing over UDP.
    pub tcp: Option<u16>,
    /// Whether each direction is traced hop by hop.
    pub trace: bool,
    /// Whether the largest MTU of guests that fits is wanted.
    pub recommend: bool,
    /// TCP transfers afterwards, between hosts that are namespaces of nobody else's.
    pub simulate: Option<Simulation>,
}

/// Checks a path and returns the result.
///
/// To be called on a thread that lives as long: the kernel ends agents of this machine with it.
///
/// # Errors
/// Hosts that were not reached, addresses that cannot be determined, an agent that could not do what it was asked, an
/// interrupt. What is wrong with the path is no error.
pub fn check(
    asked: &Check,
    context: &HostsContext,
    interrupt: &AtomicBool,
    told: &mut dyn FnMut(Step),
) -> Result<Document, HostsError> {
    let began = Instant::now();
    let started = jiff::Timestamp::now().to_string();
    told(Step::Reaching);
    let hosts: Vec<&HostAddress> = match &asked.to {
        CheckTarget::Host(to) => vec![&asked.from, to],
        CheckTarget::Address(_) | CheckTarget::OnLink(..) => vec![&asked.from],
    };
    let mut links = open(context, &hosts, interrupt)?;
    // First of all, since it goes on beside everything else.
    for (link, name) in links.iter_mut().zip(session::names(asked)) {
        session::gather(link, name, interrupt)?;
    }
    let addresses = match on_link(asked, &mut links, interrupt)? {
        Some(addresses) => addresses,
        None => addresses(asked, &mut links, interrupt)?,
    };
    let mut session = Session::new(asked, &hosts, links, addresses, interrupt);
    let results = session.results(told);
    let results = results.map_err(|error| session.blame(error))?;
    let took = began.elapsed().saturating_sub(results.simulating);
    Ok(document::document(asked, results, started, took))
}

/// The same where they are link-local; `None`: they are not.
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

/// Between which addresses it is.
fn addresses(
    asked: &Check,
    links: &mut [Link],
    interrupt: &AtomicBool,
) -> Result<[IpAddr; 2], HostsError> {
    match (&asked.to, links) {
        (CheckTarget::Host(to), [from_link, to_link]) => data_plane(
            [&asked.from, to],
            &mut AskedHost {
                link: from_link,
                interrupt,
            },
            &mut AskedHost {
                link: to_link,
                interrupt,
            },
        ),
        (CheckTarget::Address(to), [link]) => {
            let mut host = AskedHost { link, interrupt };
            crate::hosts::source_towards(&asked.from, &mut host, *to)
        }
        _ => unreachable!("a link for each host, and link-local addresses before"),
    }
}
