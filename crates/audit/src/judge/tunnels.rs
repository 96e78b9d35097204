//! Tunnels: the size of their packets against the MTU of the route and the device that they leave through.

use std::fmt::Write;
use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_wire::overhead::{Path, Stack};

use super::{Findings, bridges, set_mtu};
use crate::snapshot::{Device, HostStack, Namespace, Remote, Tunnel};

/// Room for an inner VLAN tag or two, bytes: an MTU smaller by this much is not reported.
const RESERVE: u32 = 8;

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    for namespace in &stack.namespaces {
        for device in &namespace.devices {
            if let Some(tunnel) = &device.tunnel
                && device.up
            {
                one_way_checksum(namespace, device, found);
                for remote in &tunnel.remotes {
                    towards(stack, namespace, (device, remote), found);
                }
            }
        }
    }
}

/// The device that carries a tunnel's packets, and the size of packet that it carries, bytes.
pub(crate) struct Underlay<'a> {
    pub(crate) device: &'a Device,
    pub(crate) mtu: u32,
}

/// The underlay of a tunnel's packets to a remote: the MTU is the route's where it has one, else the device's IPv6 MTU,
/// else the device's. `namespace` is the one that the packets leave from, see [`outside`].
pub(crate) fn underlay<'a>(namespace: &'a Namespace, remote: &Remote) -> Option<Underlay<'a>> {
    let device = namespace.device(remote.device?)?;
    let own = device.ipv6_mtu.filter(|_| remote.address.is_ipv6());
    let mtu = remote
        .route_mtu
        .or(own)
        .map_or(device.mtu, |mtu| mtu.min(device.mtu));
    Some(Underlay { device, mtu })
}

/// The namespace that a tunnel's packets leave from; `None`: that namespace was not read.
pub(crate) fn outside<'a>(
    stack: &'a HostStack,
    namespace: &'a Namespace,
    tunnel: &Tunnel,
) -> Option<&'a Namespace> {
    tunnel
        .socket
        .map_or(Some(namespace), |at| stack.namespaces.get(at))
}

/// Overhead of an encapsulation towards an address; `None` where the encapsulation is not known.
pub(crate) fn path(stack: &str, remote: IpAddr) -> Option<Path> {
    let version = match remote {
        IpAddr::V4(_) => IpVersion::Ipv4,
        IpAddr::V6(_) => IpVersion::Ipv6,
    };
    let stack: Stack = stack.parse().ok()?;
    stack.over(version, IpVersion::Ipv4).ok()
}

/// The largest tunnel MTU whose packets to one remote fit the underlay, bytes; `None` where the encapsulation or the
/// underlay is not known.
pub(crate) fn fits(there: &Namespace, tunnel: &Tunnel, remote: &Remote) -> Option<u32> {
    let under = underlay(there, remote)?;
    path(&tunnel.stack, remote.address)?
        .guest_mtu(under.mtu)
        .ok()
}

fn towards(
    stack: &HostStack,
    namespace: &Namespace,
    (device, remote): (&Device, &Remote),
    found: &mut Findings<'_>,
) {
    let Some(tunnel) = &device.tunnel else { return };
    let Some(there) = outside(stack, namespace, tunnel) else {
        return;
    };
    let Some(under) = underlay(there, remote) else {
        found.add(
            "tunnel-without-route",
            Some(namespace),
            Some(&device.name),
            format!(
                "there is no route to {}, the other end of {}",
                remote.address, device.name
            ),
            vec![
                there
                    .enter
                    .command(&format!("ip route get {}", remote.address)),
            ],
        );
        return;
    };
    // An external tunnel does not send what the device's MTU says; a tunnel over loopback is a test set-up.
    if tunnel.external || under.device.loopback {
        return;
    }
    let Some(path) = path(&tunnel.stack, remote.address) else {
        return;
    };
    let (Ok(needs), Ok(fits)) = (path.underlay_mtu(device.mtu), path.guest_mtu(under.mtu)) else {
        return;
    };
    if needs > under.mtu {
        let guests = bridges::lower_other_ports(stack, namespace, device, fits);
        exceeds(
            [namespace, there],
            (device, remote),
            (&under, needs, fits),
            guests,
            found,
        );
        return;
    }
    if let Some(tagged) = tagged_through(namespace, device) {
        inner_vlan(namespace, device, (tagged, remote, &under), found);
    }
    if fits > device.mtu + RESERVE {
        smaller(namespace, device, (&under, &path, fits), found);
    }
}

/// Reports packets that are too large for the underlay. The two namespaces are the tunnel's, and the one that its
/// packets leave from.
fn exceeds(
    [namespace, there]: [&Namespace; 2],
    (device, remote): (&Device, &Remote),
    (under, needs, fits): (&Underlay<'_>, u32, u32),
    guests: Vec<String>,
    found: &mut Findings<'_>,
) {
    let ids = [
        "tunnel-exceeds-underlay",
        "tunnel-exceeds-tunnel",
        "tunnel-uses-narrower-device",
        "geneve-options-not-counted",
    ];
    if ids.iter().any(|id| found.has(id, &device.name)) {
        return; // One remote is enough.
    }
    let Some(tunnel) = &device.tunnel else { return };
    let by_default = there
        .default_device
        .filter(|index| *index != under.device.index)
        .and_then(|index| there.device(index));
    let fits_default = by_default.is_some_and(|default| default.mtu >= needs);
    let without_options = tunnel.stack.starts_with("geneve:")
        && path("geneve", remote.address)
            .and_then(|path| path.underlay_mtu(device.mtu).ok())
            .is_some_and(|needs| needs <= under.mtu);
    let through = if under.device.mtu == under.mtu {
        format!("{}, which takes {}", under.device.name, under.mtu)
    } else {
        format!(
            "{} on a route with an MTU of {}",
            under.device.name, under.mtu
        )
    };
    let mut evidence = format!(
        "{} ({}) has an MTU of {}: its packets to {} are {needs} bytes, and leave through {through}",
        device.name, tunnel.stack, device.mtu, remote.address
    );
    let id = if without_options {
        evidence.push_str(". Without Geneve options they would fit");
        ids[3]
    } else if under.device.tunnel.is_some() {
        evidence.push_str(", itself a tunnel");
        ids[1]
    } else if let (true, Some(default)) = (fits_default, by_default) {
        let _ = write!(
            evidence,
            ". It would fit {}, the default route's device, which takes {}",
            default.name, default.mtu
        );
        ids[2]
    } else {
        ids[0]
    };
    let mut fix = vec![set_mtu(namespace, &device.name, fits)];
    fix.extend(guests);
    if under.device.mtu == under.mtu && under.device.tunnel.is_none() {
        fix.push(format!(
            "# or, where every switch on the way carries it: {}",
            set_mtu(there, &under.device.name, needs)
        ));
    }
    found.add(id, Some(namespace), Some(&device.name), evidence, fix);
}

/// A VLAN device on the tunnel, or on the bridge that the tunnel is a port of: its frames carry a tag through the
/// tunnel.
fn tagged_through<'a>(namespace: &'a Namespace, tunnel: &Device) -> Option<&'a Device> {
    let below = |device: &&Device| {
        device.lower == Some(tunnel.index)
            || (tunnel.controller.is_some() && device.lower == tunnel.controller)
    };
    namespace
        .devices
        .iter()
        .filter(|device| device.kind == "vlan" && device.up)
        .filter(below)
        .max_by_key(|device| device.mtu)
}

fn inner_vlan(
    namespace: &Namespace,
    device: &Device,
    (tagged, remote, under): (&Device, &Remote, &Underlay<'_>),
    found: &mut Findings<'_>,
) {
    let Some(tunnel) = &device.tunnel else { return };
    let Some(path) = path(&format!("{}+vlan", tunnel.stack), remote.address) else {
        return;
    };
    let (Ok(needs), Ok(fits)) = (path.underlay_mtu(tagged.mtu), path.guest_mtu(under.mtu)) else {
        return;
    };
    if needs <= under.mtu || found.has("inner-vlan-not-counted", &tagged.name) {
        return;
    }
    found.add(
        "inner-vlan-not-counted",
        Some(namespace),
        Some(&tagged.name),
        format!(
            "{} sends up to {} bytes with a VLAN tag through {} ({}): {needs} bytes, and {} takes {}. Untagged they \
             would fit",
            tagged.name, tagged.mtu, device.name, tunnel.stack, under.device.name, under.mtu
        ),
        vec![set_mtu(namespace, &tagged.name, fits)],
    );
}

fn smaller(
    namespace: &Namespace,
    device: &Device,
    (under, path, fits): (&Underlay<'_>, &Path, u32),
    found: &mut Findings<'_>,
) {
    let ids = ["overhead-counted-twice", "tunnel-smaller-than-fits"];
    if ids.iter().any(|id| found.has(id, &device.name)) {
        return;
    }
    let overhead = under.mtu - fits;
    let share = |mtu: u32| path.frame(mtu, mtu).tcp_goodput_share(IpVersion::Ipv4);
    let cost = (1.0 - share(device.mtu) / share(fits)) * 100.0;
    let twice = device.mtu + 2 * overhead == under.mtu;
    let mut evidence = format!(
        "{} has an MTU of {}, and {fits} would fit {} ({} bytes, overhead {overhead}): {cost:.1} % less of the line's \
         rate for TCP, and {:.1} % more packets",
        device.name,
        device.mtu,
        under.device.name,
        under.mtu,
        (f64::from(fits - 40) / f64::from(device.mtu - 40) - 1.0) * 100.0
    );
    if twice {
        evidence.push_str(". The difference is the overhead once more");
    }
    found.add(
        ids[usize::from(!twice)],
        Some(namespace),
        Some(&device.name),
        evidence,
        vec![set_mtu(namespace, &device.name, fits)],
    );
}

fn one_way_checksum(namespace: &Namespace, device: &Device, found: &mut Findings<'_>) {
    let Some((sends, takes)) = device
        .tunnel
        .as_ref()
        .and_then(|tunnel| tunnel.zero_checksum6)
    else {
        return;
    };
    let over_ipv6 = device
        .tunnel
        .iter()
        .flat_map(|tunnel| &tunnel.remotes)
        .any(|remote| remote.address.is_ipv6());
    if !over_ipv6 || sends == takes {
        return;
    }
    let (settings, effect) = if sends {
        (
            "sends without an outer UDP checksum, and drops packets without one",
            "two hosts with these settings drop each other's packets",
        )
    } else {
        (
            "accepts packets without an outer UDP checksum, and sends with one",
            "two hosts with these settings compute checksums that neither requires",
        )
    };
    found.add(
        "zero-checksum6-one-way",
        Some(namespace),
        Some(&device.name),
        format!("{} {settings}: {effect} (RFC 6935)", device.name),
        vec![format!(
            "# make it anew with both: ip link add {} type {} ... udp6zerocsumtx udp6zerocsumrx",
            device.name, device.kind
        )],
    );
}
