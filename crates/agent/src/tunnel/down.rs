//! Removes tunnels, and remains of incomplete or damaged ones.

use wirecost_netbuild::host_tunnel;
use wirecost_sys::namespace;

use super::state::{self, NetnsLocation, TunnelEnd, TunnelState};
use super::{all, end};
use crate::error::{AgentError, Context, Result};
use crate::orphan::Owner;

/// Removes the tunnel of this name.
///
/// # Errors
/// There is no tunnel of this name, or a part could not be removed; the other parts are removed all the same.
pub fn down(name: &str) -> Result<TunnelState> {
    let Some(made) = state::read(name) else {
        let names: Vec<String> = state::all().into_iter().map(|state| state.name).collect();
        let there = match &names[..] {
            [] => "there is none".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        return Err(format!("no tunnel is called {name}; {there}").into());
    };
    match made.home() {
        NetnsLocation::Here => take_down(&made)?,
        NetnsLocation::At(netns, place) => netns
            .within(|| take_down(&made))
            .context(format!("entering {place}, where {name} was made"))??,
        NetnsLocation::Gone => forget(&made)?,
    }
    Ok(made)
}

/// Removes the state of a tunnel whose devices are gone with their network namespace.
fn forget(made: &TunnelState) -> Result<()> {
    for number in 0..made.ends.len() {
        end::unpin(made, number)?;
    }
    state::remove(&made.name)
}

/// Removes all that a state file lists, and then the file. A failure does not stop the rest, but keeps the file.
pub(super) fn take_down(made: &TunnelState) -> Result<()> {
    let mut left: Vec<AgentError> = Vec::new();
    let mut tried = |done: Result<()>| left.extend(done.err());
    // A namespace that we did not make holds nothing of ours, even if it has the name.
    let ours = |end: &&TunnelEnd| end.namespace.is_none() || end.namespace_made;
    for number in 0..made.ends.len() {
        if ours(&&made.ends[number]) {
            tried(end::detach(made, number));
        }
    }
    if made.own_namespaces {
        let namespaces = made.ends.iter().filter(ours);
        for name in namespaces.filter_map(|end| end.namespace.as_ref()) {
            let removed = namespace::remove_named(name);
            tried(removed.context(format!("removing network namespace {name}")));
        }
    }
    AgentError::all(left)?;
    state::remove(&made.name)
}

/// Result of [`clean`].
#[derive(Debug, Default)]
pub struct CleanedTunnels {
    /// Incomplete or damaged tunnels that were removed.
    pub removed: Vec<String>,
    /// Device pairs without a tunnel that were removed.
    pub devices: Vec<String>,
    /// Complete tunnels, which remain.
    pub up: Vec<String>,
    /// Tunnels and devices that could not be removed, and why.
    pub refused: Vec<(String, String)>,
}

/// Removes tunnels that are incomplete because their making was interrupted, or that lack a part. Complete tunnels
/// remain.
pub fn clean() -> CleanedTunnels {
    let mut cleaned = CleanedTunnels::default();
    let mut in_use = Vec::new();
    for status in all() {
        let name = status.state.name.clone();
        let indexes = status
            .state
            .ends
            .iter()
            .filter_map(|end| end.underlay_index);
        in_use.extend(indexes.map(wirecost_vtep::sending_end));
        let being_made = !status.state.complete
            && Owner::parse(&status.state.maker).is_some_and(Owner::is_alive);
        if status.intact || being_made {
            cleaned.up.push(name);
            continue;
        }
        match down(&name) {
            Ok(_) => cleaned.removed.push(name),
            Err(error) => cleaned.refused.push((name, error.to_string())),
        }
    }
    let leftovers = host_tunnel::devices().unwrap_or_default().into_iter();
    let is_stray = |name: &String| {
        let number = name
            .strip_prefix("wcseg")
            .and_then(|rest| rest.strip_suffix('s'));
        number.is_some_and(|number| number.parse::<u32>().is_ok()) && !in_use.contains(name)
    };
    for device in leftovers.filter(is_stray) {
        match host_tunnel::remove(&device) {
            Ok(()) => cleaned.devices.push(device),
            Err(error) => cleaned.refused.push((device, error.to_string())),
        }
    }
    cleaned
}
