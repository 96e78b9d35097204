//! Offload profiles: named tables of ethtool features, and what becomes of them on each device of a path.
//!
//! | profile | what it stands for |
//! |---|---|
//! | `none` | every frame handled alone, everywhere: no TSO, GSO, GRO on underlay, tunnel and guest |
//! | `plain` | a NIC that segments what is in no tunnel: super-packets in a tunnel are segmented in software before the underlay |
//! | `tunnel` | everything on: super-packets cross the tunnel whole |
//!
//! On an untunnelled path `plain` and `tunnel` are the same thing. Where super-packets are cut and where their frames
//! are joined again follows from the level and the path ([`Treatment`]), the same for every encapsulation
//! (docs/offloads.md).

mod treatment;

pub use treatment::{Cut, Treatment};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A named set of offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Only the guest's TCP segments and aggregates.
    None,
    /// As a NIC that knows no tunnels.
    Plain,
    /// Everything, tunnel segmentation included.
    Tunnel,
}

/// One switch a plan can set beside the profile. Each stands for a group of ethtool features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// TCP segmentation offload (`tx-tcp-*segmentation`).
    Tso,
    /// Generic segmentation offload (`tx-generic-segmentation`, `tx-udp-segmentation`).
    Gso,
    /// Generic receive offload (`rx-gro`).
    Gro,
    /// Segmentation of super-packets inside a tunnel (`tx-udp_tnl-*segmentation`, and GRE's and IP in IP's).
    TunnelSegmentation,
    /// Transmit and receive checksum offload; off is `checksum: software`, which rules out all segmentation.
    Checksum,
}

impl Feature {
    /// All switches, in the order in which they are set: checksum last switched on, first off,
    /// because the kernel refuses segmentation without it.
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

    /// The features of `ethtool -k` that belong to this switch (net/ethtool/common.c,
    /// `netdev_features_strings`). A device that lacks one is not an error: the read-back says so.
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

/// What a device is on the path: the profile decides per role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The host's device towards the other host.
    Underlay,
    /// The tunnel device (VXLAN ...).
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
    /// The table to start from.
    pub profile: Profile,
    /// Switches that differ from the table, on every device of the path.
    #[serde(default)]
    pub set: BTreeMap<Feature, bool>,
}

impl Offload {
    /// A profile as it stands.
    pub const fn profile(profile: Profile) -> Self {
        Self {
            profile,
            set: BTreeMap::new(),
        }
    }

    /// The state of every switch on a path that is or is not tunnelled, before it is known what a device is there for
    /// ([`Treatment::wanted`]).
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
    /// Whether it has a switch on, on a path that is or is not tunnelled.
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
