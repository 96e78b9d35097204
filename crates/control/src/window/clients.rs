//! Which host and which processors the clients of loads run on.

use wirecost_model::end_window::End;
use wirecost_model::load::NamedLoad;

/// Where the clients of loads run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clients<'a> {
    /// On the other host than their servers, across the network.
    Across,
    /// Clients of storage loads with `network_share` run on their target's host, over a Unix socket; other clients run
    /// across the network. The processors that hosts a and b give to clients: in a lab those that clients have across
    /// the network.
    AtTargets([&'a [u32]; 2]),
}

impl Clients<'_> {
    pub(super) fn is_at_target(self, named: &NamedLoad) -> bool {
        let shares = named
            .load
            .storage
            .is_some_and(|storage| storage.network_share);
        shares && matches!(self, Self::AtTargets(_))
    }

    /// Index of the host that has an end of a load, 0 or 1.
    pub(super) fn host_of(self, named: &NamedLoad, end: End) -> usize {
        let end = if self.is_at_target(named) {
            End::Server
        } else {
            end
        };
        host_of(named, end)
    }

    /// Processors of an end of a load; empty: those of its host.
    pub(super) fn cpus(self, named: &NamedLoad, end: End) -> Vec<u32> {
        match self {
            Self::AtTargets(cpus) if end == End::Client && self.is_at_target(named) => {
                cpus[host_of(named, End::Client)].to_vec()
            }
            _ => Vec::new(),
        }
    }
}

/// Index of the host that the load's direction gives an end to: 0 for host a, 1 for host b.
pub(super) fn host_of(named: &NamedLoad, end: End) -> usize {
    usize::from(named.load.direction.host_of(end) == "b")
}
