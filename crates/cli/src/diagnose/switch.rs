//! What is tried, one at a time: options of the load, and settings of the devices of the path.

use wirecost_control::experiment::{Looked, PathDevice};
use wirecost_model::load::Load;

/// Features that decide how packets are cut, joined and summed, by the kernel's names, and what ethtool, systemd.link(5) and
/// netplan call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Feature {
    pub(super) kernel: &'static str,
    pub(super) ethtool: &'static str,
    /// The option of a .link file; empty where there is none.
    pub(super) link: &'static str,
    /// The key of netplan; empty where there is none.
    pub(super) netplan: &'static str,
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
const SENDING: [Feature; 4] = [
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
const OF_TUNNELS: [Feature; 2] = [
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
const RECEIVING: [Feature; 2] = [
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
const JOINING: [Feature; 4] = [
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

/// A device of the path on one of the hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    /// `a` or `b`.
    pub(super) host: char,
    /// Whether it has the measured address.
    pub(super) measured: bool,
    pub(super) device: PathDevice,
}

impl At {
    /// `b`, or `vxlan0 of b`.
    fn words(&self) -> String {
        if self.measured {
            self.host.to_string()
        } else {
            format!("{} of {}", self.device.label, self.host)
        }
    }

    /// The start of a level that changes it.
    fn level(&self) -> String {
        let host = self.host;
        if self.measured {
            return format!("on: {host}");
        }
        let name = serde_json::Value::from(self.device.name.as_str());
        format!("on: {host}, device: {name}")
    }

    /// Its name in its own namespace.
    pub(super) fn name(&self) -> &str {
        let name = &self.device.name;
        name.rsplit('/').next().unwrap_or(name)
    }
}

/// One thing that is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Switch {
    /// Four connections instead of one.
    FourStreams,
    /// A large socket buffer at both ends.
    LargeBuffers,
    /// Another congestion control at the sender.
    Congestion(String),
    /// Another MTU of both hosts' devices with the measured addresses.
    Mtu(u32),
    /// A feature of a device.
    Offload { at: At, feature: Feature, on: bool },
    /// Packets that a device receives are steered to this many cores of b.
    Steered { at: At, cores: u32 },
    /// As many queues as the device has, and no more than its host has cores.
    Queues { at: At, number: u32 },
}

pub(super) const LARGE: u32 = 16 << 20;

/// What there is to try between these hosts, the most likely first; settings of them only where they may be changed.
pub(super) fn all(looked: &Looked, changes: bool) -> Vec<Switch> {
    let mut all = vec![Switch::FourStreams, Switch::LargeBuffers];
    let others = looked.way(0).congestion.iter().cloned();
    all.extend(others.map(Switch::Congestion));
    if !changes {
        return all;
    }
    all.extend(mtu(looked).map(Switch::Mtu));
    let devices = devices(looked);
    let sends = |at: &At| (at.host == 'a') != at.device.faces_guest;
    // One round for what matters most, one for the rest.
    for rare in [false, true] {
        for at in &devices {
            let features: &[Feature] = match (sends(at), rare) {
                (true, false) => &SENDING,
                (true, true) if at.device.beneath_tunnel => &OF_TUNNELS,
                (true, true) => &[],
                (false, false) => &RECEIVING,
                (false, true) => &JOINING,
            };
            all.extend(features.iter().filter_map(|feature| {
                let now = *at.device.toggles.get(feature.kernel)?;
                Some(Switch::Offload {
                    at: at.clone(),
                    feature: *feature,
                    on: !now,
                })
            }));
        }
        if !rare {
            all.extend(spread(looked, &devices));
        }
    }
    all
}

/// The devices of both paths; what is on both, as a bridge between containers of one machine, is b's.
fn devices(looked: &Looked) -> Vec<At> {
    let of = |host: usize, letter: char| {
        let devices = looked.way(host).devices.iter().enumerate();
        devices.map(move |(number, device)| At {
            host: letter,
            measured: number == 0,
            device: device.clone(),
        })
    };
    let b: Vec<At> = of(1, 'b').collect();
    let is_on_both = |at: &At| {
        let named =
            |other: &&At| other.device.name == at.device.name && at.name() != at.device.name;
        looked.is_one_machine() && b.iter().any(|other| named(&other))
    };
    let a: Vec<At> = of(0, 'a').filter(|at| !is_on_both(at)).collect();
    a.into_iter().chain(b).collect()
}

/// The MTU that both hosts' devices may get, where one of them has another.
fn mtu(looked: &Looked) -> Option<u32> {
    let [a, b] = [0, 1].map(|host| looked.way(host));
    let largest = a.largest_mtu?.min(b.largest_mtu?);
    let differs = |way: &wirecost_control::experiment::HostWay| {
        way.devices
            .first()
            .is_some_and(|device| device.mtu != largest)
    };
    (differs(a) || differs(b)).then_some(largest)
}

/// What spreads the work of receiving over cores of b.
fn spread(looked: &Looked, devices: &[At]) -> Vec<Switch> {
    let cores = looked.cores(1);
    let mut all = Vec::new();
    // With a single core there is nothing to spread over.
    if cores < 2 {
        return all;
    }
    let here = |at: &&At| at.host == 'b' && !at.device.faces_guest && at.name() == at.device.name;
    for at in devices.iter().filter(here) {
        if cores <= 32 {
            let at = at.clone();
            all.push(Switch::Steered { at, cores });
        }
        let number = at.device.queues.map(|(now, most)| (now, most.min(cores)));
        if let Some((now, number)) = number
            && number > now
        {
            let at = at.clone();
            all.push(Switch::Queues { at, number });
        }
    }
    all
}

/// What fits into the time of so many samples for each round, and what is left over.
pub(super) fn fitting(all: Vec<Switch>, samples: usize) -> (Vec<Switch>, Vec<Switch>) {
    let mut all = all;
    // One sample is of the path as it is, and what only the load does is always tried.
    let at_least = all
        .iter()
        .take_while(|switch| switch.level().is_none())
        .count();
    let rest = all.split_off(samples.saturating_sub(1).max(at_least).min(all.len()));
    (all, rest)
}

/// So that a label stays one that a plan takes.
const LABEL: usize = 60;

impl Switch {
    /// In words, as what it changes to.
    pub(super) fn label(&self) -> String {
        let words = match self {
            Self::FourStreams => "4 streams".to_owned(),
            Self::LargeBuffers => "socket buffers of 16 MiB".to_owned(),
            Self::Congestion(name) => format!("congestion control {name}"),
            Self::Mtu(mtu) => format!("an MTU of {mtu} on both"),
            Self::Offload { at, feature, on } => {
                let state = if *on { "on" } else { "off" };
                format!("{} {state} on {}", feature.kernel, at.words())
            }
            Self::Steered { at, cores } => {
                format!("receive steering to {cores} cores on {}", at.words())
            }
            Self::Queues { at, number } => format!("{number} queues on {}", at.words()),
        };
        words
            .chars()
            .take(LABEL)
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// The level of the plan; `None` where it is no setting of a host.
    pub(super) fn level(&self) -> Option<String> {
        let rest = match self {
            Self::FourStreams | Self::LargeBuffers | Self::Congestion(_) => return None,
            Self::Mtu(mtu) => format!("mtu: {mtu}"),
            Self::Offload { at, feature, on } => {
                let state = if *on { "on" } else { "off" };
                let name = feature.kernel;
                format!(
                    "{}, ethtool: {{ underlay: {{ {name}: {state} }} }}",
                    at.level()
                )
            }
            Self::Steered { at, cores } => format!("{}, rps: 0x{}", at.level(), mask(*cores)),
            Self::Queues { at, number } => format!("{}, queues: {number}", at.level()),
        };
        let label = serde_json::Value::from(self.label());
        Some(format!("{{ label: {label}, {rest} }}"))
    }

    /// Whether the kernel does the other with it: a device that does not sum cannot segment either (net/core/dev.c,
    /// `netdev_fix_features`).
    pub(super) fn brings(&self, other: &Self) -> bool {
        let segmenting = ["tx-tcp-segmentation", "tx-generic-segmentation"];
        match (self, other) {
            (
                Self::Offload {
                    at,
                    feature,
                    on: false,
                },
                Self::Offload {
                    at: same,
                    feature: other,
                    on: false,
                },
            ) => {
                at == same
                    && feature.kernel.starts_with("tx-checksum")
                    && segmenting.contains(&other.kernel)
            }
            _ => false,
        }
    }

    /// Changes the load, where it is an option of that.
    pub(super) fn change(&self, load: &mut Load) -> bool {
        match self {
            Self::FourStreams => load.streams = 4,
            Self::LargeBuffers => load.socket_buffer = Some(LARGE),
            Self::Congestion(name) => load.congestion = Some(name.clone()),
            Self::Mtu(_) | Self::Offload { .. } | Self::Steered { .. } | Self::Queues { .. } => {
                return false;
            }
        }
        true
    }
}

/// All of so many cores, at most 32, in hexadecimal digits.
pub(super) fn mask(cores: u32) -> String {
    format!("{:x}", (1_u64 << cores) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, measured: bool) -> At {
        At {
            host: 'a',
            measured,
            device: PathDevice {
                name: name.to_owned(),
                label: "vxlan0 in blue".to_owned(),
                prefix: String::new(),
                mtu: 1450,
                beneath_tunnel: false,
                faces_guest: false,
                toggles: [].into(),
                rx_queues: 1,
                queues: None,
            },
        }
    }

    #[test]
    fn every_level_is_one_that_a_plan_takes() {
        let steered = |name, measured| Switch::Steered {
            at: at(name, measured),
            cores: 32,
        };
        let levels = [
            Switch::Mtu(9000),
            Switch::Offload {
                at: at("/run/netns/blue/vxlan0", false),
                feature: OF_TUNNELS[1],
                on: true,
            },
            steered("eth0", true),
            steered("eth0.7@x", false),
            Switch::Queues {
                at: at("eth0", true),
                number: 4,
            },
        ];
        for level in levels {
            let text = format!(
                "name: x\nnetwork: existing\nhosts: {{ a: local, b: \"netns:b\" }}\nallow_host_changes: on\nvary:\n  switch:\n    \
                 - label: as it is\n    - {}\n",
                level.level().expect("a level")
            );
            let experiment = wirecost_plan::load("plan.yaml", &text);
            let experiment = experiment.unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
            let setting = &experiment.plan.vary[0].levels[1];
            assert_eq!(setting.label, level.label());
            assert!(!setting.is_empty());
        }
    }

    #[test]
    fn what_only_the_load_does_is_tried_however_short_the_time() {
        let all = || vec![Switch::FourStreams, Switch::LargeBuffers, Switch::Mtu(9000)];
        assert_eq!(
            fitting(all(), 0),
            (all()[..2].to_vec(), all()[2..].to_vec())
        );
        assert_eq!(fitting(all(), 4), (all(), vec![]));
    }
}
