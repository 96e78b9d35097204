//! What a frame captured on the underlay shows: how long it was, whether it was a fragment, whose datagram it carried.
//!
//! Nothing is copied, and a capture may end anywhere behind the innermost UDP header: lengths are taken from the
//! headers and from the capture's own note of the frame's length.

mod cursor;
mod error;
#[cfg(test)]
mod tests;

use cursor::{Cursor, Ip};
pub use error::{FrameError, Layer, Problem};

pub use crate::geneve::GeneveId;
pub use crate::gre::GreId;
pub use crate::vxlan::VxlanId;

/// One segment of an overlay as it is found on an underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TunnelId {
    /// RFC 7348.
    Vxlan(VxlanId),
    /// RFC 8926.
    Geneve(GeneveId),
    /// RFC 2784.
    Gre(GreId),
    /// RFC 2003, RFC 4213, RFC 2473: an IP packet in an IP packet.
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
pub struct Outer {
    /// The frame on the link in bytes, Ethernet header included, FCS not; more than was captured if it was cut.
    pub frame_bytes: u32,
    /// The outermost IP packet in bytes, its header included.
    pub ip_bytes: u32,
    /// Whether it is a fragment, the first included.
    pub fragment: bool,
    /// Whether it must not be fragmented: IPv4's DF bit; always so in IPv6.
    pub df: bool,
}

/// A UDP datagram found in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The frame on the link in bytes, Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// The outermost IP packet in bytes, its header included.
    pub outer_ip_bytes: u32,
    /// Whether the outermost IP packet is a fragment.
    pub fragment: bool,
    /// Whether the outermost IP packet must not be fragmented.
    pub df: bool,
    /// Identifier of the outermost VLAN tag.
    pub vlan: Option<u16>,
    /// Identifier of the outermost VLAN tag inside the tunnel.
    pub inner_vlan: Option<u16>,
    /// Geneve options as they stand in the frame; empty without any.
    pub options: &'a [u8],
    /// Source port of the innermost datagram.
    pub src_port: u16,
    /// Destination port of the innermost datagram.
    pub dst_port: u16,
    /// Its length in bytes, UDP header and payload, as its header says; of all fragments together.
    pub udp_bytes: u32,
    /// Its payload, as far as it was captured; link padding is left out.
    pub payload: &'a [u8],
}

/// Reads a frame's outermost headers: Ethernet, any VLAN tags, IPv4 or IPv6.
///
/// `frame` is what was captured, from the Ethernet header on; `frame_bytes` the length the frame had before the capture
/// cut it.
pub fn outer(frame: &[u8], frame_bytes: u32) -> Result<Outer, FrameError> {
    read_outer(&mut Cursor::new(frame), frame_bytes).map(|(outer, ..)| outer)
}

/// Reads the UDP datagram of a frame: the outermost without a tunnel, or the one that `tunnel` carries inside.
///
/// Arguments are those of [`outer`]. A first fragment is read as far as it goes. An error says which header was not the
/// expected one: a frame of another protocol, port or VNI, a later fragment, or too short a capture.
pub fn innermost_udp(
    frame: &[u8],
    frame_bytes: u32,
    tunnel: Option<TunnelId>,
) -> Result<Seen<'_>, FrameError> {
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
    Ok(Seen {
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

/// The outermost headers, and the outermost tag's identifier.
fn read_outer(
    cursor: &mut Cursor<'_>,
    frame_bytes: u32,
) -> Result<(Outer, Ip, Option<u16>), FrameError> {
    let (ether_type, vlan) = cursor.ethernet()?;
    let ip = cursor.ip(ether_type)?;
    let outer = Outer {
        frame_bytes,
        ip_bytes: ip.bytes,
        fragment: ip.is_fragment(),
        df: ip.df,
    };
    Ok((outer, ip, vlan))
}
