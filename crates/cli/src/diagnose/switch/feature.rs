//! The device features that are tried, and their names in each program.

/// A feature of a device (segmentation, receive offload, checksums) with its names in the kernel, ethtool,
/// systemd.link(5) and netplan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::diagnose) struct Feature {
    pub(in crate::diagnose) kernel: &'static str,
    pub(in crate::diagnose) ethtool: &'static str,
    /// The option of a .link file; empty: there is none.
    pub(in crate::diagnose) link: &'static str,
    /// The key of netplan; empty: there is none.
    pub(in crate::diagnose) netplan: &'static str,
}

impl Feature {
    const fn new(
        kernel: &'static str,
        ethtool: &'static str,
        [link, netplan]: [&'static str; 2],
    ) -> Self {
        Self {
            kernel,
            ethtool,
            link,
            netplan,
        }
    }
}

/// Names of transmit checksum offload in systemd.link(5) and netplan.
const SUM: [&str; 2] = ["TransmitChecksumOffload", "transmit-checksum-offload"];
const ANY_SUM: Feature = Feature::new("tx-checksum-ip-generic", "tx", SUM);
const SUM_IPV4: Feature = Feature::new("tx-checksum-ipv4", "tx", SUM);
const SUM_IPV6: Feature = Feature::new("tx-checksum-ipv6", "tx", SUM);
const GSO: Feature = Feature::new(
    "tx-generic-segmentation",
    "gso",
    ["GenericSegmentationOffload", "generic-segmentation-offload"],
);
/// TCP segmentation offload.
pub(in crate::diagnose) const TSO: Feature = Feature::new(
    "tx-tcp-segmentation",
    "tso",
    ["TCPSegmentationOffload", "tcp-segmentation-offload"],
);
const TSO_IPV6: Feature = Feature::new(
    "tx-tcp6-segmentation",
    "tx-tcp6-segmentation",
    ["TCP6SegmentationOffload", "tcp6-segmentation-offload"],
);
/// Features of a sending device that matter most, for TCP over IPv4.
pub(super) const SENDING: [Feature; 4] = [ANY_SUM, SUM_IPV4, TSO, GSO];
/// The same for TCP over IPv6, which has features of its own.
pub(super) const SENDING_IPV6: [Feature; 4] = [ANY_SUM, SUM_IPV6, TSO_IPV6, GSO];
/// The same below a tunnel.
pub(super) const SENDING_IN_TUNNEL: [Feature; 5] = [ANY_SUM, SUM_IPV4, SUM_IPV6, TSO, GSO];
/// The same below a tunnel for TCP over IPv6.
pub(super) const SENDING_IPV6_IN_TUNNEL: [Feature; 5] =
    [ANY_SUM, SUM_IPV4, SUM_IPV6, TSO_IPV6, GSO];
/// Segmentation of tunnel packets on a sending device below a tunnel.
pub(super) const OF_TUNNELS: [Feature; 2] = [
    Feature::new(
        "tx-udp_tnl-segmentation",
        "tx-udp_tnl-segmentation",
        ["", ""],
    ),
    Feature::new(
        "tx-udp_tnl-csum-segmentation",
        "tx-udp_tnl-csum-segmentation",
        ["", ""],
    ),
];
/// Features of a receiving device that matter most.
pub(super) const RECEIVING: [Feature; 2] = [
    Feature::new(
        "rx-checksum",
        "rx",
        ["ReceiveChecksumOffload", "receive-checksum-offload"],
    ),
    Feature::new(
        "rx-gro",
        "gro",
        ["GenericReceiveOffload", "generic-receive-offload"],
    ),
];
/// Further features of a receiving device that join packets.
pub(super) const JOINING: [Feature; 4] = [
    Feature::new(
        "rx-gro-hw",
        "rx-gro-hw",
        ["GenericReceiveOffloadHardware", ""],
    ),
    Feature::new(
        "rx-lro",
        "lro",
        ["LargeReceiveOffload", "large-receive-offload"],
    ),
    Feature::new("rx-gro-list", "rx-gro-list", ["", ""]),
    Feature::new("rx-udp-gro-forwarding", "rx-udp-gro-forwarding", ["", ""]),
];
