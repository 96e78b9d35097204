//! The devices of a path on an existing host, and what may be tried there: read, nothing is changed.

use std::net::IpAddr;

use wirecost_audit::{OnWay, gather};
use wirecost_sys::ethtool::Ethtool;

use crate::error::{Result, Step};
use crate::protocol::{HostWay, PathDevice};

/// Most networks that take larger frames take these.
const JUMBO: u32 = 9000;

/// From the device of this name to the other host's address.
///
/// # Errors
/// Where this host's devices cannot be listed.
pub(crate) fn of(name: &str, peer: IpAddr) -> Result<HostWay> {
    let stack = gather("").step("listing the devices of the path")?;
    let way = wirecost_audit::way(&stack, name, peer);
    Ok(HostWay {
        largest_mtu: way.first().and_then(largest_mtu),
        devices: way.iter().map(device).collect(),
        congestion: congestion(),
    })
}

fn device(one: &OnWay<'_>) -> PathDevice {
    let (device, namespace) = (one.device, one.namespace);
    let in_namespace = namespace.enter.command("");
    let changeable = device.features.iter().filter(|(_, state)| state.changeable);
    // Of another namespace the driver is not asked: its own process could not set them from here either.
    let channels = || Ethtool::open().ok()?.channels(&device.name).ok();
    let channels = (!one.elsewhere).then(channels).flatten();
    PathDevice {
        name: one.name(),
        label: if one.elsewhere {
            format!("{} in {}", device.name, namespace.label)
        } else {
            device.name.clone()
        },
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

fn largest_mtu(first: &OnWay<'_>) -> Option<u32> {
    let device = first.device;
    if device.tunnel.is_some() {
        return first.fits;
    }
    // A bridge's is that of its ports, and a driver that tells nothing may take anything.
    let takes = device.kind != "bridge" && device.max_mtu >= JUMBO;
    (takes && device.mtu <= JUMBO).then_some(JUMBO)
}

/// Those that setsockopt(TCP_CONGESTION) takes from this user (tcp(7)), but for reno: the oldest is better than none.
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
