//! Stacked devices: VLANs and macvlans on their lower devices, members of bonds and teams; the minimum MTU of IPv6.

use super::tunnels::{outside, path, underlay};
use super::{Findings, raise, set_mtu};
use crate::snapshot::{Device, HostStack, Namespace};

/// Minimum MTU of IPv6, bytes (RFC 8200, section 5).
const IPV6_LEAST: u32 = 1280;

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    for namespace in &stack.namespaces {
        let speaks_ipv6 = namespace.devices.iter().any(|device| {
            !device.loopback
                && device.addresses.iter().any(|address| match address {
                    std::net::IpAddr::V6(address) => !address.is_unicast_link_local(),
                    std::net::IpAddr::V4(_) => false,
                })
        });
        if speaks_ipv6 {
            too_small_for_ipv6(stack, namespace, found);
        }
        for device in &namespace.devices {
            match device.kind.as_str() {
                "bond" | "team" => members(namespace, device, found),
                "vlan" | "macvlan" | "macvtap" | "ipvlan" => upper(stack, namespace, device, found),
                _ => {}
            }
        }
    }
}

/// Reports all devices that are too small for IPv6 in one finding.
fn too_small_for_ipv6(stack: &HostStack, namespace: &Namespace, found: &mut Findings<'_>) {
    let small: Vec<&Device> = namespace
        .devices
        .iter()
        .filter(|device| !device.loopback && device.up && device.mtu < IPV6_LEAST)
        .collect();
    let device = match small[..] {
        [] => return,
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    let each: Vec<String> = small
        .iter()
        .map(|device| format!("{} has an MTU of {}", device.name, device.mtu))
        .collect();
    let mut fix: Vec<String> = Vec::new();
    for command in small
        .iter()
        .flat_map(|device| wide_enough(stack, namespace, device))
    {
        if !fix.contains(&command) {
            fix.push(command);
        }
    }
    let evidence = format!(
        "{}: below 1280 the kernel takes IPv6 away from a device (RFC 8200, section 5)",
        each.join(", ")
    );
    found.add("ipv6-below-1280", Some(namespace), device, evidence, fix);
}

/// The commands that raise a device to 1280, and before that a tunnel's underlay where it is too small for that.
fn wide_enough(stack: &HostStack, namespace: &Namespace, device: &Device) -> Vec<String> {
    let remotes = device.tunnel.iter().flat_map(|tunnel| {
        tunnel
            .remotes
            .iter()
            .filter_map(move |remote| Some((path(&tunnel.stack, remote.address)?, tunnel, remote)))
    });
    let narrow = remotes.filter_map(|(path, tunnel, remote)| {
        let needs = path.underlay_mtu(IPV6_LEAST).ok()?;
        let there = outside(stack, namespace, tunnel)?;
        let under = underlay(there, remote).filter(|under| under.mtu < needs)?;
        Some(set_mtu(there, &under.device.name, needs))
    });
    narrow
        .take(1)
        .chain([set_mtu(namespace, &device.name, IPV6_LEAST)])
        .collect()
}

fn members(namespace: &Namespace, bond: &Device, found: &mut Findings<'_>) {
    let members = namespace
        .devices
        .iter()
        .filter(|device| device.controller == Some(bond.index) && device.mtu != bond.mtu);
    for member in members {
        let evidence = format!(
            "{} has an MTU of {}, {} of which it is a member one of {}: frames that are larger are lost whenever the \
             {} picks this member, as after the member was replaced or its driver was reset",
            member.name, member.mtu, bond.name, bond.mtu, bond.kind
        );
        found.add(
            "bond-member-differs",
            Some(namespace),
            Some(&member.name),
            evidence,
            vec![
                set_mtu(namespace, &bond.name, bond.mtu),
                set_mtu(namespace, &member.name, bond.mtu),
            ],
        );
    }
}

fn upper(stack: &HostStack, namespace: &Namespace, device: &Device, found: &mut Findings<'_>) {
    let Some(lower) = device.lower.and_then(|index| namespace.device(index)) else {
        return;
    };
    if device.mtu > lower.mtu {
        found.add(
            "upper-exceeds-lower",
            Some(namespace),
            Some(&device.name),
            format!(
                "{} has an MTU of {}; its lower device {} has {}",
                device.name, device.mtu, lower.name, lower.mtu
            ),
            raise(stack, namespace, lower, device.mtu),
        );
    }
}
