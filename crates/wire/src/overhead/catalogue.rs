//! Every encapsulation as data. Here is what the data is made of; `headers` has the lengths and their sources, `entries`
//! which encapsulation has which headers in which order.

use wirecost_model::ip::IpVersion;

mod entries;
mod headers;

use entries::CATALOGUE;
pub(super) use headers::{
    ESP_PADDING, FCS, GAP, LINE_ETHERNET, PREAMBLE, WIREGUARD_PADDING, ip_header,
};

/// A header or trailer of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// As the standard names it.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u32,
    /// The RFC, standard or kernel file that says so.
    pub source: &'static str,
}

/// One step of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// The IP header of the underlay's version.
    Ip,
    /// The IP header of the packet that is carried: it stays in front.
    CarriedIp,
    /// Always there.
    Header(Header),
    /// There with this option.
    With(&'static str, Header),
    /// As often as the option's number says.
    Times(Header),
    /// What is carried.
    Content,
    /// ESP's padding: pad length and next header behind it end on a multiple of 4 bytes.
    EspPadding,
    /// WireGuard's padding: to a multiple of 16 bytes, but never beyond the device's MTU.
    WireguardPadding,
}

/// What can be put into an encapsulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// IP packets.
    Ip,
    /// IP packets, or packets with MPLS labels.
    IpOrMpls,
    /// Ethernet frames.
    Frames,
}

/// What an encapsulation is to the frame on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// No encapsulation.
    Nothing,
    /// Makes an IP packet.
    Tunnel,
    /// Protects the IP packet that it is given, whose header stays in front.
    Transport,
    /// Stands between Ethernet header and payload; of two in one frame the higher order is outside.
    Shim(u8),
    /// Tags of the frame that the encapsulation before it carries.
    InnerTag,
    /// Tags of the frame on the line.
    OuterTag,
}

/// The order of MPLS among [`Role::Shim`]s.
pub(super) const MPLS_ORDER: u8 = 1;

/// What may stand behind the colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// Any of these words, joined by commas.
    AnyOf(&'static [Word]),
    /// One of these words; without one, the first.
    OneOf(&'static [Word]),
    /// A whole number.
    Number(Number),
}

/// An option and what it means, to follow the encapsulation's title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) word: &'static str,
    pub(super) means: &'static str,
}

/// A numeric option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) what: &'static str,
    pub(super) default: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) multiple_of: u32,
    /// Words that stand for a number.
    pub(super) named: &'static [(&'static str, u32)],
}

/// One encapsulation of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encapsulation {
    /// As it is written in a stack.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What one should know before relying on its figures; may be empty.
    pub note: &'static str,
    pub(super) role: Role,
    pub(super) carries: Carries,
    pub(super) takes: Takes,
    /// Outermost first.
    pub(super) layout: &'static [Piece],
}

/// The option of an encapsulation limit: only where the underlay is IPv6.
pub(super) const ENCAPLIMIT: &str = "encaplimit";

/// Every encapsulation that a stack can be made of.
pub fn every() -> &'static [Encapsulation] {
    CATALOGUE
}

/// The stacks that an overview shows, in its order; over IPv6 with those that Linux makes by default there.
pub fn shown(underlay: IpVersion) -> Vec<&'static str> {
    const SHOWN: &[&str] = &[
        "none",
        "vlan",
        "qinq",
        "pppoe",
        "mpls",
        "mpls:2",
        "macsec",
        "vxlan",
        "vxlan+vlan",
        "vxlan-gpe:ip",
        "vxlan-gpe:ethernet",
        "geneve",
        "geneve:ovn",
        "nvgre",
        "gretap",
        "gretap:encaplimit",
        "gre",
        "gre:key",
        "gre:encaplimit",
        "ipip",
        "ipip:encaplimit",
        "stt",
        "wireguard",
        "esp",
        "esp:natt",
        "geneve:ovn+esp",
        "geneve:ovn+esp-transport",
    ];
    let kept = |stack: &&&str| underlay == IpVersion::Ipv6 || !stack.contains(ENCAPLIMIT);
    SHOWN.iter().filter(kept).copied().collect()
}

/// What others call an encapsulation of the catalogue, as it is to be written here.
pub(super) const OTHER_NAMES: &[(&str, &str)] = &[
    ("wg", "wireguard"),
    ("ipsec", "esp"),
    ("ovn", "geneve:ovn"),
    ("ip6tnl", "ipip:encaplimit"),
    ("ip4in6", "ipip:encaplimit"),
    ("ip6gre", "gre:encaplimit"),
    ("ip6gretap", "gretap:encaplimit"),
    ("sit", "ipip"),
    ("802.1q", "vlan"),
    ("dot1q", "vlan"),
    ("802.1ad", "qinq"),
    ("q-in-q", "qinq"),
    ("802.1ae", "macsec"),
    ("gpe", "vxlan-gpe"),
    ("inner-vlan", "vlan"),
    ("inner-qinq", "qinq"),
];
