//! Observations in addition to the answers to probes: ICMP messages, packets before a firewall, TCP segments,
//! fragments.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Bytes that a device receives beyond its MTU, for a VLAN tag (include/linux/netdevice.h, `__is_skb_forwardable`).
pub(crate) const TAG_BYTES: u32 = 4;

/// The smallest MTU that IPv4 allows, bytes (RFC 791).
pub(crate) const MIN_IPV4_MTU: u32 = 68;

/// Which TCP segments pass, as sizes of their IP packets, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// The largest that arrived; `None`: none did.
    pub passes: Option<u32>,
    /// The smallest of which every copy was lost; `None`: none was.
    pub fails: Option<u32>,
}

/// An ICMP destination unreachable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreachable {
    /// Source address of the message.
    pub by: IpAddr,
    /// Code of the message, whose type is 3 over IPv4 and 1 over IPv6.
    pub code: u8,
}

impl Unreachable {
    /// What the code means (RFC 792, RFC 1812, RFC 4443).
    pub const fn words(&self) -> &'static str {
        match (self.by.is_ipv6(), self.code) {
            (false, 0 | 6 | 11) => "network unreachable: it has no route",
            (true, 0) => "no route to the destination",
            (false, 1 | 7 | 12) => "host unreachable: the next neighbour does not answer",
            (true, 3) => "address unreachable: the next neighbour does not answer",
            (false, 2) => "protocol unreachable",
            (false, 3) | (true, 4) => "port unreachable",
            (false, 9 | 10 | 13) | (true, 1) => "administratively prohibited: a filter",
            (true, 5) => "source address refused: a filter",
            (true, 6) => "reject route",
            _ => "unreachable",
        }
    }

    /// Whether a host's own filter refuses so: by default as port unreachable (nft, iptables), or as prohibited.
    pub(crate) const fn is_of_a_filter(&self) -> bool {
        matches!(
            (self.by.is_ipv6(), self.code),
            (false, 3 | 9 | 10 | 13) | (true, 1 | 4)
        )
    }
}

/// What ICMP messages and packet sockets showed of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observations {
    /// An ICMP too-big message that arrived at the sender's device: its source, and the MTU in it, bytes.
    pub too_big: Option<(IpAddr, u32)>,
    /// An ICMP destination unreachable message about the probes.
    #[serde(rename = "refused")]
    pub unreachable: Option<Unreachable>,
    /// Acknowledgements that arrived at the sender's device; `None`: no packet socket was allowed.
    pub acknowledged: Option<u32>,
    /// Probes that arrived at the receiver's device; `None`: no packet socket was allowed.
    pub arrived: Option<u32>,
}

/// How a host fragments packets that it sends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderFragmentation {
    /// Packets of full size that were sent as a test.
    pub sent: u32,
    /// Fragments that the host created of these packets or of the packets that encapsulate them.
    pub fragments: u64,
    /// The largest packet that left unfragmented, bytes.
    #[serde(rename = "whole")]
    pub unfragmented: Option<u32>,
}
