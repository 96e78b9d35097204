//! Headers and trailers: name, length, and the source of the length.

use wirecost_model::ip::IpVersion;

use super::Header;

pub(super) const fn header(name: &'static str, bytes: u32, source: &'static str) -> Header {
    Header {
        name,
        bytes,
        source,
    }
}

/// Ethernet's part of a frame on the line (IEEE 802.3); in total [`crate::line::FRAMING_BYTES`].
pub(in super::super) const PREAMBLE: Header = header(
    "preamble and start delimiter",
    8,
    "IEEE 802.3, 3.1.1, 3.2.1",
);
pub(in super::super) const LINE_ETHERNET: Header =
    header("Ethernet header", 14, "IEEE 802.3, 3.1.1");
pub(in super::super) const FCS: Header = header("frame check sequence", 4, "IEEE 802.3, 3.2.9");
pub(in super::super) const GAP: Header = header("interframe gap", 12, "IEEE 802.3, 4.4.2");

/// The inner Ethernet header, without an FCS, which no encapsulation carries.
pub(super) const ETHERNET: Header = header("inner Ethernet header", 14, "IEEE 802.3, 3.1.1");
pub(super) const UDP: Header = header("UDP header", 8, "RFC 768");
pub(super) const VLAN: Header = header("VLAN tag", 4, "IEEE 802.1Q, 9");
pub(super) const SERVICE_VLAN: Header = header("service VLAN tag", 4, "IEEE 802.1Q, 9");
pub(super) const ENCAPSULATION_LIMIT: Header = header(
    "encapsulation limit option",
    8,
    "RFC 2473, 4.1.1; net/ipv6/ip6_tunnel.c",
);
pub(super) const GRE: Header = header("GRE header", 4, "RFC 2784, 2.1");
pub(super) const GRE_CHECKSUM: Header = header("GRE checksum", 4, "RFC 2784, 2.1");
pub(super) const GRE_KEY: Header = header("GRE key", 4, "RFC 2890, 2");
pub(super) const GRE_SEQUENCE: Header = header("GRE sequence number", 4, "RFC 2890, 2");
pub(super) const ESP: Header = header("ESP header (SPI, sequence)", 8, "RFC 4303, 2");
pub(super) const ESP_IV: Header = header("AES-GCM IV", 8, "RFC 4106, 3.1");
pub(super) const ESP_TRAILER: Header = header("ESP pad length and next header", 2, "RFC 4303, 2");
pub(super) const ESP_ICV: Header = header("AES-GCM integrity check", 16, "RFC 4106, 6");

/// The IP header of a version, without options.
pub(in super::super) const fn ip_header(version: IpVersion) -> Header {
    let (name, source) = match version {
        IpVersion::Ipv4 => ("IPv4 header", "RFC 791, 3.1"),
        IpVersion::Ipv6 => ("IPv6 header", "RFC 8200, 3"),
    };
    header(name, version.header_bytes(), source)
}

/// Padding has no fixed length; these are the names and sources of its rules.
pub(in super::super) const ESP_PADDING: Header = header("ESP padding", 0, "RFC 4303, 2.4");
pub(in super::super) const WIREGUARD_PADDING: Header =
    header("WireGuard padding", 0, "drivers/net/wireguard/send.c");
