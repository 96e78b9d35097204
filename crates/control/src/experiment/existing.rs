//! Experiments between existing hosts: settles what is known only once the hosts are reached.

use std::sync::atomic::AtomicBool;

pub use wirecost_agent::protocol::{HostPath, PathDevice};
use wirecost_model::cell::Experiment;
use wirecost_model::host::Location;
use wirecost_model::plan::HostPair;

use super::error::RunError;
use super::{max_rate, tunnel};
use crate::hosts::{HostsContext, HostsError};
use crate::lab::{ExistingPair, Lab};
use crate::placement::Placement;

/// Adapts the experiment to these pairs of hosts: limits the rate of the loads. Returns the limit of each pair,
/// bit/s.
///
/// # Errors
/// Those of [`tunnel::adapt`].
pub(super) fn adapt(
    experiment: &mut Experiment,
    pairs: &[ExistingPair],
) -> Result<Vec<Option<u64>>, RunError> {
    if experiment.plan.hosts.is_tunnel() {
        tunnel::adapt(experiment, pairs)?;
    }
    let plan = &experiment.plan;
    let limits: Vec<Option<u64>> = pairs
        .iter()
        .map(|existing| max_rate::limit(plan.max_rate, existing.one_machine, &existing.speeds()))
        .collect();
    for cell in experiment.cells.iter_mut().chain(&mut experiment.twin) {
        if let Some(limit) = limits[plan.pair_of(&cell.levels)] {
            max_rate::share(&mut cell.loads, limit);
        }
    }
    Ok(limits)
}

/// The cores of the hosts, which all pairs have in common.
///
/// # Errors
/// Where the hosts of one pair share a machine and those of another do not: their CPU cannot be compared.
pub(super) fn placement(pairs: &[ExistingPair]) -> Result<Placement, RunError> {
    let is_one = |existing: &&ExistingPair| existing.one_machine;
    let (one, several): (Vec<_>, Vec<_>) = pairs.iter().partition(is_one);
    if let (Some(one), Some(several)) = (one.first(), several.first()) {
        return Err(RunError::OnHost(format!(
            "hosts {} are on one machine, and hosts {} on two: their CPU cannot be compared; measure them with \
             separate plans",
            one.pair.names, several.pair.names
        )));
    }
    Ok(pairs[0].placement())
}

/// The smallest of [`Existing::speeds`]; `None` where one is unknown, or where there is none.
fn line_speed(speeds: Vec<Option<u64>>) -> Option<u64> {
    // `None` is smaller than any speed.
    speeds.into_iter().min().flatten()
}

/// What was found out about two existing hosts.
#[derive(Debug)]
pub struct InspectedHosts {
    hosts: ExistingPair,
    /// The devices that packets pass on host a and on host b.
    paths: [HostPath; 2],
}

/// Reaches both hosts of an experiment and reads their devices; changes nothing.
///
/// # Errors
/// Where a host is not reached, or has no address towards the other.
pub fn inspect(
    context: &HostsContext,
    pair: &HostPair,
    experiment: &Experiment,
    interrupt: &AtomicBool,
) -> Result<InspectedHosts, HostsError> {
    let network = &experiment.cells[0].network;
    let mut lab = Lab::join(context, pair, network, interrupt)?;
    let paths = lab.path_devices(interrupt)?;
    let hosts = lab.into_hosts().0;
    Ok(InspectedHosts { hosts, paths })
}

impl InspectedHosts {
    /// Link speed of the slower device, bit/s, of those whose speed is a limit; `None` where one of these is unknown,
    /// or where there is none.
    pub fn speed(&self) -> Option<u64> {
        line_speed(self.hosts.speeds())
    }

    /// The devices that packets to the other host pass on host a (0) or b (1).
    pub fn path(&self, host: usize) -> &HostPath {
        &self.paths[host]
    }

    /// Name of the device with the data-plane address on host a (0) or b (1).
    pub fn measured(&self, host: usize) -> &str {
        &self.hosts.joined[host].device.name
    }

    /// Kind of that device, as [`PathDevice::kind`]; empty also where it was not listed.
    pub fn kind(&self, host: usize) -> &str {
        let first = self.paths[host].devices.first();
        first.map_or("", |device| &device.kind)
    }

    /// Name of host a (0) or b (1) where it is a named network namespace of this machine.
    pub fn netns(&self, host: usize) -> Option<&str> {
        let HostPair { a, b } = &self.hosts.pair.hosts;
        let host = if host == 0 { a } else { b };
        match &host.place {
            Location::Netns(name) => Some(name.as_str()),
            _ => None,
        }
    }

    /// Numbers of the processors of host a (0) or b (1), ascending; those that are offline are left out.
    pub fn cores(&self, host: usize) -> &[u32] {
        &self.hosts.joined[host].cpus
    }

    /// Whether the measured addresses are IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.hosts.addresses[0].is_ipv6()
    }

    /// Whether both hosts are one machine.
    pub fn is_one_machine(&self) -> bool {
        self.hosts.one_machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_slower_device_where_both_are_known() {
        let (one, ten) = (Some(1_000_000_000), Some(10_000_000_000));
        assert_eq!(line_speed(vec![ten, one]), one);
        assert_eq!(line_speed(vec![ten]), ten);
        assert_eq!(line_speed(vec![ten, None]), None);
        assert_eq!(line_speed(Vec::new()), None);
    }
}
