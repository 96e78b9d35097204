//! The devices of a host that packets to another host pass, from the one with the measured address outwards: the
//! underlay of a tunnel, a bridge's other ports, the host's end of a container's veth. Pure: reads a [`HostStack`].

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::judge;
use crate::snapshot::{Device, HostStack, Namespace, NetnsEntry};

/// Upper bound on the devices of a path: a host of a hundred containers has as many ports.
const MAX_DEVICES: usize = 6;
/// Kinds of devices that send through their ports or members.
const JOINING: [&str; 4] = ["bridge", "bond", "team", "openvswitch"];

/// A device that packets to the other host pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOnPath<'a> {
    /// The device's namespace.
    pub namespace: &'a Namespace,
    /// Whether that namespace is not the one that was read first.
    pub elsewhere: bool,
    /// The device.
    pub device: &'a Device,
    /// Whether the packets at this device are those of a tunnel.
    pub beneath_tunnel: bool,
    /// Whether the device is the host's end of a guest's veth: packets to the other host come in by it.
    pub faces_guest: bool,
    /// The largest MTU of a tunnel whose packets fit the underlay, bytes; `None` where it is not a tunnel of known
    /// overhead.
    pub fits: Option<u32>,
}

impl DeviceOnPath<'_> {
    /// The device's name as [`wirecost_model::vary::Setting::device_name`] takes it.
    pub fn name(&self) -> String {
        let name = &self.device.name;
        match &self.namespace.enter {
            NetnsEntry::Named(netns) if self.elsewhere => format!("/run/netns/{netns}/{name}"),
            NetnsEntry::Process(pid) if self.elsewhere => format!("/proc/{pid}/ns/net/{name}"),
            _ => name.clone(),
        }
    }
}

/// A position in the walk: a device, and how it was reached.
#[derive(Clone, Copy)]
struct Step {
    namespace: usize,
    device: u32,
    beneath_tunnel: bool,
    faces_guest: bool,
}

/// The devices between the device `name` of the first namespace, which is the first in the result, and the address of
/// the other host. Bridges and bonds are left out unless they are that device: their ports carry the packets.
/// Namespaces that have the other host's address are not part of this host's path.
pub fn devices_on_path<'a>(
    stack: &'a HostStack,
    name: &str,
    peer: IpAddr,
) -> Vec<DeviceOnPath<'a>> {
    let first = stack.namespaces.first();
    let start = first.and_then(|first| first.devices.iter().find(|device| device.name == name));
    let Some(start) = start else {
        return Vec::new();
    };
    let is_peers = |at: usize| {
        let mut devices = stack.namespaces[at].devices.iter();
        at != 0 && devices.any(|device| device.addresses.contains(&peer))
    };
    let mut ahead = VecDeque::from([Step {
        namespace: 0,
        device: start.index,
        beneath_tunnel: false,
        faces_guest: false,
    }]);
    let (mut seen, mut path) = (Vec::new(), Vec::new());
    while let Some(step) = ahead.pop_front() {
        let Some(namespace) = stack.namespaces.get(step.namespace) else {
            continue;
        };
        let Some(device) = namespace.device(step.device) else {
            continue;
        };
        let key = (step.namespace, step.device);
        if seen.contains(&key) || is_peers(step.namespace) || device.loopback {
            continue;
        }
        seen.push(key);
        let is_start = path.is_empty();
        if is_start || !JOINING.contains(&device.kind.as_str()) {
            path.push(DeviceOnPath {
                namespace,
                elsewhere: step.namespace != 0,
                device,
                beneath_tunnel: step.beneath_tunnel,
                faces_guest: step.faces_guest,
                fits: fits(stack, namespace, device),
            });
        }
        if path.len() == MAX_DEVICES {
            break;
        }
        ahead.extend(onwards(
            stack,
            (step, is_start),
            (namespace, device),
            &is_peers,
        ));
    }
    path
}

fn onwards(
    stack: &HostStack,
    (step, is_start): (Step, bool),
    (namespace, device): (&Namespace, &Device),
    is_peers: &dyn Fn(usize) -> bool,
) -> Vec<Step> {
    let out = |device: u32| Step {
        device,
        faces_guest: false,
        ..step
    };
    if let Some(tunnel) = &device.tunnel {
        let remotes = tunnel.remotes.iter().filter_map(|remote| remote.device);
        let beneath = |lower: u32| Step {
            namespace: tunnel.socket.unwrap_or(step.namespace),
            beneath_tunnel: true,
            ..out(lower)
        };
        return remotes.map(beneath).collect();
    }
    if JOINING.contains(&device.kind.as_str()) {
        return ports(stack, namespace, device, is_peers)
            .map(|port| out(port.index))
            .collect();
    }
    let peer = device.peer.as_ref();
    let other_end = peer.and_then(|peer| {
        Some(Step {
            namespace: peer.namespace?,
            device: peer.index,
            faces_guest: !step.faces_guest,
            ..step
        })
    });
    // From a guest's veth into the host's bridge, or, where the host routes instead, to the device of its default
    // route.
    let routed = namespace.default_device.filter(|_| step.faces_guest);
    let joined = device.controller.or(routed).filter(|_| !is_start);
    let beneath = device.lower.or(joined).map(out);
    beneath
        .into_iter()
        .chain(other_end.filter(|_| !step.faces_guest))
        .collect()
}

/// The ports of a bridge that lead to the other host: the other host's own port where it is on the same bridge, else
/// NICs and tunnels, else all ports.
fn ports<'a>(
    stack: &'a HostStack,
    namespace: &'a Namespace,
    bridge: &'a Device,
    is_peers: &dyn Fn(usize) -> bool,
) -> impl Iterator<Item = &'a Device> {
    let all: Vec<&Device> = namespace
        .devices
        .iter()
        .filter(|port| port.controller == Some(bridge.index))
        .collect();
    let leads_to_peer = |port: &Device| {
        let at = port.peer.as_ref().and_then(|peer| peer.namespace);
        at.is_some_and(|at| at < stack.namespaces.len() && is_peers(at))
    };
    let leads_out = |port: &Device| port.physical || port.tunnel.is_some() || port.lower.is_some();
    let wanted: &dyn Fn(&Device) -> bool = if all.iter().any(|port| leads_to_peer(port)) {
        &leads_to_peer
    } else if all.iter().any(|port| leads_out(port)) {
        &leads_out
    } else {
        &|_| true
    };
    let chosen: Vec<&Device> = all.into_iter().filter(|port| wanted(port)).collect();
    chosen.into_iter()
}

fn fits(stack: &HostStack, namespace: &Namespace, device: &Device) -> Option<u32> {
    let tunnel = device.tunnel.as_ref().filter(|tunnel| !tunnel.external)?;
    let there = judge::outside(stack, namespace, tunnel)?;
    let remotes = tunnel.remotes.iter();
    let fits = remotes.map(|remote| judge::fits(there, tunnel, remote));
    // The smallest over all remotes; unknown where one of them is unknown.
    fits.collect::<Option<Vec<u32>>>()?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::snapshot::{Remote, Tunnel, VethPeer};

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn device(name: &str, index: u32) -> Device {
        Device {
            name: name.to_owned(),
            index,
            mtu: 1500,
            up: true,
            ..Device::default()
        }
    }

    fn card(name: &str, index: u32) -> Device {
        Device {
            physical: true,
            ..device(name, index)
        }
    }

    fn vxlan(index: u32, lower: u32) -> Device {
        Device {
            kind: "vxlan".to_owned(),
            tunnel: Some(Tunnel {
                stack: "vxlan".to_owned(),
                remotes: vec![Remote {
                    address: [10, 0, 0, 2].into(),
                    device: Some(lower),
                    route_mtu: None,
                }],
                ..Tunnel::default()
            }),
            ..device("vxlan0", index)
        }
    }

    fn veth(name: &str, index: u32, peer: (usize, u32)) -> Device {
        Device {
            kind: "veth".to_owned(),
            peer: Some(VethPeer {
                namespace: Some(peer.0),
                index: peer.1,
            }),
            ..device(name, index)
        }
    }

    fn port(device: Device) -> Device {
        Device {
            controller: Some(9),
            ..device
        }
    }

    fn bridge() -> Device {
        Device {
            kind: "bridge".to_owned(),
            ..device("br0", 9)
        }
    }

    fn namespace(name: &str, devices: Vec<Device>) -> Namespace {
        Namespace {
            label: name.to_owned(),
            enter: NetnsEntry::Named(name.to_owned()),
            devices,
            ..Namespace::default()
        }
    }

    fn names(stack: &HostStack, from: &str) -> Vec<(String, bool, bool)> {
        let path = devices_on_path(stack, from, PEER);
        path.iter()
            .map(|one| (one.name(), one.beneath_tunnel, one.faces_guest))
            .collect()
    }

    #[test]
    fn a_tunnel_stands_on_the_device_of_its_route() {
        let stack = HostStack {
            namespaces: vec![namespace("x", vec![vxlan(5, 2), card("eth0", 2)])],
            ..HostStack::default()
        };
        assert_eq!(
            names(&stack, "vxlan0"),
            [
                ("vxlan0".into(), false, false),
                ("eth0".into(), true, false)
            ]
        );
        assert_eq!(devices_on_path(&stack, "vxlan0", PEER)[0].fits, Some(1450));
    }

    #[test]
    fn a_containers_way_goes_by_the_hosts_bridge_and_tunnel_and_by_no_other_container() {
        let guest = namespace("blue", vec![veth("eth0", 2, (1, 3))]);
        let host = Namespace {
            enter: NetnsEntry::Process(1),
            ..namespace(
                "host",
                vec![
                    port(veth("port0", 3, (0, 2))),
                    port(veth("port1", 4, (2, 2))),
                    port(vxlan(5, 2)),
                    card("eth0", 2),
                    bridge(),
                ],
            )
        };
        let stack = HostStack {
            namespaces: vec![guest, host],
            ..HostStack::default()
        };
        assert_eq!(
            names(&stack, "eth0"),
            [
                ("eth0".into(), false, false),
                ("/proc/1/ns/net/port0".into(), false, true),
                ("/proc/1/ns/net/vxlan0".into(), false, false),
                ("/proc/1/ns/net/eth0".into(), true, false),
            ]
        );
    }

    #[test]
    fn the_other_host_is_not_on_the_path() {
        let own = namespace("a", vec![veth("eth0", 2, (1, 2))]);
        let theirs = Device {
            addresses: vec![PEER],
            ..veth("eth0", 2, (0, 2))
        };
        let stack = HostStack {
            namespaces: vec![own, namespace("b", vec![theirs])],
            ..HostStack::default()
        };
        assert_eq!(names(&stack, "eth0"), [("eth0".into(), false, false)]);
        assert_eq!(names(&stack, "eth1"), []);
    }

    #[test]
    fn an_address_on_a_bridge_is_reached_by_its_ports() {
        let stack = HostStack {
            namespaces: vec![namespace("a", vec![bridge(), port(card("eth0", 2))])],
            ..HostStack::default()
        };
        assert_eq!(
            names(&stack, "br0"),
            [("br0".into(), false, false), ("eth0".into(), false, false)]
        );
    }
}
