//! The changes that are tried, one at a time: options of the load, and settings of the path's devices.

mod candidates;
mod feature;

use wirecost_control::experiment::PathDevice;
use wirecost_model::load::Load;

use self::feature::Feature;

pub(super) use self::candidates::all;
#[cfg(test)]
pub(super) use self::feature::TSO;

/// A device of the path on one of the hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostDevice {
    /// `a` or `b`.
    pub(super) host: char,
    /// Whether the device has the data-plane address.
    pub(super) measured: bool,
    pub(super) device: PathDevice,
}

impl HostDevice {
    /// The device in words: `b` where it has the data-plane address, else `vxlan0 of b`.
    fn words(&self) -> String {
        if self.measured {
            self.host.to_string()
        } else {
            format!("{} of {}", self.device.label, self.host)
        }
    }

    /// The start of a plan's level that changes the device.
    fn level(&self) -> String {
        let host = self.host;
        if self.measured {
            return format!("on: {host}");
        }
        let name = serde_json::Value::from(self.device.name.as_str());
        format!("on: {host}, device: {name}")
    }

    /// The device's name in its own namespace.
    pub(super) fn name(&self) -> &str {
        let name = &self.device.name;
        name.rsplit('/').next().unwrap_or(name)
    }
}

/// One change that is tried, or one comparison that is measured in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Switch {
    /// Four connections instead of one.
    FourStreams,
    /// Socket buffers of [`LARGE`] bytes at both ends.
    LargeBuffers,
    /// Another congestion control at the sender.
    Congestion(String),
    /// Host b sends. No change, but a comparison.
    OtherDirection,
    /// Messages of [`SMALL`] bytes. No change, but a comparison.
    SmallMessages,
    /// Another MTU, bytes, of both hosts' devices with the data-plane addresses.
    Mtu(u32),
    /// A feature (ethtool -k) of a device, switched on or off.
    Offload {
        at: HostDevice,
        feature: Feature,
        on: bool,
    },
    /// Receive steering (RPS) of a device to these cores of host b.
    Steered { at: HostDevice, cores: Vec<u32> },
    /// More queues of a device: as many as it can have, but no more than its host has cores.
    Queues { at: HostDevice, number: u32 },
}

/// Size of large socket buffers, bytes.
pub(super) const LARGE: u32 = 16 << 20;

/// Size of small messages, bytes. Larger ones than the load's 128 KiB are not compared: calls of the kernel hardly
/// matter at that size.
const SMALL: u32 = 4 << 10;

/// Longest label in characters, which a plan's levels accept.
const LABEL: usize = 60;

impl Switch {
    /// The label of the level: what the change sets, in words.
    pub(super) fn label(&self) -> String {
        let words = match self {
            Self::FourStreams => "4 streams".to_owned(),
            Self::LargeBuffers => "socket buffers of 16 MiB".to_owned(),
            Self::Congestion(name) => format!("congestion control {name}"),
            Self::OtherDirection => "the other direction".to_owned(),
            Self::SmallMessages => format!("messages of {} KiB", SMALL >> 10),
            Self::Mtu(mtu) => format!("an MTU of {mtu} on both"),
            Self::Offload { at, feature, on } => {
                let state = if *on { "on" } else { "off" };
                format!("{} {state} on {}", feature.kernel, at.words())
            }
            Self::Steered { at, cores } => {
                let number = cores.len();
                format!("receive steering to {number} cores on {}", at.words())
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

    /// The level of the plan; `None` where the change is an option of the load and not a setting of a host.
    pub(super) fn level(&self) -> Option<String> {
        let rest = match self {
            Self::FourStreams
            | Self::LargeBuffers
            | Self::Congestion(_)
            | Self::OtherDirection
            | Self::SmallMessages => return None,
            Self::Mtu(mtu) => format!("mtu: {mtu}"),
            Self::Offload { at, feature, on } => {
                let state = if *on { "on" } else { "off" };
                let name = feature.kernel;
                format!(
                    "{}, ethtool: {{ underlay: {{ {name}: {state} }} }}",
                    at.level()
                )
            }
            Self::Steered { at, cores } => format!("{}, rps: 0x{}", at.level(), mask(cores)),
            Self::Queues { at, number } => format!("{}, queues: {number}", at.level()),
        };
        let label = serde_json::Value::from(self.label());
        Some(format!("{{ label: {label}, {rest} }}"))
    }

    /// Whether it is something that can be changed permanently, and no comparison.
    pub(super) const fn is_change(&self) -> bool {
        !matches!(self, Self::OtherDirection | Self::SmallMessages)
    }

    /// Whether the kernel makes the other change along with this one: a device without transmit checksum offload cannot
    /// have segmentation offload either (net/core/dev.c, `netdev_fix_features`).
    pub(super) fn brings(&self, other: &Self) -> bool {
        let segmenting = [
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-generic-segmentation",
        ];
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

    /// Changes the load, where the change is an option of the load; whether it is.
    pub(super) fn change(&self, load: &mut Load) -> bool {
        match self {
            Self::FourStreams => load.streams = 4,
            Self::LargeBuffers => load.socket_buffer = Some(LARGE),
            Self::Congestion(name) => load.congestion = Some(name.clone()),
            Self::OtherDirection => load.direction = load.direction.reversed(),
            Self::SmallMessages => load.request = SMALL,
            Self::Mtu(_) | Self::Offload { .. } | Self::Steered { .. } | Self::Queues { .. } => {
                return false;
            }
        }
        true
    }
}

/// Cores that a mask without commas can have (rps_cpus).
const MASK_BITS: u32 = 32;

/// A CPU mask of cores below [`MASK_BITS`], in hexadecimal digits.
pub(super) fn mask(cores: &[u32]) -> String {
    let mask = cores.iter().fold(0_u32, |mask, core| mask | (1 << core));
    format!("{mask:x}")
}

#[cfg(test)]
pub(super) mod tests {
    use wirecost_model::load::{Direction, Workload};

    use super::feature::OF_TUNNELS;
    use super::*;

    pub(in crate::diagnose) fn at(name: &str, measured: bool) -> HostDevice {
        HostDevice {
            host: 'a',
            measured,
            device: PathDevice {
                name: name.to_owned(),
                label: "vxlan0 in blue".to_owned(),
                kind: "vxlan".to_owned(),
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
    fn a_comparison_changes_the_load_and_no_setting() {
        let usual = Load::new(Workload::TcpStream);
        let changed = |switch: Switch| {
            let mut load = usual.clone();
            assert!(switch.change(&mut load) && switch.level().is_none() && !switch.is_change());
            load
        };
        assert_eq!(
            changed(Switch::OtherDirection),
            Load {
                direction: Direction::BToA,
                ..usual.clone()
            }
        );
        let small = changed(Switch::SmallMessages);
        assert!(small.request < usual.request, "{small:?}");
        assert_eq!(small.faults(), []);
        assert!(Switch::FourStreams.is_change());
    }

    #[test]
    fn only_cores_that_are_there_are_steered_to() {
        let steered = Switch::Steered {
            at: at("eth0", true),
            cores: vec![0, 2, 4, 31],
        };
        assert_eq!(steered.label(), "receive steering to 4 cores on a");
        let level = steered.level().expect("a level");
        assert!(level.contains("rps: 0x80000015"), "{level}");
    }

    #[test]
    fn every_level_is_one_that_a_plan_takes() {
        let steered = |name, measured| Switch::Steered {
            at: at(name, measured),
            cores: (0..MASK_BITS).collect(),
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
}
