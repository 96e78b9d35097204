//! A tunnel device's own settings: `IFLA_INFO_DATA` (include/uapi/linux/if_link.h, if_tunnel.h).

use std::net::IpAddr;

use super::netlink::Attributes;
use crate::snapshot::Tunnel;

/// What a device of this kind says of itself, and the other ends that it names; `None`: it is no tunnel.
pub(super) fn read(kind: &str, data: Attributes<'_>) -> Option<(Tunnel, Vec<IpAddr>)> {
    let (tunnel, remotes) = match kind {
        "vxlan" => vxlan(data),
        "geneve" => geneve(data),
        "gre" | "gretap" | "ip6gre" | "ip6gretap" => gre(kind, data),
        "ipip" | "sit" | "ip6tnl" => ip(kind, data),
        // Its other ends are told by its own generic netlink family only.
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

fn flag(data: Attributes<'_>, number: u16) -> bool {
    data.u8(number).is_some_and(|value| value != 0)
}

fn vxlan(data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const GROUP: u16 = 2;
    const PORT: u16 = 15;
    const GROUP6: u16 = 16;
    const UDP_CSUM: u16 = 18;
    const ZERO6_TX: u16 = 19;
    const ZERO6_RX: u16 = 20;
    const COLLECT_METADATA: u16 = 25;
    const GPE: u16 = 27;
    let remotes: Vec<_> = [GROUP, GROUP6]
        .into_iter()
        .filter_map(|number| data.address(number))
        .collect();
    let gpe = data.find(GPE).is_some();
    (
        udp(
            if gpe { "vxlan-gpe:ip" } else { "vxlan" }.into(),
            data,
            (PORT, COLLECT_METADATA),
            (UDP_CSUM, ZERO6_TX, ZERO6_RX),
            &remotes,
        ),
        remotes,
    )
}

fn geneve(data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const REMOTE: u16 = 2;
    const PORT: u16 = 5;
    const COLLECT_METADATA: u16 = 6;
    const REMOTE6: u16 = 7;
    const UDP_CSUM: u16 = 8;
    const ZERO6_TX: u16 = 9;
    const ZERO6_RX: u16 = 10;
    let remotes: Vec<_> = [REMOTE, REMOTE6]
        .into_iter()
        .filter_map(|number| data.address(number))
        .collect();
    (
        udp(
            "geneve".into(),
            data,
            (PORT, COLLECT_METADATA),
            (UDP_CSUM, ZERO6_TX, ZERO6_RX),
            &remotes,
        ),
        remotes,
    )
}

fn udp(
    stack: String,
    data: Attributes<'_>,
    (port, metadata): (u16, u16),
    (checksum, zero_tx, zero_rx): (u16, u16, u16),
    remotes: &[IpAddr],
) -> Tunnel {
    let over_ipv6 = remotes.iter().any(IpAddr::is_ipv6);
    let zero6 = (flag(data, zero_tx), flag(data, zero_rx));
    // `metadata` is a byte with vxlan and a flag without content with geneve.
    let external = data
        .find(metadata)
        .is_some_and(|content| content.first().is_none_or(|value| *value != 0));
    Tunnel {
        stack,
        port: data.be16(port).unwrap_or(0),
        udp_checksum: if over_ipv6 {
            !zero6.0
        } else {
            flag(data, checksum)
        },
        external,
        zero_checksum6: over_ipv6.then_some(zero6),
        remotes: Vec::new(),
    }
}

fn gre(kind: &str, data: Attributes<'_>) -> (Tunnel, Vec<IpAddr>) {
    const OFLAGS: u16 = 3;
    const REMOTE: u16 = 7;
    const ENCAP_LIMIT: u16 = 11;
    const FLAGS: u16 = 13;
    const COLLECT_METADATA: u16 = 18;
    // In network byte order (include/uapi/linux/if_tunnel.h).
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

/// `IP6_TNL_F_IGN_ENCAP_LIMIT` not set: the option is sent (include/uapi/linux/ip6_tunnel.h).
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
