use etherparse::{Ethernet2Header, IpFragOffset, PacketBuilder, VlanId};
use proptest::prelude::*;

use super::*;
use crate::geneve::{self, Options};
use crate::gre;
use crate::vlan::Tag;
use crate::vxlan;

const TUNNEL: VxlanId = VxlanId {
    port: 4789,
    vni: 42,
};

fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1111, 2222)
        .write(&mut frame, payload)
        .expect("a datagram");
    frame
}

fn in_vxlan(inner: &[u8], id: VxlanId) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(50_000, id.port)
        .write(&mut frame, &[&vxlan::header(id.vni)[..], inner].concat())
        .expect("a tunnelled frame");
    frame
}

fn datagram6(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([1; 16], [2; 16], 64)
        .udp(1111, 2222)
        .write(&mut frame, payload)
        .expect("a datagram");
    frame
}

fn in_vxlan6(inner: &[u8], id: VxlanId) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv6([3; 16], [4; 16], 64)
        .udp(50_000, id.port)
        .write(&mut frame, &[&vxlan::header(id.vni)[..], inner].concat())
        .expect("a tunnelled frame");
    frame
}

fn len(frame: &[u8]) -> u32 {
    frame.len() as u32
}

#[test]
fn a_guest_packet_of_1450_is_1500_on_the_underlay() {
    let payload = vec![7; 1450 - 28];
    let frame = in_vxlan(&datagram(&payload), TUNNEL);
    let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL.into())).expect("seen");
    assert_eq!(seen.outer_ip_bytes, 1500);
    assert_eq!(seen.frame_bytes, 1514);
    assert_eq!((seen.src_port, seen.dst_port), (1111, 2222));
    assert_eq!(seen.udp_bytes, 1450 - 20);
    assert!(seen.df && !seen.fragment);
    assert_eq!(seen.payload, payload);
}

#[test]
fn a_guest_packet_of_1430_is_1500_on_an_ipv6_underlay_whatever_the_guest_speaks() {
    let (of_v4, of_v6) = (vec![7; 1430 - 28], vec![7; 1430 - 48]);
    for (inner, payload) in [(datagram(&of_v4), &of_v4), (datagram6(&of_v6), &of_v6)] {
        let frame = in_vxlan6(&inner, TUNNEL);
        let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL.into())).expect("seen");
        assert_eq!((seen.outer_ip_bytes, seen.frame_bytes), (1500, 1514));
        assert!(seen.df && !seen.fragment);
        assert_eq!(seen.payload, payload);
    }
    let frame = in_vxlan(&datagram6(&of_v6), TUNNEL);
    let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL.into())).expect("seen");
    assert_eq!(seen.outer_ip_bytes, 1480);
}

/// Puts a fragment header (RFC 8200, section 4.5) behind the outer IPv6 header.
fn fragmented6(frame: &[u8], offset: u16, more: bool) -> Vec<u8> {
    let (mut header, rest) = etherparse::Ipv6Header::from_slice(&frame[14..]).expect("IPv6");
    let fragment = etherparse::Ipv6FragmentHeader::new(
        header.next_header,
        IpFragOffset::try_new(offset).expect("an offset"),
        more,
        7,
    );
    header.next_header = etherparse::IpNumber::IPV6_FRAGMENTATION_HEADER;
    header.payload_length += 8;
    [&frame[..14], &header.to_bytes(), &fragment.to_bytes(), rest].concat()
}

#[test]
fn fragments_of_an_ipv6_packet_are_known_by_their_header() {
    let whole = in_vxlan6(&datagram6(&[7; 1382]), TUNNEL);

    let first = fragmented6(&whole, 0, true);
    let seen = innermost_udp(&first, len(&first), Some(TUNNEL.into())).expect("seen");
    assert!(seen.fragment);
    assert_eq!((seen.src_port, seen.dst_port), (1111, 2222));

    let later = fragmented6(&whole, 181, false);
    assert!(outer(&later, len(&later)).expect("outer").fragment);
    let error = innermost_udp(&later, len(&later), Some(TUNNEL.into())).expect_err("no UDP header");
    assert_eq!(
        error.to_string(),
        "UDP header at byte 62: missing from a fragment that begins at byte 1448 of its packet"
    );

    // Offset 0 and nothing to follow is whole (RFC 6946), and 8 bytes longer than it has to be.
    let atomic = fragmented6(&whole, 0, false);
    let seen = innermost_udp(&atomic, len(&atomic), Some(TUNNEL.into())).expect("seen");
    assert_eq!((seen.fragment, seen.outer_ip_bytes), (false, 1508));
}

#[test]
fn without_a_tunnel_the_only_datagram_is_the_innermost() {
    let frame = datagram(b"probe");
    let seen = innermost_udp(&frame, len(&frame), None).expect("seen");
    assert_eq!((seen.outer_ip_bytes, seen.payload), (33, &b"probe"[..]));
}

#[test]
fn padding_of_a_short_frame_is_not_payload() {
    let mut frame = datagram(b"probe");
    frame.resize(60, 0);
    let seen = innermost_udp(&frame, 60, None).expect("seen");
    assert_eq!(seen.payload, b"probe");
}

#[test]
fn a_capture_cut_at_the_snap_length_still_tells_the_whole_length() {
    let frame = in_vxlan(&datagram(&[7; 8000]), TUNNEL);
    let seen = innermost_udp(&frame[..128], len(&frame), Some(TUNNEL.into())).expect("seen");
    assert_eq!(seen.outer_ip_bytes, 8000 + 28 + 50);
    assert_eq!(seen.frame_bytes, len(&frame));
    assert_eq!(seen.payload.len(), 128 - 92);
}

#[test]
fn a_tag_on_the_underlay_is_stepped_over() {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .single_vlan(VlanId::try_new(7).expect("a VLAN"))
        .ipv6([1; 16], [2; 16], 64)
        .udp(1111, 2222)
        .write(&mut frame, b"probe")
        .expect("a datagram");
    let seen = innermost_udp(&frame, len(&frame), None).expect("seen");
    assert_eq!((seen.outer_ip_bytes, seen.payload), (53, &b"probe"[..]));
}

#[test]
fn a_first_fragment_is_read_and_a_later_one_says_so() {
    let mut frame = in_vxlan(&datagram(&[7; 1450]), TUNNEL);
    let set = |frame: &mut Vec<u8>, more: bool, offset: u16| {
        let (mut header, _) = etherparse::Ipv4Header::from_slice(&frame[14..]).expect("IPv4");
        header.dont_fragment = false;
        header.more_fragments = more;
        header.fragment_offset = IpFragOffset::try_new(offset).expect("an offset");
        frame[14..34].copy_from_slice(&header.to_bytes());
    };
    set(&mut frame, true, 0);
    let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL.into())).expect("seen");
    assert!(seen.fragment && !seen.df);

    set(&mut frame, false, 185);
    assert!(outer(&frame, len(&frame)).expect("outer").fragment);
    let error = innermost_udp(&frame, len(&frame), Some(TUNNEL.into())).expect_err("no UDP header");
    assert_eq!(
        error.to_string(),
        "UDP header at byte 34: missing from a fragment that begins at byte 1480 of its packet"
    );
}

const GENEVE: GeneveId = GeneveId {
    port: geneve::PORT,
    vni: 42,
};

fn in_geneve(inner: &[u8], id: GeneveId, options: &Options) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(50_000, id.port)
        .write(
            &mut frame,
            &[&geneve::header(id.vni, options)[..], inner].concat(),
        )
        .expect("a tunnelled frame");
    frame
}

/// The frame with a tag behind its addresses.
fn tagged(frame: &[u8], id: u16) -> Vec<u8> {
    [&frame[..12], &Tag::new(id).bytes(), &frame[12..]].concat()
}

#[test]
fn geneve_is_read_with_its_options_and_cut_anywhere_behind_the_innermost_header() {
    for options in [
        Options::none(),
        Options::ovn(1, 2),
        Options::of_size(252).expect("a size"),
    ] {
        let frame = in_geneve(&datagram(&[7; 900]), GENEVE, &options);
        let headers = frame.len() - 900;
        let seen = innermost_udp(&frame[..headers + 40], len(&frame), Some(GENEVE.into()));
        let seen = seen.expect("seen");
        assert_eq!(seen.options, options.bytes());
        assert_eq!(seen.outer_ip_bytes, 928 + 50 + options.bytes().len() as u32);
        assert_eq!(seen.payload, [7; 40]);
    }
}

#[test]
fn what_is_not_the_tunnels_geneve_says_why() {
    let ovn = Options::ovn(1, 2);
    let frame = in_geneve(&datagram(b"probe"), GENEVE, &ovn);
    let said = |frame: &[u8], id: GeneveId| {
        innermost_udp(frame, len(frame), Some(id.into()))
            .expect_err("not what was looked for")
            .to_string()
    };
    let other = GeneveId { vni: 43, ..GENEVE };
    assert_eq!(
        said(&frame, other),
        "Geneve header at byte 42: the VNI is not the tunnel's"
    );
    assert_eq!(
        said(&frame, GeneveId { port: 1, ..GENEVE }),
        "Geneve header at byte 42: destination port 6081 is not the tunnel's"
    );
    assert_eq!(
        said(&frame[..55], GENEVE),
        "Geneve header at byte 42: 16 bytes needed, 13 captured"
    );
    let with = |at: usize, byte: u8| {
        let mut other = frame.clone();
        other[at] = byte;
        said(&other, GENEVE)
    };
    assert_eq!(with(42, 0x42), "Geneve header at byte 42: malformed");
    assert_eq!(with(43, 0xc0), "Geneve header at byte 42: a control packet");
    assert_eq!(
        with(44, 0x08),
        "Geneve header at byte 42: it carries Ethernet type 0x0858 and not Ethernet frames"
    );
}

#[test]
fn tags_outside_and_inside_are_told_apart() {
    let plain = datagram(b"probe");
    let on_the_line = tagged(&plain, 100);
    let seen = innermost_udp(&on_the_line, len(&on_the_line), None).expect("seen");
    assert_eq!((seen.vlan, seen.inner_vlan), (Some(100), None));
    assert_eq!(seen.frame_bytes, seen.outer_ip_bytes + 18);
    let both = tagged(&in_vxlan(&tagged(&plain, 7), TUNNEL), 100);
    let seen = innermost_udp(&both, len(&both), Some(TUNNEL.into())).expect("seen");
    assert_eq!((seen.vlan, seen.inner_vlan), (Some(100), Some(7)));
    assert_eq!(seen.outer_ip_bytes, 33 + 54);
    let seen = innermost_udp(&plain, len(&plain), None).expect("seen");
    assert_eq!((seen.vlan, seen.inner_vlan), (None, None));
}

#[test]
fn an_error_names_the_header_and_its_place() {
    let frame = in_vxlan(&datagram(b"probe"), TUNNEL);
    let read = |bytes: usize, tunnel: Option<VxlanId>| {
        innermost_udp(&frame[..bytes], len(&frame), tunnel.map(TunnelId::from))
            .expect_err("not what was looked for")
            .to_string()
    };
    let vni = VxlanId { vni: 43, ..TUNNEL };
    let port = VxlanId {
        port: 8472,
        ..TUNNEL
    };
    assert_eq!(
        read(frame.len(), Some(vni)),
        "VXLAN header at byte 42: the VNI is not the tunnel's"
    );
    assert_eq!(
        read(frame.len(), Some(port)),
        "VXLAN header at byte 42: destination port 4789 is not the tunnel's"
    );
    assert_eq!(
        read(86, Some(TUNNEL)),
        "UDP header at byte 84: 8 bytes needed, 2 captured"
    );
    assert_eq!(
        read(50, Some(TUNNEL)),
        "Ethernet header at byte 50: 14 bytes needed, 0 captured"
    );
    let mut arp = [0; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(
        outer(&arp, 60).expect_err("not IP").to_string(),
        "IP header at byte 14: Ethernet type 0x0806 is not IP"
    );
}

proptest! {
    #[test]
    fn what_is_wrapped_is_found(payload in prop::collection::vec(any::<u8>(), 0..2000), vni in 0u32..1 << 24, port in 1u16.., inner6: bool, outer6: bool) {
        let id = VxlanId { port, vni };
        let inner = if inner6 { datagram6(&payload) } else { datagram(&payload) };
        let frame = if outer6 { in_vxlan6(&inner, id) } else { in_vxlan(&inner, id) };
        let seen = innermost_udp(&frame, len(&frame), Some(id.into())).expect("seen");
        prop_assert_eq!(seen.payload, &payload[..]);
        let headers = if inner6 { 48 } else { 28 } + if outer6 { 70 } else { 50 };
        prop_assert_eq!(seen.outer_ip_bytes, len(&payload) + headers);
        prop_assert_eq!(seen.frame_bytes, seen.outer_ip_bytes + Ethernet2Header::LEN as u32);
    }

    #[test]
    fn a_cut_or_damaged_frame_never_panics(cut in 0usize..180, at in 0usize..180, byte: u8, tunnel: bool, ipv6: bool) {
        let mut frame = if ipv6 {
            fragmented6(&in_vxlan6(&datagram6(&[7; 40]), TUNNEL), 0, true)
        } else {
            in_vxlan(&datagram(&[7; 40]), TUNNEL)
        };
        if let Some(target) = frame.get_mut(at) {
            *target = byte;
        }
        frame.truncate(cut);
        let _ = innermost_udp(&frame, 140, tunnel.then_some(TUNNEL.into()));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), ip in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0]), tunnel: bool) {
        let mut frame = bytes;
        if frame.len() > 14 {
            frame[12..14].copy_from_slice(&ip.to_be_bytes());
        }
        let _ = outer(&frame, 200);
        let _ = innermost_udp(&frame, 200, tunnel.then_some(TUNNEL.into()));
    }
}

/// An IPv4 packet of another protocol around `payload`, as it is on the underlay.
fn carried_in_ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .write(&mut frame, protocol.into(), payload)
        .expect("a packet");
    frame
}

fn carried_in_ip6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv6([3; 16], [4; 16], 64)
        .write(&mut frame, protocol.into(), payload)
        .expect("a packet");
    frame
}

/// Ethernet headers have 14 bytes.
const ETHERNET_BYTES: usize = 14;

#[test]
fn packets_and_frames_in_gre_are_found_with_their_key_and_no_other() {
    let payload = vec![7; 1400];
    for inner in [datagram(&payload), datagram6(&payload)] {
        let ether_type = u16::from_be_bytes([inner[12], inner[13]]);
        for key in [None, Some(0), Some(7)] {
            for (frames, protocol, carried) in [
                (false, ether_type, &inner[ETHERNET_BYTES..]),
                (true, gre::ETHERNET, &inner[..]),
            ] {
                let packet = gre::tests::with_header(protocol, key, carried);
                let id = GreId { key, frames };
                for (frame, header) in [
                    (carried_in_ip(47, &packet), 20),
                    (carried_in_ip6(47, &packet), 40),
                ] {
                    let seen = innermost_udp(&frame, len(&frame), Some(id.into())).expect("seen");
                    let extra = 4 + if key.is_some() { 4 } else { 0 };
                    let expected = carried.len() + extra + header;
                    assert_eq!(seen.outer_ip_bytes as usize, expected);
                    assert_eq!(seen.payload, payload);
                    let other = GreId { key: Some(8), ..id };
                    let error = innermost_udp(&frame, len(&frame), Some(other.into()));
                    let problem = error.expect_err("another tunnel").problem;
                    assert_eq!(problem, Problem::OtherKey(key));
                    let unlike = GreId {
                        frames: !frames,
                        ..id
                    };
                    let error = innermost_udp(&frame, len(&frame), Some(unlike.into()));
                    let problem = error.expect_err("it carries something else").problem;
                    let expected = if frames {
                        Problem::NotIp(protocol)
                    } else {
                        Problem::NotEthernet(protocol)
                    };
                    assert_eq!(problem, expected);
                }
            }
        }
    }
}

#[test]
fn a_packet_in_a_packet_is_found_whatever_both_speak() {
    let payload = vec![7; 1400];
    for (inner, protocol) in [(datagram(&payload), 4), (datagram6(&payload), 41)] {
        let packet = &inner[ETHERNET_BYTES..];
        for (frame, header) in [
            (carried_in_ip(protocol, packet), 20),
            (carried_in_ip6(protocol, packet), 40),
        ] {
            let seen = innermost_udp(&frame, len(&frame), Some(TunnelId::IpInIp)).expect("seen");
            assert_eq!(seen.outer_ip_bytes as usize, packet.len() + header);
            assert_eq!(seen.payload, payload);
        }
    }
    let frame = datagram(&payload);
    let error = innermost_udp(&frame, len(&frame), Some(TunnelId::IpInIp)).expect_err("plain");
    insta::assert_snapshot!(error, @"IP header at byte 34: IP protocol 17 is not the tunnel's");
    let error = innermost_udp(
        &frame,
        len(&frame),
        Some(
            GreId {
                key: None,
                frames: true,
            }
            .into(),
        ),
    );
    insta::assert_snapshot!(error.expect_err("plain"), @"GRE header at byte 34: IP protocol 17 is not the tunnel's");
}
