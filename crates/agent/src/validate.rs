//! Checks of a controller's requests: names, counts and sizes, before any becomes a path, an argument or memory.
//!
//! Bounds are those of plans and commands. Loads have rules of their own ([`wirecost_model::load::Load::faults`]).

mod error;

use std::path::{Component, Path};

use wirecost_check::MAX_FLOWS;
use wirecost_model::cell::{MAX_GUESTS, MAX_LINKS};
use wirecost_model::load::Address;
use wirecost_model::steering::{MAX_CORES, MAX_QUEUES, Rps};
use wirecost_model::transit::{MAX_HOPS, MAX_PATHS};
use wirecost_netbuild::HostSpec;

pub use self::error::RequestError;

use crate::protocol::{LoadEnd, PathRequest, Request};

/// Upper bound on the size of a packet, bytes: more than IP has, and than the MTU of any device.
const MAX_PACKET: u32 = 1 << 17;

/// Checks a request.
///
/// # Errors
/// What no controller of this version sends; the message names it.
pub(crate) fn check(request: &Request) -> Result<(), RequestError> {
    match request {
        Request::Prepare(spec) => host(spec),
        Request::Build {
            ovn: Some(socket), ..
        } => ovn(socket),
        Request::Adapt { guest_mtu, .. } => packet(*guest_mtu),
        Request::ApplySettings(settings) => {
            let faulty = settings.iter().find_map(|setting| {
                Some(RequestError::Level {
                    fault: setting.fault()?,
                    label: setting.label.clone(),
                    factor: setting.factor.clone(),
                })
            });
            faulty.map_or(Ok(()), Err)
        }
        Request::ReadCapture { size } => packet(*size),
        Request::Prove { targets, size, .. } => {
            at_most("targets", targets.len(), MAX_GUESTS as usize)?;
            packet(*size)
        }
        Request::OpenServers(ends) => {
            ends.iter().try_for_each(end)?;
            // Everybody's address would be open to everybody, and a path is a file of the host.
            let is_elsewhere = |end: &&LoadEnd| match &end.address {
                Address::Ip(at) => at.ip().to_canonical().is_unspecified(),
                Address::Path(_) => true,
                Address::Abstract(_) => false,
            };
            ends.iter().find(is_elsewhere).map_or(Ok(()), |end| {
                Err(load(end, format!("none listens at {}", end.address)))
            })
        }
        Request::OpenClients(ends) => {
            ends.iter().try_for_each(end)?;
            ends.iter().try_for_each(client)
        }
        Request::Path(request) => path(request),
        _ => Ok(()),
    }
}

fn at_most(what: &'static str, number: usize, most: usize) -> Result<(), RequestError> {
    if number <= most {
        return Ok(());
    }
    Err(RequestError::TooMany { what, number, most })
}

fn packet(bytes: u32) -> Result<(), RequestError> {
    at_most("bytes of a packet", bytes as usize, MAX_PACKET as usize)
}

fn expected(bytes: Option<u32>) -> Result<(), RequestError> {
    packet(bytes.unwrap_or_default())
}

fn host(spec: &HostSpec) -> Result<(), RequestError> {
    let network = &spec.network;
    at_most("guests", network.guests as usize, MAX_GUESTS as usize)?;
    at_most("links", network.links as usize, MAX_LINKS as usize)?;
    at_most("hops", network.transit.hops.len(), MAX_HOPS)?;
    at_most("paths", network.transit.paths.len(), MAX_PATHS)?;
    let queues = network.steering.queues;
    at_most("queues", queues as usize, MAX_QUEUES as usize)?;
    let steered: &[u32] = match &network.steering.rps {
        Rps::Cores(cores) => cores,
        Rps::Own | Rps::Off | Rps::All => &[],
    };
    let receiving = spec.receive_cpus.iter().flatten();
    let mut cores = receiving.chain(steered).chain(&spec.line_core);
    match cores.find(|core| **core >= MAX_CORES) {
        Some(core) => Err(RequestError::NoCore(*core)),
        None => Ok(()),
    }
}

/// Checks the socket of OVN's databases: `/proc/PID/fd/NUMBER/NAME`, in a directory that a process of the run has open.
fn ovn(socket: &Path) -> Result<(), RequestError> {
    let parts: Option<Vec<&str>> = socket
        .components()
        .skip(1)
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let is_name = |part: &str| {
        part.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    match parts.as_deref() {
        Some(["proc", pid, "fd", number, name])
            if socket.is_absolute() && is_number(pid) && is_number(number) && is_name(name) =>
        {
            Ok(())
        }
        _ => Err(RequestError::NotOvn(socket.to_owned())),
    }
}

fn end(end: &LoadEnd) -> Result<(), RequestError> {
    let faults = end.load.faults();
    if faults.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
    Err(load(end, words.join("; ")))
}

fn load(end: &LoadEnd, problem: String) -> RequestError {
    let name = end.name.clone();
    RequestError::Load { name, problem }
}

/// Checks that a client connects to no path but that of its load.
fn client(end: &LoadEnd) -> Result<(), RequestError> {
    let Address::Path(path) = &end.address else {
        return Ok(());
    };
    let server = end.load.server.as_ref();
    let socket = server.and_then(|server| server.socket.as_ref());
    if socket == Some(path) || end.load.path.as_ref() == Some(path) {
        return Ok(());
    }
    Err(load(end, format!("{path:?} is not its path")))
}

fn path(request: &PathRequest) -> Result<(), RequestError> {
    match request {
        PathRequest::Survey(order) => {
            at_most("flows", order.flows as usize, MAX_FLOWS as usize)?;
            expected(order.expect)
        }
        PathRequest::SurveyMapped { to, .. } => at_most("flows", to.len(), MAX_FLOWS as usize),
        PathRequest::Stream { size, .. } | PathRequest::Segments { size, .. } => packet(*size),
        PathRequest::Locate(order) => packet(order.failing),
        PathRequest::Trace(order) => {
            // That of each flow, and what the sender's device takes.
            at_most("sizes", order.sizes.len(), MAX_FLOWS as usize + 1)?;
            order.sizes.iter().copied().try_for_each(packet)
        }
        PathRequest::Tcp(order) => expected(order.expect),
        PathRequest::OneSided(order) => expected(order.expect),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
