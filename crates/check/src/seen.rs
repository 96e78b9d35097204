//! What was seen beside the answers to probes: ICMP messages, what arrived before a filter, TCP segments, fragments.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What a device takes beyond its MTU when it receives, for a VLAN tag (net/core/dev.c, `__is_skb_forwardable`).
pub(crate) const TAG_BYTES: u32 = 4;

/// The smallest MTU that IPv4 allows, bytes (RFC 791).
pub(crate) const LEAST: u32 = 68;

/// Which TCP segments pass; IP packets, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// The largest that arrived.
    pub passes: Option<u32>,
    /// The smallest of which every copy was lost.
    pub fails: Option<u32>,
}

/// An ICMP message that a packet does not get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Who says so.
    pub by: IpAddr,
    /// The message's code: of type 3, over IPv6 of type 1.
    pub code: u8,
}

impl Refused {
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
}

/// What ICMP messages and packet sockets told of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Who says that probes are too big, and what passes by that word, bytes, as it arrived at the sender's device.
    pub too_big: Option<(IpAddr, u32)>,
    /// Who refuses them.
    pub refused: Option<Refused>,
    /// Acknowledgements that arrived at the sender's device; `None`: a packet socket was not allowed.
    pub acknowledged: Option<u32>,
    /// Probes that arrived at the receiver's device; `None`: a packet socket was not allowed.
    pub arrived: Option<u32>,
}

/// What a host fragments that it sends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Packets of full size that were sent to see,
    pub sent: u32,
    /// fragments that the host made of them or of what carries them,
    pub fragments: u64,
    /// and the largest packet that left in one piece, bytes.
    pub whole: Option<u32>,
}

/// A rule of a host's own filter that drops or refuses packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRule {
    /// As its program prints it.
    pub rule: String,
    /// Where it looks: `input`, `output`, `forward`; empty: not known.
    pub hook: String,
    /// Protocols that it is about; none: any.
    pub protocols: Vec<String>,
    /// Packets that it met; `None`: it does not count.
    pub packets: Option<u64>,
    /// The command that takes it away.
    pub undo: Option<String>,
}

impl DropRule {
    /// Whether it drops what comes in of a protocol, as far as can be told.
    pub fn takes(&self, hook: &str, protocols: &[&str]) -> bool {
        let there = self.hook == hook || (self.hook.is_empty() && self.packets > Some(0));
        let about = self.protocols.is_empty()
            || self
                .protocols
                .iter()
                .any(|it| protocols.contains(&it.as_str()));
        there && about && self.packets != Some(0)
    }
}
