//! What earlier commands left: agents that outlived their run, and tunnels that were not made to their end.

use std::io;

use wirecost_agent::stray;
pub use wirecost_agent::stray::{Cleaned as Agents, Stray};
use wirecost_agent::tunnel;
pub use wirecost_agent::tunnel::Cleaned as Tunnels;

/// Ends and removes all of it.
///
/// # Errors
/// Where this machine's processes cannot be read. What could not be ended or removed is in the answer.
pub fn clean() -> io::Result<(Agents, Tunnels)> {
    Ok((stray::end_all()?, tunnel::clean()))
}
