//! The headers of each encapsulation in their order, outermost first.

use super::headers::{
    ENCAPSULATION_LIMIT, ESP, ESP_ICV, ESP_IV, ESP_TRAILER, ETHERNET, GRE, GRE_CHECKSUM, GRE_KEY,
    GRE_SEQUENCE, SERVICE_VLAN, UDP, VLAN, header,
};
use super::{
    CatalogueEntry, ENCAPLIMIT, InnerPayload, MPLS_ORDER, Number, OptionSyntax, OptionWord, Piece,
    Role,
};

const KEY: OptionWord = word("key", "with a key");
const CSUM: OptionWord = word("csum", "with a checksum");
const SEQ: OptionWord = word("seq", "with sequence numbers");
const LIMIT: OptionWord = word(ENCAPLIMIT, "with an encapsulation limit");
const NATT: OptionWord = word("natt", "in UDP (NAT traversal)");

const fn word(word: &'static str, means: &'static str) -> OptionWord {
    OptionWord { word, means }
}

const LIMIT_NOTE: &str = "Linux's ip6tnl, ip6gre and ip6gretap send an encapsulation limit by default, 8 bytes over \
    IPv6: write `:encaplimit`, or make the device with `encaplimit none`.";
const ESP_NOTE: &str = "ESP with AES-GCM and a 16-byte integrity check. Its padding makes the guest MTU a step \
    function of the underlay's: up to 3 bytes stay unused.";
const TAG_NOTE: &str = "A tag on the line lengthens the frame and takes nothing from the IP MTU; switches must take \
    frames that much longer.";

const NOTHING: CatalogueEntry = CatalogueEntry {
    name: "none",
    title: "no encapsulation",
    note: "",
    role: Role::Nothing,
    carries: InnerPayload::Ip,
    syntax: OptionSyntax::Nothing,
    layout: &[Piece::Content],
};

const fn tunnel(
    name: &'static str,
    title: &'static str,
    carries: InnerPayload,
    layout: &'static [Piece],
) -> CatalogueEntry {
    CatalogueEntry {
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
) -> CatalogueEntry {
    CatalogueEntry {
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
) -> CatalogueEntry {
    CatalogueEntry {
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

pub(super) const CATALOGUE: &[CatalogueEntry] = &[
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
        InnerPayload::Frames,
        &[
            Piece::Ip,
            Piece::Header(UDP),
            Piece::Header(header("VXLAN header", 8, "RFC 7348, 5")),
            Piece::Header(ETHERNET),
            Piece::Content,
        ],
    ),
    CatalogueEntry {
        syntax: OptionSyntax::OneOf(&[
            word("ip", "with IP inside"),
            word("ethernet", "with Ethernet inside"),
        ]),
        ..tunnel(
            "vxlan-gpe",
            "VXLAN-GPE",
            InnerPayload::Ip,
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
    CatalogueEntry {
        syntax: OptionSyntax::Number(Number {
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
            InnerPayload::Frames,
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
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[KEY, CSUM, SEQ, LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "gre",
            "GRE",
            InnerPayload::IpOrMpls,
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
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[KEY, CSUM, SEQ, LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "gretap",
            "Ethernet in GRE",
            InnerPayload::Frames,
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
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "nvgre",
            "NVGRE",
            InnerPayload::Frames,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Header(GRE),
                Piece::Header(header("GRE key (VSID, flow)", 4, "RFC 7637, 3.2")),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[LIMIT]),
        note: LIMIT_NOTE,
        ..tunnel(
            "ipip",
            "IP in IP",
            InnerPayload::Ip,
            &[
                Piece::Ip,
                Piece::With(ENCAPLIMIT, ENCAPSULATION_LIMIT),
                Piece::Content,
            ],
        )
    },
    CatalogueEntry {
        note: "WireGuard pads to a multiple of 16 bytes, but not beyond its device's MTU: full-size packets are not \
            padded, shorter ones are. Here the device's MTU is the size of the full packet that it carries.",
        ..tunnel(
            "wireguard",
            "WireGuard",
            InnerPayload::Ip,
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
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[NATT]),
        note: ESP_NOTE,
        ..tunnel(
            "esp",
            "ESP in tunnel mode",
            InnerPayload::Ip,
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
    CatalogueEntry {
        syntax: OptionSyntax::AnyOf(&[NATT]),
        role: Role::Transport,
        note: ESP_NOTE,
        ..tunnel(
            "esp-transport",
            "ESP in transport mode",
            InnerPayload::Ip,
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
    CatalogueEntry {
        note: "STT cuts a frame of up to 64 KiB into segments, of which only the first has the STT header and the \
            inner Ethernet header: these figures are for one segment a frame.",
        ..tunnel(
            "stt",
            "STT",
            InnerPayload::Frames,
            &[
                Piece::Ip,
                Piece::Header(header("TCP-like header", 20, "draft-davie-stt-08")),
                Piece::Header(header("STT header and padding", 18, "draft-davie-stt-08")),
                Piece::Header(ETHERNET),
                Piece::Content,
            ],
        )
    },
    CatalogueEntry {
        syntax: OptionSyntax::Number(Number {
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
    CatalogueEntry {
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
    CatalogueEntry {
        carries: InnerPayload::Frames,
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
