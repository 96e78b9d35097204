//! OVN on a host: its encapsulation address, outer checksums in both directions, and its registration.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::{Findings, logical};
use crate::snapshot::{Chassis, Device, HostStack, Namespace, Ovs, OvsInterface};

/// Default of `ovn-encap-csum`, the checksum that ovn-controller asks other chassis for (ovn-controller(8)).
const CHECKSUM_BY_DEFAULT: &str = "true";

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    let (Some(ovs), Some(namespace)) = (&stack.ovs, stack.namespaces.first()) else {
        return;
    };
    if !ovs.is_ovn() {
        return;
    }
    let tunnels: Vec<&OvsInterface> = ovs
        .bridges
        .iter()
        .flat_map(|bridge| &bridge.interfaces)
        // Tunnels that ovn-controller made have names that begin with `ovn` (`controller/encaps.c`).
        .filter(|interface| interface.is_tunnel() && interface.name.starts_with("ovn"))
        .collect();
    for address in addresses(ovs) {
        match device_with(namespace, address) {
            None => missing(namespace, (ovs, address), &tunnels, found),
            Some(device) => elsewhere(namespace, (device, address), &tunnels, found),
        }
    }
    checksums(namespace, ovs, &tunnels, found);
    registered(namespace, ovs, &tunnels, found);
    logical::judge(namespace, ovs, &tunnels, found);
}

/// The addresses in `ovn-encap-ip`; later versions accept several.
fn addresses(ovs: &Ovs) -> impl Iterator<Item = IpAddr> {
    let written = ovs.external_ids.get("ovn-encap-ip");
    written
        .into_iter()
        .flat_map(|all| all.split(','))
        .filter_map(|one| one.trim().parse().ok())
}

fn device_with(namespace: &Namespace, address: IpAddr) -> Option<&Device> {
    let mut devices = namespace.devices.iter();
    devices.find(|device| device.addresses.contains(&address))
}

/// The device that packets to a tunnel's remote leave through.
fn leaves<'a>(namespace: &'a Namespace, tunnel: &OvsInterface) -> Option<&'a Device> {
    let index = tunnel.remote.as_ref()?.device?;
    namespace
        .devices
        .iter()
        .find(|device| device.index == index)
}

fn set(key: &str, value: &str) -> String {
    format!("ovs-vsctl set open_vswitch . external-ids:{key}={value}")
}

fn missing(
    namespace: &Namespace,
    (ovs, address): (&Ovs, IpAddr),
    tunnels: &[&OvsInterface],
    found: &mut Findings<'_>,
) {
    let mut leaving = tunnels
        .iter()
        .filter_map(|tunnel| leaves(namespace, tunnel));
    let instead = leaving.find_map(|device| {
        let mut own = device.addresses.iter();
        let fits = own.find(|own| own.is_ipv4() == address.is_ipv4());
        Some((device, fits?))
    });
    let mut evidence = format!(
        "the others send their tunnels to {address} (ovn-encap-ip of {}), which no device here has",
        ovs.external_ids
            .get("system-id")
            .map_or("this host", String::as_str)
    );
    let fix = match instead {
        Some((device, own)) => {
            // Writing to a string cannot fail.
            let _ = write!(
                evidence,
                ". This host's own tunnels leave through {}, which has {own}",
                device.name
            );
            vec![set("ovn-encap-ip", &own.to_string())]
        }
        None => vec![format!(
            "ip address add {address}/24 dev DEVICE # or another address of this host: {}",
            set("ovn-encap-ip", "ADDRESS")
        )],
    };
    let fix = fix
        .into_iter()
        .map(|command| namespace.enter.command(&command))
        .collect();
    found.add(
        "ovn-encap-address-missing",
        Some(namespace),
        None,
        evidence,
        fix,
    );
}

fn elsewhere(
    namespace: &Namespace,
    (device, address): (&Device, IpAddr),
    tunnels: &[&OvsInterface],
    found: &mut Findings<'_>,
) {
    // A loopback address is announced by a routing protocol; packets leave through any device.
    if device.loopback {
        return;
    }
    let mut others = tunnels.iter().filter_map(|tunnel| {
        let leaving = leaves(namespace, tunnel).filter(|leaving| leaving.index != device.index)?;
        Some((tunnel, leaving))
    });
    let Some((tunnel, leaving)) = others.next() else {
        return;
    };
    let remote = tunnel.remote.as_ref().map(|remote| remote.address);
    let remote = remote.map_or_else(String::new, |remote| remote.to_string());
    let own = leaving
        .addresses
        .iter()
        .find(|own| own.is_ipv4() == address.is_ipv4());
    let fix = match own {
        Some(own) => set("ovn-encap-ip", &own.to_string()),
        None => format!("ip route add {remote} dev {}", device.name),
    };
    found.add(
        "ovn-encap-address-elsewhere",
        Some(namespace),
        Some(&leaving.name),
        format!(
            "ovn-encap-ip {address} is on {} (MTU {}), and packets of {} to {remote} leave through {} (MTU {}): that \
             device's MTU and offloads count",
            device.name, device.mtu, tunnel.name, leaving.name, leaving.mtu
        ),
        vec![namespace.enter.command(&fix)],
    );
}

fn checksums(
    namespace: &Namespace,
    ovs: &Ovs,
    tunnels: &[&OvsInterface],
    found: &mut Findings<'_>,
) {
    let own = ovs.external_ids.get("ovn-encap-csum");
    let asks = own.map_or(CHECKSUM_BY_DEFAULT, String::as_str) == "true";
    // Without the option Open vSwitch computes no checksum (ovs-vswitchd.conf.db(5), `csum`).
    let sends = |tunnel: &OvsInterface| tunnel.options.get("csum").is_some_and(|on| on == "true");
    let Some(tunnel) = tunnels.iter().find(|tunnel| sends(tunnel) != asks) else {
        return;
    };
    let word = |on: bool| if on { "with" } else { "without" };
    let remote = tunnel.options.get("remote_ip");
    let wanted = (!asks).to_string();
    found.add(
        "ovn-checksum-one-way",
        Some(namespace),
        Some(&tunnel.name),
        format!(
            "other hosts send to this one {} an outer checksum, as its ovn-encap-csum asks; it sends {} one to {}, \
             as the ovn-encap-csum there asks",
            word(asks),
            word(!asks),
            remote.map_or("the other end", String::as_str)
        ),
        vec![format!(
            "{} # or the other value at the other host",
            namespace.enter.command(&set("ovn-encap-csum", &wanted))
        )],
    );
}

const RESTART: &str = "systemctl restart ovn-controller";
const LOG: &str = "# and see what it logs: /var/log/ovn/ovn-controller.log";

fn registered(
    namespace: &Namespace,
    ovs: &Ovs,
    tunnels: &[&OvsInterface],
    found: &mut Findings<'_>,
) {
    let (Some(known), Some(name)) = (&ovs.chassis, ovs.external_ids.get("system-id")) else {
        return;
    };
    let fix = || vec![namespace.enter.command(RESTART), LOG.to_owned()];
    if let Some(own) = known.iter().find(|host| host.name == *name) {
        let without: Vec<String> = known
            .iter()
            .filter(|other| wants_tunnel(own, other) && !has_tunnel(other, tunnels))
            .map(|other| format!("{} ({})", other.name, listed(&other.addresses)))
            .collect();
        if !without.is_empty() {
            found.add(
                "ovn-tunnel-missing",
                Some(namespace),
                None,
                format!(
                    "OVN's southbound database has {}, and this host has no tunnel there: what its guests send to guests \
                     there is dropped",
                    without.join(", ")
                ),
                fix(),
            );
        }
        return;
    }
    let there: Vec<&str> = known.iter().map(|host| host.name.as_str()).collect();
    let there = match &there[..] {
        [] => "no host at all".to_owned(),
        there => there.join(", "),
    };
    found.add(
        "ovn-chassis-missing",
        Some(namespace),
        None,
        format!(
            "OVN's southbound database does not have this host ({name}), so no other makes a tunnel to it; it has {there}"
        ),
        fix(),
    );
}

/// Whether ovn-controller makes a tunnel to `other` (`controller/encaps.c`, `chassis_tzones_match` and `encaps_run`).
fn wants_tunnel(own: &Chassis, other: &Chassis) -> bool {
    let (here, there) = (&own.transport_zones, &other.transport_zones);
    let zone = match (here.is_empty(), there.is_empty()) {
        (true, true) => true,
        _ => here.iter().any(|zone| there.contains(zone)),
    };
    own.name != other.name && !other.elsewhere && !other.addresses.is_empty() && zone
}

/// Whether a tunnel leads to `other`. A tunnel whose remote is set by flow leads to every host.
fn has_tunnel(other: &Chassis, tunnels: &[&OvsInterface]) -> bool {
    let mut ends = tunnels
        .iter()
        .filter_map(|tunnel| tunnel.options.get("remote_ip"));
    ends.any(|end| {
        let address = end.parse();
        end == "flow" || address.is_ok_and(|address| other.addresses.contains(&address))
    })
}

fn listed(addresses: &[IpAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    addresses.join(", ")
}
