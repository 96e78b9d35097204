//! Parses frames captured on the underlay: their length, whether they are fragments, and the UDP
//! datagram that they carry.
//!
//! Nothing is copied. A capture may end anywhere after the innermost UDP header: lengths are taken
//! from the headers, and from the frame's length that the capture reports.

mod cursor;
mod error;
#[cfg(test)]
mod tests;

use cursor::{Cursor, Ip};
pub use error::{FrameError, Layer, Problem};

pub use crate::geneve::GeneveId;
pub use crate::gre::GreId;
pub use crate::vxlan::VxlanId;

/// Identifies one overlay segment on an underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TunnelId {
    /// VXLAN (RFC 7348).
    Vxlan(VxlanId),
    /// Geneve (RFC 8926).
    Geneve(GeneveId),
    /// GRE (RFC 2784).
    Gre(GreId),
    /// An IP packet in an IP packet (RFC 2003, RFC 4213, RFC 2473).
    IpInIp,
}

impl From<VxlanId> for TunnelId {
    fn from(id: VxlanId) -> Self {
        Self::Vxlan(id)
    }
}

impl From<GeneveId> for TunnelId {
    fn from(id: GeneveId) -> Self {
        Self::Geneve(id)
    }
}

impl From<GreId> for TunnelId {
    fn from(id: GreId) -> Self {
        Self::Gre(id)
    }
}

/// The outermost headers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OuterHeaders {
    /// Length of the frame on the link in bytes, with Ethernet header, without FCS; more than was
    /// captured if the capture cut it.
    pub frame_bytes: u32,
    /// Length of the outermost IP packet in bytes, its header included.
    pub ip_bytes: u32,
    /// Whether the packet is a fragment, a first one included.
    pub fragment: bool,
    /// Whether the packet must not be fragmented: the DF bit of IPv4; always `true` for IPv6.
    pub df: bool,
}

/// A UDP datagram found in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedDatagram<'a> {
    /// Length of the frame on the link in bytes, with Ethernet header, without FCS.
    pub frame_bytes: u32,
    /// Length of the outermost IP packet in bytes, its header included.
    pub outer_ip_bytes: u32,
    /// Whether the outermost IP packet is a fragment.
    pub fragment: bool,
    /// Whether the outermost IP packet must not be fragmented.
    pub df: bool,
    /// Identifier of the outermost VLAN tag, 0 to 4095.
    pub vlan: Option<u16>,
    /// Identifier of the outermost VLAN tag inside the tunnel, 0 to 4095.
    pub inner_vlan: Option<u16>,
    /// Geneve options in their frame format; empty without any.
    pub options: &'a [u8],
    /// Source port of the innermost datagram.
    pub src_port: u16,
    /// Destination port of the innermost datagram.
    pub dst_port: u16,
    /// Length of the innermost datagram in bytes, UDP header and payload, from its header; of all fragments together.
    pub udp_bytes: u32,
    /// Payload of the innermost datagram as far as it was captured, without link padding.
    pub payload: &'a [u8],
}

/// Parses a frame's outermost headers: Ethernet, any VLAN tags, IPv4 or IPv6.
///
/// `frame` is the captured part from the Ethernet header on, `frame_bytes` the length of the frame
/// before the capture cut it.
///
/// # Errors
/// The frame is not IP, its headers are malformed, or the capture is too short.
pub fn outer(frame: &[u8], frame_bytes: u32) -> Result<OuterHeaders, FrameError> {
    read_outer(&mut Cursor::new(frame), frame_bytes).map(|(outer, ..)| outer)
}

/// Parses the UDP datagram of a frame: the outermost one without a tunnel, or the one that `tunnel` carries.
///
/// Arguments are those of [`outer`]. A first fragment is parsed as far as it goes.
///
/// # Errors
/// Names the header that is not the expected one: the frame is of another protocol, port or VNI, is
/// a later fragment, or the capture is too short.
pub fn innermost_udp(
    frame: &[u8],
    frame_bytes: u32,
    tunnel: Option<TunnelId>,
) -> Result<CapturedDatagram<'_>, FrameError> {
    let mut cursor = Cursor::new(frame);
    let (outer, ip, vlan) = read_outer(&mut cursor, frame_bytes)?;
    let (mut options, mut inner_vlan) = (&frame[..0], None);
    let udp = match tunnel {
        None => cursor.udp(&ip)?,
        Some(id) => {
            let carried = match id {
                TunnelId::Vxlan(id) => {
                    let port = cursor.udp(&ip)?.dst_port;
                    cursor.vxlan(id, port)?;
                    None
                }
                TunnelId::Geneve(id) => {
                    let port = cursor.udp(&ip)?.dst_port;
                    options = cursor.geneve(id, port)?;
                    None
                }
                TunnelId::Gre(id) => cursor.gre(id, &ip)?,
                TunnelId::IpInIp => Some(cursor.ip_in_ip(&ip)?),
            };
            let ether_type = if let Some(ether_type) = carried {
                ether_type
            } else {
                let (ether_type, tag) = cursor.ethernet()?;
                inner_vlan = tag;
                ether_type
            };
            let inner = cursor.ip(ether_type)?;
            cursor.udp(&inner)?
        }
    };
    Ok(CapturedDatagram {
        frame_bytes: outer.frame_bytes,
        outer_ip_bytes: outer.ip_bytes,
        fragment: outer.fragment,
        df: outer.df,
        vlan,
        inner_vlan,
        options,
        src_port: udp.src_port,
        dst_port: udp.dst_port,
        udp_bytes: udp.bytes,
        payload: cursor.rest(),
    })
}

/// Parses the outermost headers, with the outermost VLAN tag's identifier.
fn read_outer(
    cursor: &mut Cursor<'_>,
    frame_bytes: u32,
) -> Result<(OuterHeaders, Ip, Option<u16>), FrameError> {
    let (ether_type, vlan) = cursor.ethernet()?;
    let ip = cursor.ip(ether_type)?;
    let outer = OuterHeaders {
        frame_bytes,
        ip_bytes: ip.bytes,
        fragment: ip.is_fragment(),
        df: ip.df,
    };
    Ok((outer, ip, vlan))
}
