//! A fault's network as commands of `ip` and `sysctl`, in the order in which they are to be run.

use std::net::IpAddr;

use crate::fault::{EqualPaths, Fault, Namespace, Vxlan};
use crate::rules::{devices_of, end};

/// Beyond what the kernel gives by itself.
const FIRST_INDEX: usize = 100;

/// The kernel tells bridges and qdiscs of a carrier a moment later, and who looked for a neighbour meanwhile, in vain,
/// asks again after a second only. An IPv6 address answers once it has its local route (net/ipv6/addrconf.c,
/// `addrconf_dad_work`); a fault may have taken that away, so that it is not waited for without end.
const READY: &str = "set +x
tries=0
while ip -br link show type veth | grep -E ' (DOWN|LOWERLAYERDOWN) ' >&2; do
    tries=$((tries + 1))
    [ $tries -lt 500 ]
    sleep 0.01
done
tries=0
for address in $(ip -6 -o address show up scope global | sed 's,.* inet6 ,,; s,[/ ].*,,'); do
    until ip -6 route show table all type local | grep -q \"^local $address dev \"; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || break
        sleep 0.01
    done
done
ip neigh flush all 2>/dev/null";

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
    let wires = fault
        .wires
        .iter()
        .map(|wire| (wire.ends.clone(), wire.mtus.unwrap_or([fault.mtu; 2])));
    let members = fault.equal_paths.iter().flat_map(|paths| {
        (0..paths.members).map(|number| {
            let end = |router: &String| format!("{router}.m{number}");
            (paths.between.each_ref().map(end), [fault.mtu; 2])
        })
    });
    let wires = wires.chain(members).enumerate();
    outside.extend(wires.filter_map(|(number, (ends, mtus))| veth(number, &ends, mtus)));
    let inside = fault.namespaces.iter().map(|(name, namespace)| Step {
        at: Some(name),
        script: settle(fault, name, namespace).join("\n"),
    });
    let deeds = fault.fault.iter().map(|deed| Step {
        at: Some(&deed.at),
        script: deed.run.clone(),
    });
    let ready = fault.namespaces.keys().map(|name| Step {
        at: Some(name),
        script: READY.into(),
    });
    std::iter::once(Step {
        at: None,
        script: outside.join("\n"),
    })
    .chain(inside)
    .chain(deeds)
    .chain(ready)
    .collect()
}

/// The two ends get different numbers: where they have the same in their namespaces, the kernel takes the device for no
/// virtual one and tells a bridge of its carrier a second later (net/core/link_watch.c, `linkwatch_urgent_event`).
fn veth(number: usize, ends: &[String; 2], mtus: [u32; 2]) -> Option<String> {
    let (one, other) = (end(&ends[0])?, end(&ends[1])?);
    let index = FIRST_INDEX + 2 * number;
    Some(format!(
        "ip link add {} index {index} mtu {} netns {} type veth peer name {} index {} mtu {} netns {}",
        one.1,
        mtus[0],
        one.0,
        other.1,
        index + 1,
        mtus[1],
        other.0
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
    lines.extend(namespace.devices.values().flatten().cloned());
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
    let members = fault.equal_paths.iter().filter_map(|paths| {
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
