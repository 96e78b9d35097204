//! Encapsulations: how guests' frames cross the underlay.

pub mod description;
mod label;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use description::{Description, Driver, PayloadKind};

use crate::ip::IpVersion;

/// Size of an 802.1Q tag, bytes.
const TAG_BYTES: u32 = 4;
/// Size of an Ethernet header without tag or FCS, bytes.
const ETHERNET_BYTES: u32 = 14;

/// A level of the factor `encapsulation`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// No encapsulation: frames are bridged onto the underlay.
    None,
    /// An IEEE 802.1Q tag on the underlay.
    Vlan(Vlan),
    /// VXLAN (RFC 7348).
    Vxlan(Vxlan),
    /// Geneve (RFC 8926).
    Geneve(Geneve),
    /// GRE with the guests' IP packets inside (RFC 2784, RFC 2890). No frames are carried: the hosts route for the
    /// guests.
    Gre(Gre),
    /// GRE with the guests' frames inside (Linux's `gretap`; "transparent Ethernet bridging", RFC 1701, section 4).
    Gretap(Gre),
    /// IP in IP with the guests' IP packets inside (RFC 2003, RFC 2473, RFC 4213). The hosts route, as with GRE.
    Ipip(Ipip),
    /// WireGuard with the guests' IP packets inside, encrypted, over UDP (Linux's `wireguard`). The hosts route, as
    /// with GRE.
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
    /// Whether the outer UDP checksum is computed. If not, the field is zero, also over IPv6, where RFC 6935 allows
    /// that to tunnels and the receiver is set to accept it.
    pub udp_checksum: bool,
    /// Range of UDP source ports, from which the inner flow's hash chooses; `None` for the datapath's default.
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

/// Options of a Geneve tunnel; fields that VXLAN has too mean the same.
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
    /// Range of UDP source ports; `None` for the datapath's default.
    pub source_ports: Option<SourcePorts>,
    /// A VLAN tag that every frame carries inside the tunnel, 1 to 4094.
    pub inner_vlan: Option<u16>,
    /// Options behind the Geneve header of every packet.
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

/// Options of a GRE tunnel, with packets or frames inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Gre {
    /// The key in every packet (RFC 2890, section 2.1), 4 bytes: distinguishes tunnels between the same two hosts.
    pub key: Option<u32>,
    /// The outer TTL or hop limit, 1 to 255; `None` copies the inner packet's.
    pub ttl: Option<u8>,
    /// The outer IPv4 header's don't-fragment bit; `None` is the kernel's default, which sets it.
    pub df: Option<OuterDf>,
}

/// Options of an IP-in-IP tunnel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Ipip {
    /// The outer TTL or hop limit, 1 to 255; `None` copies the inner packet's.
    pub ttl: Option<u8>,
    /// The outer IPv4 header's don't-fragment bit, as for GRE; the kernel cannot keep it unset.
    pub df: Option<OuterDf>,
}

/// Options of a WireGuard tunnel. The keys are not among them: each lab has its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wireguard {
    /// UDP port that both hosts listen on and send to; wg(8) uses 51820.
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
    /// This many bytes of an experimental class: a multiple of 4, at most 252.
    Bytes(u8),
    /// The option that OVN puts in every packet: class 0x0102, type 0x80, four bytes of value, critical.
    Ovn,
}

impl GeneveOptions {
    /// No options.
    pub const NONE: Self = Self::Bytes(0);
    /// Most bytes of options in a header.
    pub const MOST_BYTES: u8 = 252;

    /// Bytes that the options take in the packet, option headers included.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bytes(bytes) => bytes as u32,
            Self::Ovn => 8,
        }
    }
}

/// As in plans: `ovn`, `64`.
impl fmt::Display for GeneveOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Ovn => f.write_str("ovn"),
        }
    }
}

/// A range of UDP ports, both ends included: 1 or higher, `last` not below `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourcePorts {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl SourcePorts {
    /// Parses `49152-65535`; `None` where the text is no such range.
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

/// As in plans: `49152-65535`.
impl fmt::Display for SourcePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// What becomes of the outer IPv4 header's don't-fragment bit (`IFLA_VXLAN_DF`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OuterDf {
    /// Never set: the kernel's default for VXLAN and Geneve.
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

/// Options that VXLAN and Geneve have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpTunnel {
    /// Virtual network identifier (VNI), 0 to 2^24 - 1.
    pub vni: u32,
    /// UDP destination port.
    pub port: u16,
    /// The outer IPv4 header's don't-fragment bit.
    pub df: OuterDf,
    /// Whether the outer UDP checksum is computed.
    pub udp_checksum: bool,
    /// Range of UDP source ports; `None` for the datapath's default.
    pub source_ports: Option<SourcePorts>,
    /// A VLAN tag inside the tunnel, 1 to 4094.
    pub inner_vlan: Option<u16>,
}

/// Options that GRE and IP in IP have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpTunnel {
    /// The GRE key; `None` without one and for IP in IP.
    pub key: Option<u32>,
    /// The outer TTL or hop limit; `None` copies the inner packet's.
    pub ttl: Option<u8>,
    /// The outer IPv4 header's don't-fragment bit; `None` for the kernel's default.
    pub df: Option<OuterDf>,
}

impl Encapsulation {
    /// Whether the guests' frames or packets travel inside IP packets of the hosts.
    pub const fn is_tunnel(&self) -> bool {
        self.kind().is_tunnel()
    }

    /// Whether it carries the guests' IP packets and not their frames: the hosts then route for the guests instead of
    /// bridging.
    pub const fn is_routed(&self) -> bool {
        matches!(self.kind().carries, PayloadKind::Packets)
    }

    /// Whether the plan says how the outer don't-fragment bit is set (for VXLAN and Geneve: other than unset). Only
    /// IPv4 has the bit.
    pub fn asks_for_df(&self) -> bool {
        let udp = self.udp().is_some_and(|udp| udp.df != OuterDf::Unset);
        udp || self.ip_tunnel().is_some_and(|tunnel| tunnel.df.is_some())
    }

    /// The options of GRE and IP in IP; `None` for any other encapsulation.
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

    /// The options of VXLAN and Geneve; `None` for any other encapsulation.
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

    /// This encapsulation with the outer UDP checksum computed or not; unchanged unless VXLAN or Geneve.
    #[must_use]
    pub fn with_udp_checksum(mut self, computed: bool) -> Self {
        match &mut self {
            Self::Vxlan(vxlan) => vxlan.udp_checksum = computed,
            Self::Geneve(geneve) => geneve.udp_checksum = computed,
            _ => {}
        }
        self
    }

    /// Bytes that this encapsulation takes from the underlay's IP MTU: the outer IP header, the headers of the kind and
    /// of its options (for GRE a key, RFC 2890, section 2), and where frames are carried the inner Ethernet header with
    /// its tag. A VLAN tag on the line is no part of the IP packet. Over IPv6 without the encapsulation limit option
    /// (RFC 2473, section 4.1.1), which a lab does not send.
    pub const fn overhead_bytes(&self, underlay: IpVersion) -> u32 {
        let ethernet = match self.kind().carries {
            PayloadKind::OnTheLine => return 0,
            PayloadKind::Frames => ETHERNET_BYTES + self.inner_tag_bytes(),
            PayloadKind::Packets => 0,
        };
        let options = match self {
            Self::Geneve(geneve) => geneve.options.bytes(),
            Self::Gre(Gre { key: Some(_), .. }) | Self::Gretap(Gre { key: Some(_), .. }) => 4,
            _ => 0,
        };
        underlay.header_bytes() + self.kind().header_bytes + options + ethernet
    }

    /// Bytes of the VLAN tag inside the tunnel; 0 without one.
    pub const fn inner_tag_bytes(&self) -> u32 {
        match self.udp() {
            Some(UdpTunnel {
                inner_vlan: Some(_),
                ..
            }) => TAG_BYTES,
            _ => 0,
        }
    }

    /// Bytes of a VLAN tag on the line, which lengthens frames in addition to [`Encapsulation::overhead_bytes`].
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
