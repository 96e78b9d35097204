//! IP versions, and what each requires of a link.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The IP version of the guests or of the underlay.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// RFC 791. The meaning of records of version 1, which knew no other.
    #[default]
    Ipv4,
    /// RFC 8200.
    Ipv6,
}

impl IpVersion {
    /// Both versions, IPv4 first.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }

    /// Bytes of the IP header without options or extension headers (RFC 791, section 3.1; RFC 8200, section 3).
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }

    /// The smallest MTU that a link may have, bytes: for IPv4 the packet that every host must accept (RFC 791, section
    /// 3.1), for IPv6 the packet that every link must carry (RFC 8200, section 5). A Linux device with a smaller MTU
    /// loses its IPv6 addresses (net/ipv6/addrconf.c, `addrconf_notify`).
    pub const fn min_mtu(self) -> u32 {
        match self {
            Self::Ipv4 => 576,
            Self::Ipv6 => 1280,
        }
    }
}

/// As the standards write it: `IPv4`, `IPv6`.
impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}
