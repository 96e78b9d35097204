//! Why a frame was not what was looked for.

use std::fmt;

/// Which header stopped the reading, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{layer} header at byte {offset}: {problem}")]
pub struct FrameError {
    /// The header.
    pub layer: Layer,
    /// Where it begins in the frame, in bytes.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// A header that was being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Ethernet II.
    Ethernet,
    /// An IEEE 802.1Q or 802.1ad tag.
    Vlan,
    /// IPv4 or IPv6, by the Ethernet type.
    Ip,
    /// UDP.
    Udp,
    /// VXLAN.
    Vxlan,
    /// Geneve.
    Geneve,
    /// GRE.
    Gre,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN",
            Self::Ip => "IP",
            Self::Udp => "UDP",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::Gre => "GRE",
        })
    }
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The capture ends within it.
    #[error("{needed} bytes needed, {captured} captured")]
    Truncated {
        /// Bytes the header has, as far as known.
        needed: usize,
        /// Bytes that were captured of it.
        captured: usize,
    },
    /// Its version or one of its length fields cannot be true.
    #[error("malformed")]
    Malformed,
    /// The frame is not IP.
    #[error("Ethernet type 0x{0:04x} is not IP")]
    NotIp(u16),
    /// The packet is not UDP.
    #[error("IP protocol {0} is not UDP")]
    NotUdp(u8),
    /// A fragment other than the first: the header is in another frame.
    #[error("missing from a fragment that begins at byte {0} of its packet")]
    LaterFragment(u32),
    /// The datagram is not the tunnel's.
    #[error("destination port {0} is not the tunnel's")]
    OtherPort(u16),
    /// What is in the tunnel is no Ethernet frame.
    #[error("it carries Ethernet type 0x{0:04x} and not Ethernet frames")]
    NotEthernet(u16),
    /// A packet between the tunnel's ends.
    #[error("a control packet")]
    Control,
    /// The tunnel carries no VNI, or another.
    #[error("the VNI is not the tunnel's")]
    OtherVni(Option<u32>),
    /// The packet is not the tunnel's.
    #[error("IP protocol {0} is not the tunnel's")]
    OtherProtocol(u8),
    /// The tunnel's packets have no key, or another.
    #[error("the key is not the tunnel's")]
    OtherKey(Option<u32>),
}
