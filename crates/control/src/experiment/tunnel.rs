//! Experiments whose tunnels go over the network of existing hosts: settles what is known only once the hosts are
//! reached.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use wirecost_agent::protocol::{EndSecret, HostSpec, Side};
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Encapsulation, GuestMtu};

use super::error::RunError;
use crate::lab::ExistingPair;

/// UDP ports for tunnels whose own port is in use on a host: above the default `net.ipv4.ip_local_port_range`.
pub const PORTS: RangeInclusive<u16> = 61000..=61127;

/// Adapts the experiment to these pairs of hosts: IP version of their addresses, MTU of their devices and routes, and
/// UDP ports that are free on all hosts.
///
/// # Errors
/// Where the plan asks for what is impossible over the hosts' network: `df` over IPv6, or no free UDP port.
pub(super) fn adapt(experiment: &mut Experiment, pairs: &[ExistingPair]) -> Result<(), RunError> {
    let mut ports = BTreeMap::new();
    let plan = &mut experiment.plan;
    (plan.underlay.mtu, plan.underlay.ip) = (Vec::new(), Vec::new());
    for cell in experiment.cells.iter_mut().chain(&mut experiment.twin) {
        let existing = &pairs[plan.pair_of(&cell.levels)];
        let (mtu, _) = existing.underlay_mtu();
        let ip = match existing.addresses {
            [IpAddr::V4(_), _] => IpVersion::Ipv4,
            [IpAddr::V6(_), _] => IpVersion::Ipv6,
        };
        if !plan.underlay.mtu.contains(&mtu) {
            plan.underlay.mtu.push(mtu);
        }
        if !plan.underlay.ip.contains(&ip) {
            plan.underlay.ip.push(ip);
        }
        let network = &mut cell.network;
        (network.underlay_mtu, network.underlay_ip) = (mtu, ip);
        if ip == IpVersion::Ipv6 && network.encapsulation.asks_for_df() {
            return Err(RunError::OnHost(format!(
                "`df` of {} is of IPv4, and the addresses of the hosts are of IPv6: leave it out",
                network.encapsulation
            )));
        }
        settle_port(&mut network.encapsulation, pairs, &mut ports)?;
        let largest = network.path_mtu().saturating_sub(network.overhead_bytes());
        if is_max(cell) {
            cell.guest_mtu = largest;
        }
    }
    Ok(())
}

/// Whether a cell has the guest MTU `max`, the largest that fits.
fn is_max(cell: &Cell) -> bool {
    let label = cell.levels.get("guest_mtu");
    label.is_some_and(|label| *label == GuestMtu::Max.to_string())
}

/// Keeps the plan's UDP port where it is free on all hosts, else chooses another. `chosen` has the ports of all tunnels
/// so far, by encapsulation and port of the plan.
fn settle_port(
    encapsulation: &mut Encapsulation,
    pairs: &[ExistingPair],
    chosen: &mut BTreeMap<(String, u16), u16>,
) -> Result<(), RunError> {
    let kind = encapsulation.kind().word.to_owned();
    let port = match encapsulation {
        Encapsulation::Vxlan(vxlan) => &mut vxlan.port,
        Encapsulation::Geneve(geneve) => &mut geneve.port,
        Encapsulation::Wireguard(wireguard) => &mut wireguard.port,
        _ => return Ok(()),
    };
    let known = (kind, *port);
    if let Some(known) = chosen.get(&known) {
        *port = *known;
        return Ok(());
    }
    let ours = |port: u16| chosen.values().any(|known| *known == port);
    let mut candidates = std::iter::once(*port).chain(PORTS);
    let is_free = |port: u16| pairs.iter().all(|existing| existing.is_free(port));
    let free = candidates.find(|port| is_free(*port) && !ours(*port));
    *port = free.ok_or_else(|| {
        RunError::OnHost(format!(
            "no UDP port is free on all hosts for {}: neither {} nor {} to {}",
            known.0,
            known.1,
            PORTS.start(),
            PORTS.end()
        ))
    })?;
    chosen.insert(known, *port);
    Ok(())
}

/// Why the guest MTU of a cell does not fit the hosts' network; `None`: it fits.
pub(super) fn too_large(cell: &Cell, existing: &ExistingPair) -> Option<String> {
    let (network, (mtu, what)) = (&cell.network, existing.underlay_mtu());
    let (overhead, largest) = (network.overhead_bytes(), network.tunnel_mtu());
    (cell.guest_mtu > largest).then(|| {
        format!(
            "guests of MTU {} and the {overhead} bytes of {} need an underlay of {}, and {what} has MTU {mtu}: {largest} is the \
             most (`max`)",
            cell.guest_mtu,
            network.encapsulation,
            cell.guest_mtu + overhead
        )
    })
}

/// The addresses that guests have in a network, host a's guests and host b's.
pub fn guest_addresses(network: &Network) -> [Vec<IpAddr>; 2] {
    [Side::A, Side::B].map(|side| {
        let spec = HostSpec {
            side,
            network: network.clone(),
            receive_cpus: None,
            release_us: 0,
            several_links: false,
            line_core: None,
            secrets: [EndSecret([0; 32]), EndSecret([0; 32])],
            existing_underlay: None,
        };
        spec.guest_addresses()
    })
}
