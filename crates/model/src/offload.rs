//! Offload profiles: named tables of ethtool features, and their effect on each device of a path.
//!
//! | profile | what it stands for |
//! |---|---|
//! | `none` | every frame handled alone, everywhere: no TSO, GSO, GRO on underlay, tunnel and guest |
//! | `plain` | a NIC that knows no tunnels: super-packets in a tunnel are segmented in software before the underlay |
//! | `tunnel` | everything on: super-packets cross the tunnel unsegmented |
//!
//! On a path without a tunnel `plain` and `tunnel` are the same. Where super-packets are cut and where their frames are
//! joined again follows from the level and the path ([`PathOffload`]), the same for every encapsulation
//! (docs/offloads.md).

mod path_offload;

pub use path_offload::{PathOffload, SegmentationPoint};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A named set of offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No segmentation and no receive offload; checksum offload stays on.
    None,
    /// All but tunnel segmentation, as on a NIC that knows no tunnels.
    Plain,
    /// All offloads, tunnel segmentation included.
    Tunnel,
}

/// A switch that a plan can set in addition to the profile: a group of ethtool features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// TCP segmentation offload (`tx-tcp-*segmentation`).
    Tso,
    /// Generic segmentation offload (`tx-generic-segmentation`, `tx-udp-segmentation`).
    Gso,
    /// Generic receive offload (`rx-gro`).
    Gro,
    /// Segmentation of super-packets inside a tunnel (`tx-udp_tnl-*segmentation`, and those of GRE and IP in IP).
    TunnelSegmentation,
    /// Transmit and receive checksum offload; off is `checksum: software`, which rules out all segmentation.
    Checksum,
}

impl Feature {
    /// All switches.
    pub const ALL: [Self; 5] = [
        Self::Checksum,
        Self::Gso,
        Self::Tso,
        Self::TunnelSegmentation,
        Self::Gro,
    ];

    /// The plan's key for this switch.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::TunnelSegmentation => "tunnel_segmentation",
            Self::Checksum => "checksum",
        }
    }

    /// The `ethtool -k` features of this switch (net/ethtool/common.c, `netdev_features_strings`). A device may lack
    /// some of them: the read-back shows it.
    pub const fn ethtool(self) -> &'static [&'static str] {
        match self {
            Self::Tso => &[
                "tx-tcp-segmentation",
                "tx-tcp-ecn-segmentation",
                "tx-tcp-mangleid-segmentation",
                "tx-tcp6-segmentation",
                "tx-tcp-accecn-segmentation",
            ],
            Self::Gso => &["tx-generic-segmentation", "tx-udp-segmentation"],
            Self::Gro => &["rx-gro"],
            Self::TunnelSegmentation => &[
                "tx-udp_tnl-segmentation",
                "tx-udp_tnl-csum-segmentation",
                "tx-gre-segmentation",
                "tx-gre-csum-segmentation",
                "tx-ipxip4-segmentation",
                "tx-ipxip6-segmentation",
            ],
            Self::Checksum => &["tx-checksum-ip-generic", "rx-checksum"],
        }
    }
}

/// The role of a device on the path, by which a profile decides its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The host's device on the underlay.
    Underlay,
    /// The tunnel device, such as a VXLAN device.
    Tunnel,
    /// The guest's own device.
    Guest,
    /// The host's end of the guest's device, a bridge port.
    GuestPort,
    /// The host's bridge.
    Bridge,
}

/// A level of the factor `offload`: a profile with single switches changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offload {
    /// The profile to start from.
    pub profile: Profile,
    /// Switches that differ from the profile, on every device of the path.
    #[serde(default)]
    pub set: BTreeMap<Feature, bool>,
}

impl Offload {
    /// A profile without changed switches.
    pub const fn profile(profile: Profile) -> Self {
        Self {
            profile,
            set: BTreeMap::new(),
        }
    }

    /// The state of every switch on a path with or without a tunnel, before a device's role is considered
    /// ([`PathOffload::device_features`]).
    pub fn switches(&self, tunnelled: bool) -> BTreeMap<Feature, bool> {
        let mut switches: BTreeMap<Feature, bool> = Feature::ALL
            .map(|feature| (feature, self.profile.has(feature, tunnelled)))
            .into();
        switches.extend(&self.set);
        if !switches[&Feature::Checksum] {
            // The kernel allows segmentation only with checksum offload (netdev_fix_features).
            switches.extend(
                [Feature::Gso, Feature::Tso, Feature::TunnelSegmentation].map(|f| (f, false)),
            );
        }
        switches
    }
}

impl Profile {
    /// Whether the profile has a switch on, on a path with or without a tunnel.
    fn has(self, feature: Feature, tunnelled: bool) -> bool {
        match self {
            Self::None => feature == Feature::Checksum,
            Self::Plain => !(tunnelled && feature == Feature::TunnelSegmentation),
            Self::Tunnel => true,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Plain => "plain",
            Self::Tunnel => "tunnel",
        })
    }
}

/// The level's label: `none`, `tunnel gro=off`, `none checksum=software`.
impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.profile)?;
        for (feature, on) in &self.set {
            let value = match (feature, on) {
                (Feature::Checksum, true) => "hardware",
                (Feature::Checksum, false) => "software",
                (_, true) => "on",
                (_, false) => "off",
            };
            write!(f, " {}={value}", feature.key())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_differs_from_tunnel_on_a_tunnelled_path_only() {
        let (plain, tunnel) = (
            Offload::profile(Profile::Plain),
            Offload::profile(Profile::Tunnel),
        );
        assert_eq!(plain.switches(false), tunnel.switches(false));
        assert_ne!(plain.switches(true), tunnel.switches(true));
    }

    #[test]
    fn a_single_switch_overrides_the_profile() {
        let level = Offload {
            profile: Profile::Tunnel,
            set: [(Feature::Gro, false)].into(),
        };
        assert!(!level.switches(true)[&Feature::Gro]);
        assert!(level.switches(true)[&Feature::Tso]);
        assert_eq!(level.to_string(), "tunnel gro=off");
    }
}
