//! What earlier commands left: agents that outlived their run, and tunnels that were not made to their end.

use std::io;

use wirecost_agent::orphan;
pub use wirecost_agent::orphan::{CleanedAgents as Agents, Orphan};
use wirecost_agent::tunnel;
pub use wirecost_agent::tunnel::CleanedTunnels as Tunnels;

/// Ends and removes all of it.
///
/// # Errors
/// Where this machine's processes cannot be read. What could not be ended or removed is in the answer.
pub fn clean() -> io::Result<(Agents, Tunnels)> {
    Ok((orphan::end_all()?, tunnel::clean()))
}
