//! What a lab host is to look like.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::cell::Network;

/// The host's device towards the other host.
pub const UNDERLAY_DEVICE: &str = "underlay";
/// The guest's own device.
pub const GUEST_DEVICE: &str = "eth0";

pub(crate) const BRIDGE: &str = "bridge0";
pub(crate) const TUNNEL: &str = "tunnel0";
/// The host's end of the guest's device.
pub(crate) const GUEST_PORT: &str = "guest0";

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
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// The hardware address of its underlay device, locally administered: known to both without asking.
    pub(crate) const fn underlay_mac(self) -> [u8; 6] {
        match self {
            Self::A => [2, 0, 0, 0, 0, 1],
            Self::B => [2, 0, 0, 0, 0, 2],
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

/// One lab host: an underlay device, a bridge, a guest behind it, and a tunnel where the network has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Which of the two.
    pub side: Side,
    /// MTU, rate, encapsulation, IP versions.
    pub network: Network,
    /// The host's address on the underlay, used where the path is tunnelled.
    pub underlay_address: IpAddr,
    /// The other host's.
    pub underlay_peer: IpAddr,
    /// The guest's address.
    pub guest_address: IpAddr,
    /// Cores that handle what the underlay receives, on each of its queues; `None` leaves it to the core that
    /// sent it.
    pub receive_cpus: Option<Vec<u32>>,
}
