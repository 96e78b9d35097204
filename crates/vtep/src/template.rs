//! The headers for one remote, as far as they are the same for every frame.

use std::net::IpAddr;

use wirecost_wire::{geneve, vxlan};

use crate::config::{Format, Tunnel};

const UDP: u8 = 17;

/// Outer headers with lengths, checksums, source port, VNI and MAC addresses left zero, and their partial checksums.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) bytes: Vec<u8>,
    /// Sum over the pseudo-header without length, UDP header and tunnel header.
    pub(crate) udp_sum: u32,
    /// Sum over the IPv4 header; 0 for IPv6.
    pub(crate) ip_sum: u32,
}

/// The template for a remote; `None` for formats without outer headers, and for addresses of different IP versions.
pub(crate) fn template(format: &Format, remote: IpAddr) -> Option<Template> {
    let (tunnel, header) = match format {
        Format::Plain | Format::Vlan { .. } => return None,
        Format::Vxlan(tunnel) => (tunnel, vxlan::header(0).to_vec()),
        Format::Geneve(tunnel, options) => (tunnel, geneve::header(0, options)),
    };
    let (ether_type, ip, addresses) = ip_header(tunnel, remote)?;
    let mut udp = vec![0, 0];
    udp.extend(tunnel.port.to_be_bytes());
    udp.extend([0; 4]);
    let udp_sum = sum(&addresses) + u32::from(u16::from(UDP).to_be()) + sum(&udp) + sum(&header);
    let ip_sum = if tunnel.local.is_ipv4() { sum(&ip) } else { 0 };
    let bytes = [&[0; 12][..], &ether_type.to_be_bytes(), &ip, &udp, &header].concat();
    Some(Template {
        bytes,
        udp_sum,
        ip_sum,
    })
}

/// Ethernet type, IP header without length and checksum, and the addresses in the header.
fn ip_header(tunnel: &Tunnel, remote: IpAddr) -> Option<(u16, Vec<u8>, Vec<u8>)> {
    match (tunnel.local, remote) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            // DF: an endpoint must not fragment (RFC 7348, 4.3). The identification may then be zero (RFC 6864).
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, tunnel.hop_limit, UDP, 0, 0];
            let addresses = [local.octets(), remote.octets()].concat();
            ip.extend(&addresses);
            Some((0x0800, ip, addresses))
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, UDP, tunnel.hop_limit];
            let addresses = [local.octets(), remote.octets()].concat();
            ip.extend(&addresses);
            Some((0x86dd, ip, addresses))
        }
        _ => None,
    }
}

/// Sum of 16-bit words in host byte order, folded to 16 bits (RFC 1071: the byte order does not matter).
fn sum(bytes: &[u8]) -> u32 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|word| {
            u32::from(u16::from_ne_bytes([
                word[0],
                word.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirecost_wire::geneve::Options;

    #[test]
    fn vxlan_over_ipv4_is_these_bytes() {
        let tunnel = Tunnel::vxlan(IpAddr::from([192, 0, 2, 1]));
        let made =
            template(&Format::Vxlan(tunnel), IpAddr::from([192, 0, 2, 2])).expect("one family");
        assert_eq!(
            made.bytes,
            [
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00, // Ethernet
                0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2,
                2, // IPv4
                0, 0, 0x12, 0xb5, 0, 0, 0, 0, // UDP
                0x08, 0, 0, 0, 0, 0, 0, 0, // VXLAN
            ]
        );
    }

    #[test]
    fn geneve_over_ipv6_has_its_options_behind_the_header() {
        let tunnel = Tunnel::geneve("2001:db8::1".parse().expect("address"));
        let format = Format::Geneve(tunnel, Options::ovn(1, 2));
        let made = template(&format, "2001:db8::2".parse().expect("address")).expect("one family");
        assert_eq!(made.bytes.len(), 14 + 40 + 8 + 8 + 8);
        assert_eq!(
            made.bytes[12..22],
            [0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64]
        );
        assert_eq!(made.bytes[62..], geneve::header(0, &Options::ovn(1, 2)));
        assert_eq!(made.ip_sum, 0);
    }

    #[test]
    fn addresses_of_two_families_make_no_header() {
        let tunnel = Tunnel::vxlan(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(
            template(&Format::Vxlan(tunnel), "::1".parse().expect("address")),
            None
        );
    }
}
