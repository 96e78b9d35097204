//! A fault's network as commands of `ip` and `sysctl`, in the order in which they are to be run.

use std::net::IpAddr;

use crate::fault::{EqualPaths, Fault, Namespace, Vxlan};
use crate::rules::{devices_of, end};

/// Commands, one a line, and where they are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    /// A namespace of the fault; `None`: beside all of them.
    pub(crate) at: Option<&'a str>,
    pub(crate) script: String,
}

/// Everything, the fault's own deeds last.
pub(crate) fn steps(fault: &Fault) -> Vec<Step<'_>> {
    let mut outside: Vec<String> = fault
        .namespaces
        .keys()
        .map(|name| format!("ip netns add {name}"))
        .collect();
    for wire in &fault.wires {
        let mtus = wire.mtus.unwrap_or([fault.mtu; 2]);
        outside.extend(veth(&wire.ends, mtus));
    }
    if let Some(EqualPaths {
        between, members, ..
    }) = &fault.equal_paths
    {
        for number in 0..*members {
            let ends = between
                .each_ref()
                .map(|router| format!("{router}.m{number}"));
            outside.extend(veth(&ends, [fault.mtu; 2]));
        }
    }
    let inside = fault.namespaces.iter().map(|(name, namespace)| Step {
        at: Some(name),
        script: settle(fault, name, namespace).join("\n"),
    });
    let deeds = fault.fault.iter().map(|deed| Step {
        at: Some(&deed.at),
        script: deed.run.clone(),
    });
    std::iter::once(Step {
        at: None,
        script: outside.join("\n"),
    })
    .chain(inside)
    .chain(deeds)
    .collect()
}

fn veth(ends: &[String; 2], mtus: [u32; 2]) -> Option<String> {
    let (one, other) = (end(&ends[0])?, end(&ends[1])?);
    Some(format!(
        "ip link add {} mtu {} netns {} type veth peer name {} mtu {} netns {}",
        one.1, mtus[0], one.0, other.1, mtus[1], other.0
    ))
}

/// What is done in one namespace once its wires are there.
fn settle(fault: &Fault, name: &str, namespace: &Namespace) -> Vec<String> {
    let mut lines = Vec::new();
    if namespace.forwards {
        // What comes back by another member of equal paths is no forgery.
        for setting in [
            "ipv4.ip_forward=1",
            "ipv6.conf.all.forwarding=1",
            "ipv4.conf.all.rp_filter=0",
            "ipv4.conf.default.rp_filter=0",
        ] {
            lines.push(format!("sysctl -qw net.{setting}"));
        }
    }
    for (bridge, made) in &namespace.bridges {
        let mtu = made
            .mtu
            .map_or_else(String::new, |mtu| format!("mtu {mtu} "));
        lines.push(format!("ip link add {bridge} {mtu}type bridge"));
    }
    lines.extend(
        namespace
            .vxlans
            .iter()
            .map(|(device, made)| vxlan(device, made)),
    );
    for (bridge, made) in &namespace.bridges {
        for port in &made.ports {
            lines.push(format!("ip link set {port} master {bridge}"));
        }
    }
    for (device, addresses) in &namespace.addresses {
        for address in addresses {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            lines.push(format!("ip address add {address} dev {device}{nodad}"));
        }
    }
    let members = fault.equal_paths.iter().flat_map(|paths| {
        let side = paths.between.iter().position(|router| router == name)?;
        Some((0..paths.members).map(move |number| {
            format!(
                "ip address add 10.255.{number}.{}/24 dev m{number}",
                side + 1
            )
        }))
    });
    lines.extend(members.flatten());
    // Frames on the wire and no super-packets: a rule that drops by length would drop those whole.
    for device in ["lo".to_owned()].into_iter().chain(devices_of(fault, name)) {
        lines.push(format!("ip link set {device} gso_max_segs 1 up"));
    }
    lines.extend(
        namespace
            .routes
            .iter()
            .map(|route| format!("ip route add {route}")),
    );
    if let Some(paths) = &fault.equal_paths {
        lines.extend(divided(paths, name));
    }
    lines
}

fn vxlan(device: &str, made: &Vxlan) -> String {
    let Vxlan {
        vni,
        local,
        remote,
        mtu,
        port,
        options,
    } = made;
    // Over IPv6 as the lab has it: without an outer checksum, both ways (RFC 6935).
    let zero = match remote {
        IpAddr::V6(_) if options.is_empty() => "udp6zerocsumtx udp6zerocsumrx",
        _ => options,
    };
    // Without `dev`, or the kernel would not let it be larger than fits.
    format!(
        "ip link add {device} mtu {mtu} type vxlan id {vni} local {local} remote {remote} dstport {port} {zero}"
    )
}

/// The route that divides flows among the members, by ports too (Documentation/networking/ip-sysctl.rst).
fn divided(paths: &EqualPaths, name: &str) -> Vec<String> {
    let Some(side) = paths.between.iter().position(|router| router == name) else {
        return Vec::new();
    };
    let other = 1 - side;
    let hops: Vec<String> = (0..paths.members)
        .map(|number| format!("nexthop via 10.255.{number}.{} dev m{number}", other + 1))
        .collect();
    vec![
        "sysctl -qw net.ipv4.fib_multipath_hash_policy=1".into(),
        // Linux 6.11: the same flows take the same members on every machine.
        "sysctl -qw net.ipv4.fib_multipath_hash_seed=1 2>/dev/null || true".into(),
        format!(
            "ip route add {} {}",
            paths.leading_to[other],
            hops.join(" ")
        ),
    ]
}
