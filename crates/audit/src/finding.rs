//! The catalogue of findings about hosts: id, severity, title. docs/check.md has a section for each.

use serde::{Deserialize, Serialize};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Not a fault: it costs performance, or is worth knowing next to a fault.
    Info,
    /// It works, but fails under conditions that the evidence names.
    Warning,
    /// Packets that hosts may send are lost or refused.
    Error,
}

impl Severity {
    /// The severity as a word, for output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A finding on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name in kebab case: one of [`FINDINGS`].
    pub id: &'static str,
    /// Severity, as in the catalogue.
    pub severity: Severity,
    /// The host's name, with the namespace where it is not the host's own.
    pub host: String,
    /// Name of the device; `None`: the finding is about the host.
    pub device: Option<String>,
    /// What was read, with its numbers.
    pub evidence: String,
    /// The commands that fix it, in order; comments (`# ...`) say what has no command.
    pub fix: Vec<String>,
    /// Whether the device is not on the path between the checked hosts. Such a finding does not affect the exit code.
    pub elsewhere: bool,
}

/// A kind of finding, as in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// Stable name in kebab case.
    pub id: &'static str,
    /// Severity of every finding of this kind.
    pub severity: Severity,
    /// One-line title.
    pub title: &'static str,
}

const fn kind(id: &'static str, severity: Severity, title: &'static str) -> FindingKind {
    FindingKind {
        id,
        severity,
        title,
    }
}

use Severity::{Error, Info, Warning};

/// Every kind of finding that [`judge`](crate::judge()) reports.
pub const FINDINGS: &[FindingKind] = &[
    kind(
        "veth-ends-differ",
        Error,
        "the two ends of a veth have different MTUs",
    ),
    kind(
        "bridge-port-smaller",
        Error,
        "a bridge port takes less than what its bridge or another port sends",
    ),
    kind(
        "guest-larger-than-tunnel",
        Error,
        "guests on a bridge send more than its tunnel port takes",
    ),
    kind(
        "bond-member-differs",
        Error,
        "a member of a bond or team has another MTU than the bond",
    ),
    kind(
        "upper-exceeds-lower",
        Error,
        "a device has a larger MTU than its lower device",
    ),
    kind(
        "tunnel-exceeds-underlay",
        Error,
        "a tunnel's packets are larger than what its underlay carries",
    ),
    kind(
        "tunnel-exceeds-tunnel",
        Error,
        "a tunnel inside a tunnel: the inner one does not count the outer one's overhead",
    ),
    kind(
        "tunnel-uses-narrower-device",
        Error,
        "a tunnel is sized for the default route's device, but its packets leave through a smaller one",
    ),
    kind(
        "geneve-options-not-counted",
        Error,
        "a Geneve network's MTU leaves no room for the options that its packets carry",
    ),
    kind(
        "inner-vlan-not-counted",
        Error,
        "tagged frames through a tunnel whose MTU leaves no room for the tag",
    ),
    kind(
        "tunnel-without-route",
        Warning,
        "there is no route to a tunnel's other end",
    ),
    kind(
        "tunnel-smaller-than-fits",
        Info,
        "a tunnel's MTU is smaller than its underlay allows",
    ),
    kind(
        "overhead-counted-twice",
        Info,
        "the overhead of a tunnel was subtracted twice",
    ),
    kind(
        "ipv6-below-1280",
        Error,
        "a device of an IPv6 network has an MTU below 1280",
    ),
    kind(
        "ovs-mtu-request-unmet",
        Warning,
        "an Open vSwitch interface does not have the MTU of its mtu_request",
    ),
    kind(
        "ovn-encap-address-missing",
        Error,
        "OVN's encapsulation address is on no device of the host",
    ),
    kind(
        "ovn-encap-address-elsewhere",
        Warning,
        "OVN's tunnels leave through another device than the one with the encapsulation address",
    ),
    kind(
        "ovn-checksum-one-way",
        Warning,
        "OVN's tunnels have an outer checksum in one direction only",
    ),
    kind(
        "ovn-chassis-missing",
        Error,
        "a host with OVN is not in OVN's southbound database",
    ),
    kind(
        "ovn-tunnel-missing",
        Error,
        "a host of OVN's southbound database to which this one has no tunnel",
    ),
    kind(
        "ovn-named-chassis-missing",
        Warning,
        "OVN's northbound database asks for a host that the southbound one does not have",
    ),
    kind(
        "ovn-announced-mtu-exceeds-path",
        Error,
        "OVN announces an MTU to guests that their network does not carry",
    ),
    kind(
        "ovn-gateway-mtu-exceeds-path",
        Error,
        "the gateway_mtu of an OVN router's port is larger than what is behind the port carries",
    ),
    kind(
        "ovn-gateway-mtu-missing",
        Error,
        "an OVN router has no gateway_mtu towards a network that carries less than its guests send",
    ),
    kind(
        "ovn-gateway-mtu-bypassed",
        Info,
        "gateway_mtu_bypass lets packets that are too large through without an ICMP message",
    ),
    kind(
        "cached-exception",
        Warning,
        "an ICMP too-big message reported a smaller MTU to a destination",
    ),
    kind(
        "route-mtu-locked",
        Warning,
        "a route's MTU is locked: path-MTU discovery is off for it",
    ),
    kind(
        "route-mtu-smaller",
        Info,
        "a route's MTU is smaller than its device's",
    ),
    kind(
        "ipv6-mtu-smaller",
        Info,
        "IPv6 has a smaller MTU on a device than the device itself",
    ),
    kind(
        "pmtu-discovery-off",
        Warning,
        "path-MTU discovery is switched off",
    ),
    kind(
        "min-pmtu-above-device",
        Warning,
        "net.ipv4.route.min_pmtu is larger than a device's MTU: after a too-big message packets are sent without DF",
    ),
    kind(
        "tcp-mtu-probing-off",
        Info,
        "TCP path-MTU probing is off: a PMTU black hole stalls TCP",
    ),
    kind(
        "mss-clamp-hides",
        Info,
        "an MSS clamp hides an MTU fault from TCP; other protocols still meet it",
    ),
    kind(
        "mss-clamp-too-large",
        Warning,
        "a rule sets a TCP segment size that the smallest tunnel does not carry",
    ),
    kind(
        "lro-while-forwarding",
        Error,
        "a device merges received packets (LRO) that are then forwarded",
    ),
    kind(
        "tunnel-segmentation-off",
        Info,
        "a NIC's segmentation offload for tunnels is off",
    ),
    kind(
        "tunnel-checksum-segmentation-off",
        Info,
        "a NIC's segmentation offload for tunnels with an outer checksum is off",
    ),
    kind("gro-off", Info, "GRO is off on a tunnel's underlay device"),
    kind(
        "receive-checksum-off",
        Info,
        "receive checksum offload is off: a core sums up every packet",
    ),
    kind(
        "zero-checksum6-one-way",
        Warning,
        "an IPv6 tunnel's udp6zerocsumtx and udp6zerocsumrx settings differ",
    ),
    kind(
        "one-receive-queue",
        Info,
        "one receive queue and no RPS: one core handles everything that a NIC receives",
    ),
    kind(
        "receive-ring-overruns",
        Warning,
        "a NIC dropped packets because its receive ring was full; the ring can be larger",
    ),
    kind(
        "impairment-qdisc",
        Warning,
        "a qdisc that drops or delays packets on purpose",
    ),
    kind(
        "transmit-queue-zero",
        Warning,
        "a device's queue has no room: packets are dropped as soon as the device is busy",
    ),
];

/// The kind of finding with this id.
pub fn kind_of(id: &str) -> Option<&'static FindingKind> {
    FINDINGS.iter().find(|kind| kind.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kebab_case_and_each_is_there_once() {
        for (at, kind) in FINDINGS.iter().enumerate() {
            assert!(
                kind.id
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(
                FINDINGS[..at].iter().all(|other| other.id != kind.id),
                "{}",
                kind.id
            );
        }
    }
}
