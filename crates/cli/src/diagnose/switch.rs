//! What is tried, one at a time: options of the load, and settings of the hosts' devices.

use std::fmt::Write as _;

use wirecost_control::experiment::Looked;
use wirecost_model::load::Load;

/// Features of the sending device and of the receiving one that decide how packets are cut, joined and summed, by the kernel's
/// names, and what ethtool and systemd.link(5) call them.
const SENDING: [Feature; 6] = [
    Feature::new("tx-checksum-ip-generic", "tx", "TransmitChecksumOffload"),
    Feature::new("tx-checksum-ipv4", "tx", "TransmitChecksumOffload"),
    Feature::new("tx-tcp-segmentation", "tso", "TCPSegmentationOffload"),
    Feature::new(
        "tx-generic-segmentation",
        "gso",
        "GenericSegmentationOffload",
    ),
    Feature::new("tx-udp_tnl-segmentation", "tx-udp_tnl-segmentation", ""),
    Feature::new(
        "tx-udp_tnl-csum-segmentation",
        "tx-udp_tnl-csum-segmentation",
        "",
    ),
];
const RECEIVING: [Feature; 6] = [
    Feature::new("rx-checksum", "rx", "ReceiveChecksumOffload"),
    Feature::new("rx-gro", "gro", "GenericReceiveOffload"),
    Feature::new("rx-gro-hw", "rx-gro-hw", "GenericReceiveOffloadHardware"),
    Feature::new("rx-lro", "lro", "LargeReceiveOffload"),
    Feature::new("rx-gro-list", "rx-gro-list", ""),
    Feature::new("rx-udp-gro-forwarding", "rx-udp-gro-forwarding", ""),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Feature {
    kernel: &'static str,
    ethtool: &'static str,
    /// The option of a .link file; empty where there is none.
    link: &'static str,
}

impl Feature {
    const fn new(kernel: &'static str, ethtool: &'static str, link: &'static str) -> Self {
        Self {
            kernel,
            ethtool,
            link,
        }
    }
}

/// One thing that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// Four connections instead of one.
    FourStreams,
    /// A large socket buffer at both ends.
    LargeBuffers,
    /// A feature of host a's or b's device.
    Offload {
        host: char,
        feature: Feature,
        on: bool,
    },
    /// Received packets are steered to this many cores of b.
    Steered { cores: u32 },
}

const LARGE: u32 = 16 << 20;

/// What there is to try between these hosts; settings of them only where they may be changed.
pub(super) fn all(looked: &Looked, changes: bool) -> Vec<Switch> {
    let mut all = vec![Switch::FourStreams, Switch::LargeBuffers];
    if !changes {
        return all;
    }
    for (number, (host, features)) in [('a', SENDING), ('b', RECEIVING)].into_iter().enumerate() {
        let toggles = looked.toggles(number);
        all.extend(features.into_iter().filter_map(|feature| {
            let now = *toggles.get(feature.kernel)?;
            Some(Switch::Offload {
                host,
                feature,
                on: !now,
            })
        }));
    }
    // With a single core there is nothing to steer to.
    let cores = looked.cores(1);
    all.extend((cores > 1 && cores <= 32).then_some(Switch::Steered { cores }));
    all
}

impl Switch {
    /// In words, as what it changes to.
    pub(super) fn label(&self) -> String {
        match self {
            Self::FourStreams => "4 streams".to_owned(),
            Self::LargeBuffers => "socket buffers of 16 MiB".to_owned(),
            Self::Offload { host, feature, on } => {
                let state = if *on { "on" } else { "off" };
                format!("{} {state} on {host}", feature.kernel)
            }
            Self::Steered { cores } => format!("receive steering to {cores} cores on b"),
        }
    }

    /// The level of the plan; `None` where it is no setting of a host.
    pub(super) fn level(&self) -> Option<String> {
        let label = self.label();
        match self {
            Self::FourStreams | Self::LargeBuffers => None,
            Self::Offload { host, feature, on } => {
                let state = if *on { "on" } else { "off" };
                let name = feature.kernel;
                Some(format!(
                    "{{ label: {label}, on: {host}, ethtool: {{ underlay: {{ {name}: {state} }} }} }}"
                ))
            }
            Self::Steered { .. } => Some(format!(
                "{{ label: {label}, on: b, rps: 0x{} }}",
                self.mask()
            )),
        }
    }

    fn mask(&self) -> String {
        match self {
            Self::Steered { cores } => format!("{:x}", (1_u64 << cores) - 1),
            _ => "0".to_owned(),
        }
    }

    /// What it changes of the load.
    pub(super) fn load(&self) -> Option<fn(&mut Load)> {
        match self {
            Self::FourStreams => Some(|load| load.streams = 4),
            Self::LargeBuffers => Some(|load| load.socket_buffer = Some(LARGE)),
            Self::Offload { .. } | Self::Steered { .. } => None,
        }
    }

    /// The commands that make it so now, and for good.
    pub(super) fn commands(&self, looked: &Looked) -> Vec<String> {
        match self {
            Self::FourStreams => {
                vec!["# use several connections, where the application can".to_owned()]
            }
            Self::LargeBuffers => vec![
                format!(
                    "sysctl -w net.ipv4.tcp_rmem='4096 131072 {LARGE}' net.ipv4.tcp_wmem='4096 16384 {LARGE}'"
                ),
                format!(
                    "# for good: /etc/sysctl.d/90-tcp.conf with net.ipv4.tcp_rmem = 4096 131072 {LARGE} and net.ipv4.tcp_wmem = \
                     4096 16384 {LARGE}"
                ),
            ],
            Self::Offload { host, feature, on } => {
                let device = looked.device(usize::from(*host == 'b'));
                let (state, yes) = if *on {
                    ("on", "true")
                } else {
                    ("off", "false")
                };
                let Feature { ethtool, link, .. } = feature;
                let mut commands = vec![format!(
                    "ethtool -K {device} {ethtool} {state}   # on {host}"
                )];
                let mut good = "# for good: ".to_owned();
                if !link.is_empty() {
                    // Writing to a string does not fail.
                    let _ = write!(
                        good,
                        "systemd-networkd and udev: {link}={yes} in [Link] of /etc/systemd/network/10-{device}.link (with [Match] \
                         OriginalName={device}); "
                    );
                }
                let _ = write!(
                    good,
                    "NetworkManager: nmcli connection modify CONNECTION ethtool.feature-{ethtool} {state}"
                );
                commands.push(good);
                commands
            }
            Self::Steered { .. } => {
                let device = looked.device(1);
                let mask = self.mask();
                vec![
                    format!(
                        "for q in /sys/class/net/{device}/queues/rx-*; do echo {mask} >$q/rps_cpus; done   # on b"
                    ),
                    format!(
                        "# for good: udev: ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", ATTR{{queues/rx-0/rps_cpus}}=\"{mask}\""
                    ),
                ]
            }
        }
    }
}
