//! Configuration of tunnel devices: `IFLA_INFO_DATA` (include/uapi/linux/if_link.h, if_tunnel.h).

use std::net::IpAddr;

use super::attributes::Attributes;
use crate::snapshot::Tunnel;

/// Configuration of a tunnel device, and the remote addresses in it; `None`: this kind is not a tunnel.
pub(super) fn read(kind: &str, data: Attributes<'_>) -> Option<(Tunnel, Vec<IpAddr>)> {
    let (tunnel, remotes) = match kind {
        "vxlan" => vxlan(data),
        "geneve" => geneve(data),
        "gre" | "gretap" | "ip6gre" | "ip6gretap" => gre(kind, data),
        "ipip" | "sit" | "ip6tnl" => ip(kind, data),
        // Its remotes are available from its own generic netlink family only.
        "wireguard" => (
            Tunnel {
                stack: "wireguard".into(),
                ..Tunnel::default()
            },
            Vec::new(),
        ),
        _ => return None,
    };
    let known = remotes
        .into_iter()
        .filter(|address| !address.is_unspecified() && !address.is_multicast());
    Some((tunnel, known.collect()))
}

/// What the route of a tunnel's packets depends on besides their destination (ip-rule(8)).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OuterFlow {
    /// Source address; used only where it is of the same IP version as the remote.
    pub(super) local: Option<IpAddr>,
    /// Index of the device that the tunnel is bound to.
    pub(super) link: Option<u32>,
    /// Firewall mark (fwmark).
    pub(super) mark: Option<u32>,
}

/// The outer route's parameters in a device's configuration.
pub(super) fn outer(kind: &str, data: Attributes<'_>) -> OuterFlow {
    // include/uapi/linux/if_link.h and if_tunnel.h.
    let (locals, link, mark): (&[u16], u16, Option<u16>) = match kind {
        "vxlan" => (&[4, 17], 3, None),
        "gre" | "gretap" | "ip6gre" | "ip6gretap" => (&[6], 1, Some(20)),
        "ipip" | "sit" | "ip6tnl" => (&[2], 1, Some(20)),
        _ => return OuterFlow::default(),
    };
    let mut locals = locals.iter().filter_map(|number| data.address(*number));
    let number = |at: u16| data.u32(at).filter(|&number| number != 0);
    OuterFlow {
        local: locals.find(|address| !address.is_unspecified()),
        link: number(link),
        mark: mark.and_then(number),
    }
}

fn flag(data: Attributes<'_>, number: u16) -> bool {
    data.u8(number).is_some_and(|value| value != 0)
}

/// Attribute numbers of what all tunnels over UDP have.
struct UdpNumbers {
    remote: u16,
    remote6: u16,
    /// IPv6 source address: remotes that are forwarding entries only are of its IP version.
    local6: Option<u16>,
    port: u16,
    metadata: u16,
    checksum: u16,
    zero6_tx: u16,
    zero6_rx: u16,
    /// struct `ifla_vxlan_port_range`, and that of Geneve: both in network byte order.
    source_ports: u16,
}

fn vxlan(data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const GPE: u16 = 27;
    let stack = if data.find(GPE).is_some() {
        "vxlan-gpe:ip"
    } else {
        "vxlan"
    };
    let numbers = UdpNumbers {
        remote: 2,
        remote6: 16,
        local6: Some(17),
        port: 15,
        metadata: 25,
        checksum: 18,
        zero6_tx: 19,
        zero6_rx: 20,
        source_ports: 10,
    };
    udp(stack, data, &numbers)
}

fn geneve(data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    let numbers = UdpNumbers {
        remote: 2,
        remote6: 7,
        local6: None,
        port: 5,
        metadata: 6,
        checksum: 8,
        zero6_tx: 9,
        zero6_rx: 10,
        source_ports: 15,
    };
    udp("geneve", data, &numbers)
}

fn udp(stack: &str, data: Attributes<'_>, numbers: &UdpNumbers) -> (Tunnel, Vec<IpAddr>) {
    let remotes: Vec<_> = [numbers.remote, numbers.remote6]
        .into_iter()
        .filter_map(|number| data.address(number))
        .collect();
    let local = numbers.local6.and_then(|number| data.address(number));
    let over_ipv6 = remotes.iter().chain(&local).any(IpAddr::is_ipv6);
    let zero6 = (flag(data, numbers.zero6_tx), flag(data, numbers.zero6_rx));
    // One byte for VXLAN, a flag without content for Geneve.
    let external = data
        .find(numbers.metadata)
        .is_some_and(|content| content.first().is_none_or(|value| *value != 0));
    let tunnel = Tunnel {
        stack: stack.to_owned(),
        port: data.be16(numbers.port).unwrap_or(0),
        source_ports: data.find(numbers.source_ports).and_then(source_ports),
        udp_checksum: if over_ipv6 {
            !zero6.0
        } else {
            flag(data, numbers.checksum)
        },
        external,
        zero_checksum6: over_ipv6.then_some(zero6),
        ..Tunnel::default()
    };
    (tunnel, remotes)
}

/// First and last source port. `None` for 0 to 0: no range of its own. The upper end of the range is never used
/// (include/net/udp.h, `udp_flow_src_port`).
fn source_ports(range: &[u8]) -> Option<(u16, u16)> {
    let bytes: [u8; 4] = range.try_into().ok()?;
    let (low, high) = (
        u16::from_be_bytes([bytes[0], bytes[1]]),
        u16::from_be_bytes([bytes[2], bytes[3]]),
    );
    (low > 0 && high > low).then(|| (low, high - 1))
}

fn gre(kind: &str, data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const OFLAGS: u16 = 3;
    const REMOTE: u16 = 7;
    const ENCAP_LIMIT: u16 = 11;
    const FLAGS: u16 = 13;
    const COLLECT_METADATA: u16 = 18;
    // Flags in network byte order (include/uapi/linux/if_tunnel.h).
    const WORDS: [(u16, &str); 3] = [(0x8000, "csum"), (0x2000, "key"), (0x1000, "seq")];
    let flags = data.be16(OFLAGS).unwrap_or(0);
    let mut words: Vec<&str> = WORDS
        .into_iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, word)| word)
        .collect();
    if kind.starts_with("ip6") && limits(data, FLAGS, ENCAP_LIMIT) {
        words.push("encaplimit");
    }
    let name = if kind.ends_with("tap") {
        "gretap"
    } else {
        "gre"
    };
    let tunnel = Tunnel {
        stack: with(name, &words),
        external: data.find(COLLECT_METADATA).is_some(),
        ..Tunnel::default()
    };
    (tunnel, data.address(REMOTE).into_iter().collect())
}

fn ip(kind: &str, data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const REMOTE: u16 = 3;
    const ENCAP_LIMIT: u16 = 6;
    const FLAGS: u16 = 8;
    const COLLECT_METADATA: u16 = 19;
    let limit: &[&str] = if kind == "ip6tnl" && limits(data, FLAGS, ENCAP_LIMIT) {
        &["encaplimit"]
    } else {
        &[]
    };
    let tunnel = Tunnel {
        stack: with("ipip", limit),
        external: data.find(COLLECT_METADATA).is_some(),
        ..Tunnel::default()
    };
    (tunnel, data.address(REMOTE).into_iter().collect())
}

/// Whether packets carry the tunnel encapsulation limit option: `IP6_TNL_F_IGN_ENCAP_LIMIT` is not set
/// (include/uapi/linux/ip6_tunnel.h).
fn limits(data: Attributes<'_>, flags: u16, limit: u16) -> bool {
    const IGNORE: u32 = 1;
    data.u32(flags).is_none_or(|flags| flags & IGNORE == 0) && data.u8(limit).is_some()
}

fn with(name: &str, words: &[&str]) -> String {
    if words.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{}", words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use crate::gather::attributes::attribute;

    #[test]
    fn a_vxlan_without_a_remote_of_its_own_is_over_the_ip_version_of_its_source() {
        // IFLA_VXLAN_UDP_CSUM, which IPv6 has no use for, and IFLA_VXLAN_UDP_ZERO_CSUM6_TX.
        let checksums = [attribute(18, &[1]), attribute(19, &[1])].concat();
        let over_ipv4 = vxlan(Attributes(&checksums)).0;
        assert_eq!(
            (over_ipv4.udp_checksum, over_ipv4.zero_checksum6),
            (true, None)
        );
        let local6 = attribute(17, &Ipv6Addr::LOCALHOST.octets());
        let over_ipv6 = vxlan(Attributes(&[local6, checksums].concat())).0;
        assert_eq!(
            (over_ipv6.udp_checksum, over_ipv6.zero_checksum6),
            (false, Some((true, false)))
        );
    }
}
