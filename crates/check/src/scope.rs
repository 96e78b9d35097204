//! Which devices of a host the packets of the checked path use, so that findings elsewhere on the host are marked so.
//!
//! Starts at the device that packets leave through and follows lower devices, the bridge or bond with its ports, veth
//! peers and a tunnel's underlay device; and upwards, tunnels between the pair, with the guests behind them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wirecost_audit::{Finding, HostStack};

/// A device: position of its namespace in [`HostStack::namespaces`], and its interface index there.
type DeviceKey = (usize, u32);

/// Devices that packets between the addresses `pair` use when they leave through `device` of the host's own namespace.
/// `None`: the device is not known.
pub(crate) fn devices_on_path(
    stack: &HostStack,
    device: &str,
    pair: &[IpAddr],
) -> Option<BTreeSet<DeviceKey>> {
    let own = stack.namespaces.first()?;
    let first = own.devices.iter().find(|it| it.name == device)?;
    let mut found = BTreeSet::new();
    let mut next = vec![(0, first.index)];
    while let Some(place) = next.pop() {
        if found.insert(place) {
            next.extend(adjacent(stack, place, pair));
        }
    }
    Some(found)
}

/// Devices that packets of a device pass directly before or after it.
fn adjacent(stack: &HostStack, (at, index): DeviceKey, pair: &[IpAddr]) -> Vec<DeviceKey> {
    let Some(namespace) = stack.namespaces.get(at) else {
        return Vec::new();
    };
    let Some(device) = namespace.device(index) else {
        return Vec::new();
    };
    let mut places: Vec<DeviceKey> = Vec::new();
    if !device.up {
        return places;
    }
    places.extend(device.lower.map(|lower| (at, lower)));
    places.extend(device.controller.map(|controller| (at, controller)));
    let veth = device.peer.as_ref();
    places.extend(veth.and_then(|peer| Some((peer.namespace?, peer.index))));
    for other in namespace.devices.iter().filter(|other| other.up) {
        let is_port = other.controller == Some(index);
        let stands_on = other.lower == Some(index) && other.kind == "vlan";
        let leads_there = other.tunnel.as_ref().is_some_and(|tunnel| {
            tunnel.socket.is_none()
                && tunnel
                    .remotes
                    .iter()
                    .any(|remote| remote.device == Some(index) && pair.contains(&remote.address))
        });
        if is_port || stands_on || leads_there {
            places.push((at, other.index));
        }
    }
    if let Some(tunnel) = &device.tunnel {
        let there = tunnel.socket.unwrap_or(at);
        let under = tunnel.remotes.iter().filter_map(|remote| remote.device);
        places.extend(under.map(|under| (there, under)));
    }
    places
}

/// Whether a finding of a host is about one of these devices, or about a namespace that has one.
pub(crate) fn concerns(
    stack: &HostStack,
    finding: &Finding,
    devices: &BTreeSet<DeviceKey>,
) -> bool {
    let label = finding
        .host
        .strip_prefix(stack.host.as_str())
        .and_then(|rest| rest.strip_prefix(" (")?.strip_suffix(')'));
    let at = label.map_or(Some(0), |label| {
        let mut namespaces = stack.namespaces.iter();
        namespaces.position(|namespace| namespace.label == label)
    });
    let Some(at) = at else { return true };
    let Some(name) = &finding.device else {
        return devices.iter().any(|(there, _)| *there == at);
    };
    let mut all = stack.namespaces[at].devices.iter();
    // Interfaces of Open vSwitch's database may not be devices of the kernel.
    all.find(|device| device.name == *name)
        .is_none_or(|device| devices.contains(&(at, device.index)))
}
