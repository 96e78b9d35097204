//! How a guest's frames cross the underlay.

pub mod description;
mod label;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use description::{Carries, Description, Driver};

use crate::ip::IpVersion;

/// Bytes of an 802.1Q tag.
const TAG_BYTES: u32 = 4;
/// Bytes of a frame's header.
const ETHERNET_BYTES: u32 = 14;

/// A level of the factor `encapsulation`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// Bridged onto the underlay as they are.
    None,
    /// With an IEEE 802.1Q tag on the line.
    Vlan(Vlan),
    /// RFC 7348.
    Vxlan(Vxlan),
    /// RFC 8926.
    Geneve(Geneve),
    /// The guests' IP packets in GRE (RFC 2784, RFC 2890). No frames: the hosts route for the guests.
    Gre(Gre),
    /// The guests' frames in GRE (Linux's `gretap`; "transparent Ethernet bridging", RFC 1701, section 4).
    Gretap(Gre),
    /// The guests' IP packets in IP packets (RFC 2003, RFC 2473, RFC 4213). Routed as of GRE.
    Ipip(Ipip),
    /// The guests' IP packets, encrypted, in UDP (Linux's `wireguard`). Routed as of GRE.
    Wireguard(Wireguard),
}

/// A VLAN on the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Vlan {
    /// VLAN identifier, 1 to 4094.
    pub id: u16,
}

impl Default for Vlan {
    fn default() -> Self {
        Self { id: 42 }
    }
}

/// Options of a VXLAN tunnel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Vxlan {
    /// VXLAN network identifier, 0 to 2^24 - 1.
    pub vni: u32,
    /// UDP destination port; IANA's is 4789.
    pub port: u16,
    /// The outer IPv4 header's don't-fragment bit; IPv6 has none.
    pub df: OuterDf,
    /// Whether the outer UDP checksum is computed. Without it the field is zero, over IPv6 too, where
    /// RFC 6935 allows it to tunnels and the receiver is told to take it.
    pub udp_checksum: bool,
    /// UDP source ports, chosen by the inner flow; `None` is what the datapath takes by itself.
    #[serde(default)]
    pub source_ports: Option<SourcePorts>,
    /// A VLAN tag that every frame carries inside the tunnel, 1 to 4094.
    #[serde(default)]
    pub inner_vlan: Option<u16>,
}

impl Default for Vxlan {
    fn default() -> Self {
        Self {
            vni: 42,
            port: 4789,
            df: OuterDf::Unset,
            udp_checksum: false,
            source_ports: None,
            inner_vlan: None,
        }
    }
}

/// Options of a Geneve tunnel; those that VXLAN has too mean the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Geneve {
    /// Virtual network identifier, 0 to 2^24 - 1.
    pub vni: u32,
    /// UDP destination port; IANA's is 6081.
    pub port: u16,
    /// The outer IPv4 header's don't-fragment bit.
    pub df: OuterDf,
    /// Whether the outer UDP checksum is computed.
    pub udp_checksum: bool,
    /// UDP source ports.
    pub source_ports: Option<SourcePorts>,
    /// A VLAN tag inside the tunnel.
    pub inner_vlan: Option<u16>,
    /// What every packet carries behind the header.
    pub options: GeneveOptions,
}

impl Default for Geneve {
    fn default() -> Self {
        Self {
            vni: 42,
            port: 6081,
            df: OuterDf::Unset,
            udp_checksum: false,
            source_ports: None,
            inner_vlan: None,
            options: GeneveOptions::NONE,
        }
    }
}

/// Options of a tunnel in GRE, whatever it carries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Gre {
    /// The key in every packet (RFC 2890, section 2.1): 4 bytes, and what tells tunnels between two hosts apart.
    pub key: Option<u32>,
    /// The outer TTL or hop limit, 1 to 255; `None` is the inner packet's.
    pub ttl: Option<u8>,
    /// The outer IPv4 header's don't-fragment bit; `None` is what the kernel does by itself, which sets it.
    pub df: Option<OuterDf>,
}

/// Options of IP in IP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Ipip {
    /// As of GRE.
    pub ttl: Option<u8>,
    /// As of GRE; the kernel cannot keep it unset.
    pub df: Option<OuterDf>,
}

/// Options of a WireGuard tunnel. Its keys are no option: each lab has its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wireguard {
    /// UDP port that both hosts listen on and send to; wg(8) has 51820.
    pub port: u16,
}

impl Default for Wireguard {
    fn default() -> Self {
        Self { port: 51820 }
    }
}

/// Options in a Geneve header (RFC 8926, section 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneveOptions {
    /// So many bytes of an experimental class: a multiple of 4, at most 252.
    Bytes(u8),
    /// The one that OVN puts in every packet: class 0x0102, type 0x80, four bytes of value, critical.
    Ovn,
}

impl GeneveOptions {
    /// None at all.
    pub const NONE: Self = Self::Bytes(0);
    /// Most bytes of options.
    pub const MOST_BYTES: u8 = 252;

    /// Bytes of the header that they take, their own headers included.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bytes(bytes) => bytes as u32,
            Self::Ovn => 8,
        }
    }
}

/// As plans write it: `ovn`, `64`.
impl fmt::Display for GeneveOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Ovn => f.write_str("ovn"),
        }
    }
}

/// A range of UDP ports, both ends included; none is 0, the last not below the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourcePorts {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl SourcePorts {
    /// `49152-65535`; `None` where it is no such range.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        let port = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u16>().ok()).flatten()
        };
        let ports = Self {
            first: port(first)?,
            last: port(last)?,
        };
        (ports.first > 0 && ports.first <= ports.last).then_some(ports)
    }
}

/// As plans write it: `49152-65535`.
impl fmt::Display for SourcePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// The outer header's don't-fragment bit (`IFLA_VXLAN_DF`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OuterDf {
    /// Never set: the kernel's default.
    Unset,
    /// Always set.
    Set,
    /// Copied from the inner header.
    Inherit,
}

impl OuterDf {
    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Set => "set",
            Self::Inherit => "inherit",
        }
    }
}

/// What VXLAN and Geneve have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpTunnel {
    /// Network identifier.
    pub vni: u32,
    /// UDP destination port.
    pub port: u16,
    /// The outer IPv4 header's don't-fragment bit.
    pub df: OuterDf,
    /// Whether the outer UDP checksum is computed.
    pub udp_checksum: bool,
    /// UDP source ports.
    pub source_ports: Option<SourcePorts>,
    /// A VLAN tag inside.
    pub inner_vlan: Option<u16>,
}

/// What the tunnels without UDP have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpTunnel {
    /// The key of GRE.
    pub key: Option<u32>,
    /// The outer TTL or hop limit.
    pub ttl: Option<u8>,
    /// The outer IPv4 header's don't-fragment bit.
    pub df: Option<OuterDf>,
}

impl Encapsulation {
    /// Whether what guests send travels in IP packets of the hosts' own.
    pub const fn is_tunnel(&self) -> bool {
        self.kind().is_tunnel()
    }

    /// Whether it carries the guests' IP packets and not their frames: their hosts then route, where they else bridge.
    pub const fn is_routed(&self) -> bool {
        matches!(self.kind().carries, Carries::Packets)
    }

    /// Whether the plan says what becomes of the outer IPv4 header's don't-fragment bit, which IPv6 does not have.
    pub fn asks_for_df(&self) -> bool {
        let udp = self.udp().is_some_and(|udp| udp.df != OuterDf::Unset);
        udp || self.ip_tunnel().is_some_and(|tunnel| tunnel.df.is_some())
    }

    /// The options of a tunnel without UDP; `None` without one.
    pub const fn ip_tunnel(&self) -> Option<IpTunnel> {
        match self {
            Self::Gre(gre) | Self::Gretap(gre) => Some(IpTunnel {
                key: gre.key,
                ttl: gre.ttl,
                df: gre.df,
            }),
            Self::Ipip(ipip) => Some(IpTunnel {
                key: None,
                ttl: ipip.ttl,
                df: ipip.df,
            }),
            _ => None,
        }
    }

    /// The options of a tunnel over UDP; `None` without one.
    pub const fn udp(&self) -> Option<UdpTunnel> {
        match self {
            Self::Vxlan(vxlan) => Some(UdpTunnel {
                vni: vxlan.vni,
                port: vxlan.port,
                df: vxlan.df,
                udp_checksum: vxlan.udp_checksum,
                source_ports: vxlan.source_ports,
                inner_vlan: vxlan.inner_vlan,
            }),
            Self::Geneve(geneve) => Some(UdpTunnel {
                vni: geneve.vni,
                port: geneve.port,
                df: geneve.df,
                udp_checksum: geneve.udp_checksum,
                source_ports: geneve.source_ports,
                inner_vlan: geneve.inner_vlan,
            }),
            _ => None,
        }
    }

    /// The same with the outer UDP checksum computed or not; of no meaning without a tunnel.
    #[must_use]
    pub fn with_udp_checksum(mut self, computed: bool) -> Self {
        match &mut self {
            Self::Vxlan(vxlan) => vxlan.udp_checksum = computed,
            Self::Geneve(geneve) => geneve.udp_checksum = computed,
            _ => {}
        }
        self
    }

    /// Bytes that this encapsulation takes from the underlay's IP MTU: the underlay's IP header, those of the kind and of
    /// its options (of GRE a key, RFC 2890, section 2), and inner Ethernet 14 and its tag where frames are carried. A VLAN
    /// tag on the line is no part of the IP packet. Over IPv6 without the encapsulation limit (RFC 2473, section 4.1.1),
    /// which a lab does not send.
    pub const fn overhead_bytes(&self, underlay: IpVersion) -> u32 {
        let ethernet = match self.kind().carries {
            Carries::OnTheLine => return 0,
            Carries::Frames => ETHERNET_BYTES + self.inner_tag_bytes(),
            Carries::Packets => 0,
        };
        let options = match self {
            Self::Geneve(geneve) => geneve.options.bytes(),
            Self::Gre(Gre { key: Some(_), .. }) | Self::Gretap(Gre { key: Some(_), .. }) => 4,
            _ => 0,
        };
        underlay.header_bytes() + self.kind().header_bytes + options + ethernet
    }

    /// Bytes of the tag inside the tunnel.
    pub const fn inner_tag_bytes(&self) -> u32 {
        match self.udp() {
            Some(UdpTunnel {
                inner_vlan: Some(_),
                ..
            }) => TAG_BYTES,
            _ => 0,
        }
    }

    /// Bytes that a frame on the line is longer by, beside [`Encapsulation::overhead_bytes`].
    pub const fn line_tag_bytes(&self) -> u32 {
        match self {
            Self::Vlan(_) => TAG_BYTES,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_packets_has_no_ethernet_header_inside() {
        let key = |key| Gre {
            key,
            ..Gre::default()
        };
        for (encapsulation, bytes) in [
            (Encapsulation::Gre(key(None)), 4),
            (Encapsulation::Gre(key(Some(0))), 8),
            (Encapsulation::Gretap(key(None)), 18),
            (Encapsulation::Gretap(key(Some(7))), 22),
            (Encapsulation::Ipip(Ipip::default()), 0),
            (Encapsulation::Wireguard(Wireguard::default()), 40),
        ] {
            assert!(encapsulation.is_tunnel() && encapsulation.udp().is_none());
            for (ip, header) in [(IpVersion::Ipv4, 20), (IpVersion::Ipv6, 40)] {
                assert_eq!(encapsulation.overhead_bytes(ip), bytes + header);
            }
        }
    }

    #[test]
    fn a_range_of_ports_begins_above_0_and_ends_no_earlier() {
        let range = SourcePorts::parse("1-65535").expect("a range");
        assert_eq!(range.to_string(), "1-65535");
        for none in ["0-5", "7-6", "5", "1-65536", "-1-5", "1-5-6", "+1-5", ""] {
            assert_eq!(SourcePorts::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_tunnel_of_a_record_without_the_newer_options_has_none_of_them() {
        let old = r#"{"vni":42,"port":4789,"df":"unset","udp_checksum":false}"#;
        let read: Vxlan = serde_json::from_str(old).expect("an older record");
        assert_eq!(read, Vxlan::default());
    }
}
