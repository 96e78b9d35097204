//! Every encapsulation as data: its headers and trailers, outermost first, each with its source.

use wirecost_model::ip::IpVersion;

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

const fn header(name: &'static str, bytes: u32, source: &'static str) -> Header {
    Header {
        name,
        bytes,
        source,
    }
}

/// Ethernet's share of a frame on the line (IEEE 802.3); together [`crate::line::FRAMING_BYTES`].
pub(super) const PREAMBLE: Header =
    header("preamble, start delimiter", 8, "IEEE 802.3, 3.1.1, 3.2.1");
pub(super) const LINE_ETHERNET: Header = header("Ethernet header", 14, "IEEE 802.3, 3.1.1");
pub(super) const FCS: Header = header("frame check sequence", 4, "IEEE 802.3, 3.2.9");
pub(super) const GAP: Header = header("interframe gap", 12, "IEEE 802.3, 4.4.2");

/// Without the FCS, which no encapsulation carries.
const ETHERNET: Header = header("Ethernet header, inside", 14, "IEEE 802.3, 3.1.1");
const UDP: Header = header("UDP header", 8, "RFC 768");
const VLAN: Header = header("VLAN tag", 4, "IEEE 802.1Q, 9");
const SERVICE_VLAN: Header = header("service VLAN tag", 4, "IEEE 802.1Q, 9");
const ENCAPSULATION_LIMIT: Header = header(
    "encapsulation limit option",
    8,
    "RFC 2473, 4.1.1; net/ipv6/ip6_tunnel.c",
);
const GRE: Header = header("GRE header", 4, "RFC 2784, 2.1");
const GRE_CHECKSUM: Header = header("GRE checksum", 4, "RFC 2784, 2.1");
const GRE_KEY: Header = header("GRE key", 4, "RFC 2890, 2");
const GRE_SEQUENCE: Header = header("GRE sequence number", 4, "RFC 2890, 2");
const ESP: Header = header("ESP header: SPI, sequence", 8, "RFC 4303, 2");
const ESP_IV: Header = header("AES-GCM IV", 8, "RFC 4106, 3.1");
const ESP_TRAILER: Header = header("ESP pad length, next header", 2, "RFC 4303, 2");
const ESP_ICV: Header = header("AES-GCM integrity check", 16, "RFC 4106, 6");

/// The IP header of a version, without options.
pub(super) const fn ip_header(version: IpVersion) -> Header {
    let (name, source) = match version {
        IpVersion::Ipv4 => ("IPv4 header", "RFC 791, 3.1"),
        IpVersion::Ipv6 => ("IPv6 header", "RFC 8200, 3"),
    };
    header(name, version.header_bytes(), source)
}

/// Padding has no fixed length: the rule's name and source.
pub(super) const ESP_PADDING: Header = header("ESP padding", 0, "RFC 4303, 2.4");
pub(super) const WIREGUARD_PADDING: Header =
    header("WireGuard padding", 0, "drivers/net/wireguard/send.c");

const KEY: Word = word("key", "with a key");
const CSUM: Word = word("csum", "with a checksum");
const SEQ: Word = word("seq", "with sequence numbers");
/// Only where the underlay is IPv6.
pub(super) const ENCAPLIMIT: &str = "encaplimit";
const LIMIT: Word = word(ENCAPLIMIT, "with an encapsulation limit");
const NATT: Word = word("natt", "in UDP (NAT traversal)");

const fn word(word: &'static str, means: &'static str) -> Word {
    Word { word, means }
}

const LIMIT_NOTE: &str = "Linux's ip6tnl, ip6gre and ip6gretap send an encapsulation limit by default, 8 bytes over \
    IPv6: write `:encaplimit`, or make the device with `encaplimit none`.";
const ESP_NOTE: &str = "ESP with AES-GCM and a 16-byte integrity check. Its padding makes the guest MTU a step \
    function of the underlay's: up to 3 bytes stay unused.";
const TAG_NOTE: &str = "A tag on the line lengthens the frame and takes nothing from the IP MTU; switches must take \
    frames that much longer.";

const NOTHING: Encapsulation = Encapsulation {
    name: "none",
    title: "no encapsulation",
    note: "",
    role: Role::Nothing,
    carries: Carries::Ip,
    takes: Takes::Nothing,
    layout: &[Piece::Content],
};

const fn tunnel(
    name: &'static str,
    title: &'static str,
    carries: Carries,
    layout: &'static [Piece],
) -> Encapsulation {
    Encapsulation {
        name,
        title,
        role: Role::Tunnel,
        carries,
        layout,
        ..NOTHING
    }
}

const fn shim(
    name: &'static str,
    title: &'static str,
    order: u8,
    layout: &'static [Piece],
) -> Encapsulation {
    Encapsulation {
        name,
        title,
        role: Role::Shim(order),
        layout,
        ..NOTHING
    }
}

const fn tag(
    name: &'static str,
    title: &'static str,
    role: Role,
    layout: &'static [Piece],
) -> Encapsulation {
    Encapsulation {
        name,
        title,
        role,
        layout,
        note: TAG_NOTE,
        ..NOTHING
    }
}

const ONE_TAG: &[Piece] = &[Piece::Header(VLAN), Piece::Content];
const TWO_TAGS: &[Piece] = &[
    Piece::Header(SERVICE_VLAN),
    Piece::Header(VLAN),
    Piece::Content,
];

const CATALOGUE: &[Encapsulation] = &[
    NOTHING,
    tag("vlan", "VLAN tag", Role::InnerTag, ONE_TAG),
    tag("qinq", "two VLAN tags", Role::InnerTag, TWO_TAGS),
    tag(
        "outer-vlan",
        "a VLAN tag on the line",
        Role::OuterTag,
        ONE_TAG,
    ),
    tag(
        "outer-qinq",
        "two VLAN tags on the line",
        Role::OuterTag,
        TWO_TAGS,
    ),
    tunnel(
        "vxlan",
        "VXLAN",
        Carries::Frames,
        &[
            Piece::Ip,
            Piece::Header(UDP),
            Piece::Header(header("VXLAN header", 8, "RFC 7348, 5")),
            Piece::Header(ETHERNET),
            Piece::Content,
        ],
    ),
    Encapsulation {
        takes: Takes::OneOf(&[
            word("ip", "with IP inside"),
            word("ethernet", "with Ethernet inside"),
        ]),
        ..tunnel(
            "vxlan-gpe",
            "VXLAN-GPE",
            Carries::Ip,
            &[
                Piece::Ip,
                Piece::Header(UDP),
                Piece::Header(header(
                    "VXLAN-GPE header",
                    8,
                    "draft-ietf-nvo3-vxlan-gpe; include/net/vxlan.h",
                )),
                Piece::With("ethernet", ETHERNET),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::Number(Number {
            what: "option bytes",
            default: 0,
            min: 0,
            max: 252, // 6 bits of 4-byte words (RFC 8926, 3.4)
            multiple_of: 4,
            named: &[("ovn", 8)], // class 0x0102, type 0x80, 4 bytes of ports (ovn-architecture(7))
        }),
        ..tunnel(
            "geneve",
            "Geneve",
            Carries::Frames,
            &[
                Piece::Ip,
                Piece::Header(UDP),
                Piece::Header(header("Geneve header", 8, "RFC 8926, 3.4")),
                Piece::Times(header("Geneve options", 1, "RFC 8926, 3.5")),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[KEY, CSUM, SEQ, LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "gre",
            "GRE",
            Carries::IpOrMpls,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Header(GRE),
                Piece::With("csum", GRE_CHECKSUM),
                Piece::With("key", GRE_KEY),
                Piece::With("seq", GRE_SEQUENCE),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[KEY, CSUM, SEQ, LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "gretap",
            "Ethernet in GRE",
            Carries::Frames,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Header(GRE),
                Piece::With("csum", GRE_CHECKSUM),
                Piece::With("key", GRE_KEY),
                Piece::With("seq", GRE_SEQUENCE),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "nvgre",
            "NVGRE",
            Carries::Frames,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Header(GRE),
                Piece::Header(header("GRE key: VSID, flow", 4, "RFC 7637, 3.2")),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "ipip",
            "IP in IP",
            Carries::Ip,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        note: "WireGuard pads to a multiple of 16 bytes, but not beyond its device's MTU: full-size packets are not \
            padded, shorter ones are. Here the device's MTU is the size of the full packet that it carries.",
        ..tunnel(
            "wireguard",
            "WireGuard",
            Carries::Ip,
            &[
                Piece::Ip,
                Piece::Header(UDP),
                Piece::Header(header(
                    "WireGuard header",
                    16,
                    "drivers/net/wireguard/messages.h",
                )),
                Piece::Content,
                Piece::WireguardPadding,
                Piece::Header(header("Poly1305 tag", 16, "RFC 8439, 2.8")),
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[NATT]),
        note: ESP_NOTE,
        ..tunnel(
            "esp",
            "ESP in tunnel mode",
            Carries::Ip,
            &[
                Piece::Ip,
                Piece::With("natt", UDP),
                Piece::Header(ESP),
                Piece::Header(ESP_IV),
                Piece::Content,
                Piece::EspPadding,
                Piece::Header(ESP_TRAILER),
                Piece::Header(ESP_ICV),
            ],
        )
    },
    Encapsulation {
        takes: Takes::AnyOf(&[NATT]),
        role: Role::Transport,
        note: ESP_NOTE,
        ..tunnel(
            "esp-transport",
            "ESP in transport mode",
            Carries::Ip,
            &[
                Piece::CarriedIp,
                Piece::With("natt", UDP),
                Piece::Header(ESP),
                Piece::Header(ESP_IV),
                Piece::Content,
                Piece::EspPadding,
                Piece::Header(ESP_TRAILER),
                Piece::Header(ESP_ICV),
            ],
        )
    },
    Encapsulation {
        note: "STT cuts a frame of up to 64 KiB into segments, of which only the first has the STT header and the \
            inner Ethernet header: these figures are for one segment a frame.",
        ..tunnel(
            "stt",
            "STT",
            Carries::Frames,
            &[
                Piece::Ip,
                Piece::Header(header("TCP-like header", 20, "draft-davie-stt-08")),
                Piece::Header(header("STT header, padding", 18, "draft-davie-stt-08")),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        takes: Takes::Number(Number {
            what: "labels",
            default: 1,
            min: 1,
            max: 30, // MAX_NEW_LABELS in net/mpls/internal.h
            multiple_of: 1,
            named: &[],
        }),
        ..shim(
            "mpls",
            "MPLS",
            MPLS_ORDER,
            &[
                Piece::Times(header("MPLS label", 4, "RFC 3032, 2.1")),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        note: "PPPoE above 1492 bytes needs RFC 4638 (PPP-Max-Payload) on both sides.",
        ..shim(
            "pppoe",
            "PPPoE",
            2,
            &[
                Piece::Header(header("PPPoE header", 6, "RFC 2516, 4")),
                Piece::Header(header("PPP protocol", 2, "RFC 1661, 2")),
                Piece::Content,
            ],
        )
    },
    Encapsulation {
        carries: Carries::Frames,
        note: "MACsec with an explicit SCI, as Linux reserves it (drivers/net/macsec.c, macsec_extra_len); a tag \
            written behind it is protected and takes from the MTU.",
        ..shim(
            "macsec",
            "MACsec",
            3,
            &[
                Piece::Header(header("SecTAG with SCI", 16, "IEEE 802.1AE, 9.3")),
                Piece::Content,
                Piece::Header(header("MACsec integrity check", 16, "IEEE 802.1AE, 9.11")),
            ],
        )
    },
];

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
