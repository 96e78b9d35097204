//! Layer 2: veth pairs, bridges and their ports.
//!
//! A bridge forwards a frame to a port only if it fits the port's MTU (net/bridge/br_forward.c, `should_deliver`,
//! through net/core/dev.c, `__is_skb_forwardable`: MTU, hardware header and 4 bytes of VLAN tag), and does not count
//! the drop. GSO packets are exempt: a bulk transfer within one machine passes where the same transfer from a wire does
//! not.

use super::{Findings, other_end, raise, set_mtu};
use crate::snapshot::{Device, HostStack, Namespace};

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    for (at, namespace) in stack.namespaces.iter().enumerate() {
        for device in &namespace.devices {
            match device.kind.as_str() {
                "veth" => veth(stack, (at, namespace), device, found),
                "bridge" => bridge(stack, namespace, device, found),
                _ => {}
            }
        }
    }
}

/// Reports each pair once, at the end with the smaller MTU.
fn veth(
    stack: &HostStack,
    (at, namespace): (usize, &Namespace),
    device: &Device,
    found: &mut Findings<'_>,
) {
    let Some((other_namespace, other)) = other_end(stack, device) else {
        return;
    };
    let other_at = device.peer.as_ref().and_then(|peer| peer.namespace);
    let is_peer = other.peer.as_ref().is_some_and(|back| {
        back.index == device.index && back.namespace == Some(at) && other_at.is_some()
    });
    if !is_peer || device.mtu >= other.mtu {
        return;
    }
    found.add(
        "veth-ends-differ",
        Some(namespace),
        Some(&device.name),
        format!(
            "{} takes {} bytes, its other end {} ({}) sends up to {}: what is larger is dropped by the receiving end, \
             without a message to the sender",
            device.name,
            device.mtu,
            other.name,
            found.place(other_namespace),
            other.mtu
        ),
        alike(&[(namespace, device), (other_namespace, other)]),
    );
}

/// The commands that give both ends the larger MTU, or that of a tunnel on the same bridge where it is smaller.
fn alike(ends: &[(&Namespace, &Device); 2]) -> Vec<String> {
    let tunnels = ends.iter().flat_map(|(namespace, end)| {
        let bridged = end.controller.is_some();
        namespace.devices.iter().filter(move |port| {
            let external = port.tunnel.as_ref().is_none_or(|tunnel| tunnel.external);
            bridged && port.up && port.controller == end.controller && !external
        })
    });
    let room = tunnels.map(|tunnel| tunnel.mtu).min();
    let largest = ends.iter().map(|(_, end)| end.mtu).max().unwrap_or(0);
    let mtu = room.map_or(largest, |room| room.min(largest));
    ends.iter()
        .filter(|(_, end)| end.mtu != mtu)
        .map(|(namespace, end)| set_mtu(namespace, &end.name, mtu))
        .collect()
}

/// Devices that send into a bridge: name, index of the port, MTU in bytes. These are the bridge itself where it has an
/// address, and the ports whose peer is a known device or a virtual machine. NICs and tunnels are left out: the MTU of
/// their senders is set elsewhere.
fn senders<'a>(
    stack: &'a HostStack,
    bridge: &'a Device,
    ports: &[&'a Device],
) -> Vec<(String, u32, u32)> {
    let mut senders = Vec::new();
    if !bridge.addresses.is_empty() {
        senders.push((bridge.name.clone(), bridge.index, bridge.mtu));
    }
    for port in ports {
        let sends = match port.kind.as_str() {
            // The receiving end of a veth drops larger packets: that is `veth-ends-differ`.
            "veth" => match other_end(stack, port) {
                Some((namespace, other)) => Some((
                    format!("{} ({})", other.name, namespace.label),
                    other.mtu.min(port.mtu),
                )),
                None => Some((port.name.clone(), port.mtu)),
            },
            "tun" => Some((port.name.clone(), port.mtu)),
            _ => None,
        };
        senders.extend(sends.map(|(name, mtu)| (name, port.index, mtu)));
    }
    senders
}

fn bridge(stack: &HostStack, namespace: &Namespace, bridge: &Device, found: &mut Findings<'_>) {
    let ports: Vec<&Device> = namespace
        .devices
        .iter()
        .filter(|device| device.controller == Some(bridge.index) && device.up)
        .collect();
    let senders = senders(stack, bridge, &ports);
    for port in &ports {
        let largest = senders
            .iter()
            .filter(|(_, index, _)| *index != port.index)
            .max_by_key(|(_, _, mtu)| *mtu)
            .filter(|(_, _, mtu)| *mtu > port.mtu);
        let external = port.tunnel.as_ref().is_some_and(|tunnel| tunnel.external);
        if let Some((name, _, mtu)) = largest
            && !external
        {
            let tunnel = port.tunnel.is_some();
            let lost = format!(
                "{name} sends up to {mtu} bytes into bridge {}, its port {} takes {}: the bridge drops larger frames \
                 without ICMP and without a counter",
                bridge.name, port.name, port.mtu
            );
            let (id, fix) = if tunnel {
                (
                    "guest-larger-than-tunnel",
                    guests_down(stack, namespace, bridge, port.mtu, &ports),
                )
            } else {
                ("bridge-port-smaller", raise(stack, namespace, port, *mtu))
            };
            found.add(id, Some(namespace), Some(&port.name), lost, fix);
        } else if port.mtu < bridge.mtu && port.tunnel.is_none() {
            found.add(
                "bridge-port-smaller",
                Some(namespace),
                Some(&port.name),
                format!(
                    "bridge {} has an MTU of {}, its port {} one of {}: what is larger does not leave through that port",
                    bridge.name, bridge.mtu, port.name, port.mtu
                ),
                raise(stack, namespace, port, bridge.mtu),
            );
        }
    }
}

/// The commands that lower a bridge's other ports once this port takes `mtu` bytes.
pub(super) fn lower_other_ports(
    stack: &HostStack,
    namespace: &Namespace,
    port: &Device,
    mtu: u32,
) -> Vec<String> {
    let controller = port.controller.and_then(|index| namespace.device(index));
    let Some(bridge) = controller.filter(|device| device.kind == "bridge") else {
        return Vec::new();
    };
    let ports: Vec<&Device> = namespace
        .devices
        .iter()
        .filter(|device| device.controller == Some(bridge.index) && device.up)
        .collect();
    guests_down(stack, namespace, bridge, mtu, &ports)
}

/// The commands that lower every sender of a bridge to the MTU of its tunnel.
fn guests_down(
    stack: &HostStack,
    namespace: &Namespace,
    bridge: &Device,
    mtu: u32,
    ports: &[&Device],
) -> Vec<String> {
    let mut fix = Vec::new();
    for port in ports.iter().filter(|port| port.mtu > mtu) {
        if port.kind == "veth" {
            if let Some((inside, guest)) = other_end(stack, port) {
                fix.push(set_mtu(inside, &guest.name, mtu));
            }
            fix.push(set_mtu(namespace, &port.name, mtu));
        } else if port.kind == "tun" {
            fix.push(set_mtu(namespace, &port.name, mtu));
            fix.push(format!(
                "# the virtual machine behind {}: set {mtu} inside it, or host_mtu={mtu} of its virtio-net device",
                port.name
            ));
        }
    }
    if bridge.mtu > mtu {
        fix.push(set_mtu(namespace, &bridge.name, mtu));
    }
    fix
}
