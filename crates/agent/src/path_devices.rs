//! The devices of the path on an existing host, and changes that may be tried there. Reads only.

use std::net::IpAddr;

use wirecost_audit::{DeviceOnPath, gather};
use wirecost_sys::ethtool::Ethtool;

use crate::error::{Context, Result};
use crate::protocol::{HostPath, PathDevice};

/// The MTU that most networks with jumbo frames use, bytes.
const JUMBO: u32 = 9000;

/// The devices from the one of this name to the address of the other host.
///
/// # Errors
/// This host's devices cannot be listed.
pub(crate) fn of(name: &str, peer: IpAddr) -> Result<HostPath> {
    let stack = gather("").context("listing the devices of the path")?;
    let path = wirecost_audit::devices_on_path(&stack, name, peer);
    Ok(HostPath {
        largest_mtu: path.first().and_then(largest_mtu),
        devices: path.iter().map(device).collect(),
        congestion: congestion(),
    })
}

fn device(one: &DeviceOnPath<'_>) -> PathDevice {
    let (device, namespace) = (one.device, one.namespace);
    let in_namespace = namespace.enter.command("");
    let changeable = device.features.iter().filter(|(_, state)| state.changeable);
    // A driver in another namespace is not queried: its queues could not be set from here either.
    let channels = || Ethtool::open().ok()?.channels(&device.name).ok();
    let channels = (!one.elsewhere).then(channels).flatten();
    PathDevice {
        name: one.name(),
        label: if one.elsewhere {
            format!("{} in {}", device.name, namespace.label)
        } else {
            device.name.clone()
        },
        kind: device.kind.clone(),
        prefix: if one.elsewhere {
            in_namespace
        } else {
            String::new()
        },
        mtu: device.mtu,
        beneath_tunnel: one.beneath_tunnel,
        faces_guest: one.faces_guest,
        toggles: changeable
            .map(|(name, state)| (name.clone(), state.on))
            .collect(),
        rx_queues: device.queues.rx,
        queues: channels
            .filter(|channels| channels.combined_max > 0)
            .map(|channels| (channels.combined, channels.combined_max)),
    }
}

fn largest_mtu(first: &DeviceOnPath<'_>) -> Option<u32> {
    let device = first.device;
    if device.tunnel.is_some() {
        return first.fits;
    }
    // A VLAN takes no MTU above that of its device (net/8021q/vlan_dev.c, `vlan_dev_change_mtu`), and a macvlan
    // neither.
    let has_room = device.lower.is_none_or(|lower| {
        let lower = first.namespace.device(lower);
        lower.is_some_and(|lower| lower.mtu >= JUMBO)
    });
    // A bridge's MTU follows its ports, and a driver that reports no maximum may accept any MTU.
    let takes = has_room && device.kind != "bridge" && device.max_mtu >= JUMBO;
    (takes && device.mtu <= JUMBO).then_some(JUMBO)
}

/// Congestion controls that setsockopt(TCP_CONGESTION) accepts from this user (tcp(7)), except the current one and
/// reno, the oldest.
fn congestion() -> Vec<String> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default()
    };
    let root = nix::unistd::geteuid().is_root();
    let which = if root {
        "tcp_available_congestion_control"
    } else {
        "tcp_allowed_congestion_control"
    };
    let present = read("tcp_congestion_control");
    let all = read(which);
    all.split_whitespace()
        .filter(|name| *name != present.trim() && *name != "reno")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use wirecost_audit::snapshot::{Device, Namespace};

    use super::*;

    #[test]
    fn a_vlan_takes_no_larger_mtu_than_its_device() {
        let largest = |mtu| {
            let card = Device {
                name: "eth0".to_owned(),
                index: 2,
                mtu,
                max_mtu: 9216,
                ..Device::default()
            };
            let vlan = Device {
                name: "eth0.7".to_owned(),
                index: 3,
                mtu: 1500,
                max_mtu: 65_535,
                kind: "vlan".to_owned(),
                lower: Some(2),
                ..Device::default()
            };
            let namespace = Namespace {
                devices: vec![card, vlan],
                ..Namespace::default()
            };
            let of = |device: &Device| {
                largest_mtu(&DeviceOnPath {
                    namespace: &namespace,
                    elsewhere: false,
                    device,
                    beneath_tunnel: false,
                    faces_guest: false,
                    fits: None,
                })
            };
            [0, 1].map(|number| of(&namespace.devices[number]))
        };
        assert_eq!(largest(1500), [Some(JUMBO), None]);
        assert_eq!(largest(9000), [Some(JUMBO), Some(JUMBO)]);
    }
}
