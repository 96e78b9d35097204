//! What earlier commands left: agents that outlived their run, and tunnels that were not made to their end.

use std::io;
use std::sync::atomic::AtomicBool;

use wirecost_agent::link::LinkError;
use wirecost_agent::orphan;
pub use wirecost_agent::orphan::{CleanedAgents as Agents, Orphan};
pub use wirecost_agent::protocol::LeftSettings;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::tunnel;
pub use wirecost_agent::tunnel::CleanedTunnels as Tunnels;
use wirecost_model::host::HostAddress;

use crate::calls::PROMPT;
use crate::hosts::{HostsContext, open};

/// Ends and removes all of it.
///
/// # Errors
/// Where this machine's processes cannot be read. What could not be ended or removed is in the answer.
pub fn clean() -> io::Result<(Agents, Tunnels)> {
    Ok((orphan::end_all()?, tunnel::clean()))
}

/// Undoes on each host what runs had changed there and were killed before they could undo it.
///
/// # Errors
/// Where a host is not reached. What could not be undone is in its answer.
pub fn undo_left(
    context: &HostsContext,
    hosts: &[HostAddress],
    interrupt: &AtomicBool,
) -> Result<Vec<LeftSettings>, LinkError> {
    let all: Vec<&HostAddress> = hosts.iter().collect();
    let links = open(context, &all, interrupt)?;
    let undone = links.into_iter().map(|mut link| {
        // Commands among it have seconds each.
        let within = PROMPT * 10;
        match link.call(&Request::UndoLeft, within, interrupt)? {
            Reply::Undone(left) => Ok(left),
            _ => Err(link.unexpected_reply("UndoLeft")),
        }
    });
    undone.collect()
}
