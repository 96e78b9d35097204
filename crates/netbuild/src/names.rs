//! The names of a lab: its two sides, its devices, and the length of its networks' prefixes.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Name of the host's device towards the other host.
pub const UNDERLAY_DEVICE: &str = "underlay";
/// Name of the guest's own device.
pub const GUEST_DEVICE: &str = "eth0";

pub(crate) const BRIDGE: &str = "bridge0";
pub(crate) const TUNNEL: &str = "tunnel0";
/// The VLAN device that adds a tag inside the tunnel.
pub(crate) const TAG: &str = "tag0";

/// Name of the host's end of a guest's device, by the guest's number from 0.
pub(crate) fn guest_port(number: usize) -> String {
    format!("guest{number}")
}

/// The same where it is in the namespace of an existing host, beside that host's own devices. `owner` is the id of the
/// process whose device it is. At most 15 characters (`IFNAMSIZ`): ids have up to 7, numbers 2.
pub(crate) fn guest_port_beside(owner: u32, number: usize) -> String {
    format!("wc{owner}g{number}")
}

/// One of the two hosts of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Host a, which creates the underlay, and whose guests send.
    A,
    /// Host b.
    B,
}

impl Side {
    /// The other host.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Last octet of the host's addresses: 1 or 2.
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

/// Prefix length, in bits, of a lab's networks: all of the prefix is on the link.
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
