//! Every encapsulation as data. This file defines the types; `headers` has the lengths and their
//! sources, `entries` the headers of each encapsulation in their order.

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
    /// Name in the standard.
    pub name: &'static str,
    /// Length in bytes.
    pub bytes: u32,
    /// RFC, standard or kernel file that defines the length.
    pub source: &'static str,
}

/// One element of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// An IP header of the underlay's version.
    Ip,
    /// The IP header of the carried packet, moved to the front.
    CarriedIp,
    /// A header that is always present.
    Header(Header),
    /// A header that is present with this option.
    With(&'static str, Header),
    /// A header that is present as often as the option's number.
    Times(Header),
    /// The carried packet or frame.
    Content,
    /// ESP's padding: pad length and next header after it end at a multiple of 4 bytes.
    EspPadding,
    /// WireGuard's padding: to a multiple of 16 bytes, but never beyond the device's MTU.
    WireguardPadding,
}

/// What an encapsulation can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InnerPayload {
    /// IP packets.
    Ip,
    /// IP packets, or packets with MPLS labels.
    IpOrMpls,
    /// Ethernet frames.
    Frames,
}

/// Role of an encapsulation in the frame on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// No encapsulation.
    Nothing,
    /// Produces an IP packet.
    Tunnel,
    /// Protects the IP packet that it carries, whose header moves to the front.
    Transport,
    /// Stands between Ethernet header and payload; of two in one frame the one with the higher order is outside.
    Shim(u8),
    /// Tags the frame that the encapsulation before it carries.
    InnerTag,
    /// Tags the frame on the line.
    OuterTag,
}

/// Order of MPLS among [`Role::Shim`]s.
pub(super) const MPLS_ORDER: u8 = 1;

/// What may follow the colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionSyntax {
    /// Nothing.
    Nothing,
    /// Any of these words, separated by commas.
    AnyOf(&'static [OptionWord]),
    /// One of these words; without one, the first.
    OneOf(&'static [OptionWord]),
    /// A whole number.
    Number(Number),
}

/// An option, and what it adds to the encapsulation's title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionWord {
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
pub struct CatalogueEntry {
    /// Name in a stack expression.
    pub name: &'static str,
    /// Title in a few words.
    pub title: &'static str,
    /// What to know before relying on the figures; may be empty.
    pub note: &'static str,
    pub(super) role: Role,
    pub(super) carries: InnerPayload,
    pub(super) syntax: OptionSyntax,
    /// Elements of the layout, outermost first.
    pub(super) layout: &'static [Piece],
}

/// Option for an encapsulation limit; IPv6 underlays only.
pub(super) const ENCAPLIMIT: &str = "encaplimit";

/// Every encapsulation of the catalogue.
pub fn every() -> &'static [CatalogueEntry] {
    CATALOGUE
}

/// The stacks of the overview, in its order. Over IPv6 they include those that Linux makes there by default.
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

/// Other names of the catalogue's encapsulations, each with the name to write here.
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
