//! Why a frame is not the expected one.

use std::fmt;

/// The header at which parsing stopped, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{layer} header at byte {offset}: {problem}")]
pub struct FrameError {
    /// The header.
    pub layer: Layer,
    /// Offset of the header in the frame, bytes.
    pub offset: usize,
    /// What is wrong with the header.
    pub problem: Problem,
}

/// A header of a frame.
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
    /// The capture ends within the header.
    #[error("{needed} bytes needed, {captured} captured")]
    Truncated {
        /// Length of the header, as far as known, bytes.
        needed: usize,
        /// Captured bytes of the header.
        captured: usize,
    },
    /// The header's version or one of its lengths is invalid.
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
    /// The datagram is to another port than the tunnel's.
    #[error("destination port {0} is not the tunnel's")]
    OtherPort(u16),
    /// The tunnel carries something else than Ethernet frames.
    #[error("it carries Ethernet type 0x{0:04x} and not Ethernet frames")]
    NotEthernet(u16),
    /// A control packet between the tunnel's ends.
    #[error("a control packet")]
    Control,
    /// The header has another VNI than the tunnel's, or none.
    #[error("the VNI is not the tunnel's")]
    OtherVni(Option<u32>),
    /// The packet is of another IP protocol than the tunnel's.
    #[error("IP protocol {0} is not the tunnel's")]
    OtherProtocol(u8),
    /// The packet has another key than the tunnel's, or none.
    #[error("the key is not the tunnel's")]
    OtherKey(Option<u32>),
}
