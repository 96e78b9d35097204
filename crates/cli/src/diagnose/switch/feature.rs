//! The features of devices that are tried, and what each program calls them.

/// Features that decide how packets are cut, joined and summed, by the kernel's names, and what ethtool, systemd.link(5) and
/// netplan call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::diagnose) struct Feature {
    pub(in crate::diagnose) kernel: &'static str,
    pub(in crate::diagnose) ethtool: &'static str,
    /// The option of a .link file; empty where there is none.
    pub(in crate::diagnose) link: &'static str,
    /// The key of netplan; empty where there is none.
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

const SUM: [&str; 2] = ["TransmitChecksumOffload", "transmit-checksum-offload"];
/// Of a device that sends: first those that matter most, then those of tunnels.
pub(super) const SENDING: [Feature; 4] = [
    Feature::new("tx-checksum-ip-generic", "tx", SUM),
    Feature::new("tx-checksum-ipv4", "tx", SUM),
    Feature::new(
        "tx-tcp-segmentation",
        "tso",
        ["TCPSegmentationOffload", "tcp-segmentation-offload"],
    ),
    Feature::new(
        "tx-generic-segmentation",
        "gso",
        ["GenericSegmentationOffload", "generic-segmentation-offload"],
    ),
];
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
/// Of a device that receives, in the same way.
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
