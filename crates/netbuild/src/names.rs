//! The names of a lab: its two sides, its devices, and the length of its networks' prefixes.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The host's device towards the other host.
pub const UNDERLAY_DEVICE: &str = "underlay";
/// The guest's own device.
pub const GUEST_DEVICE: &str = "eth0";

pub(crate) const BRIDGE: &str = "bridge0";
pub(crate) const TUNNEL: &str = "tunnel0";
/// Puts a VLAN tag inside the tunnel.
pub(crate) const TAG: &str = "tag0";

/// The host's end of a guest's device, by the guest's number.
pub(crate) fn guest_port(number: usize) -> String {
    format!("guest{number}")
}

/// Which of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The host that makes the underlay, and whose guest sends.
    A,
    /// The other.
    B,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// As the last part of an address: 1 or 2.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::A => 1,
            Self::B => 2,
        }
    }

    /// The host's name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// Length in bits of the prefix that both ends of a lab's network have: the whole of it is on the link.
pub(crate) const fn prefix(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 64,
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
