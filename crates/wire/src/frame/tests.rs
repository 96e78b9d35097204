use etherparse::{Ethernet2Header, IpFragOffset, PacketBuilder, VlanId};
use proptest::prelude::*;

use super::*;
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

fn len(frame: &[u8]) -> u32 {
    frame.len() as u32
}

#[test]
fn a_guest_packet_of_1450_is_1500_on_the_underlay() {
    let payload = vec![7; 1450 - 28];
    let frame = in_vxlan(&datagram(&payload), TUNNEL);
    let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL)).expect("seen");
    assert_eq!(seen.outer_ip_bytes, 1500);
    assert_eq!(seen.frame_bytes, 1514);
    assert_eq!((seen.src_port, seen.dst_port), (1111, 2222));
    assert!(seen.df && !seen.fragment);
    assert_eq!(seen.payload, payload);
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
    let seen = innermost_udp(&frame[..128], len(&frame), Some(TUNNEL)).expect("seen");
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
    let seen = innermost_udp(&frame, len(&frame), Some(TUNNEL)).expect("seen");
    assert!(seen.fragment && !seen.df);

    set(&mut frame, false, 185);
    assert!(outer(&frame, len(&frame)).expect("outer").fragment);
    let error = innermost_udp(&frame, len(&frame), Some(TUNNEL)).expect_err("no UDP header");
    assert_eq!(
        error.to_string(),
        "UDP header at byte 34: missing from a fragment that begins at byte 1480 of its packet"
    );
}

#[test]
fn an_error_names_the_header_and_its_place() {
    let frame = in_vxlan(&datagram(b"probe"), TUNNEL);
    let read = |bytes: usize, tunnel| {
        innermost_udp(&frame[..bytes], len(&frame), tunnel)
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
    fn what_is_wrapped_is_found(payload in prop::collection::vec(any::<u8>(), 0..2000), vni in 0u32..1 << 24, port in 1u16..) {
        let id = VxlanId { port, vni };
        let frame = in_vxlan(&datagram(&payload), id);
        let seen = innermost_udp(&frame, len(&frame), Some(id)).expect("seen");
        prop_assert_eq!(seen.payload, &payload[..]);
        prop_assert_eq!(seen.outer_ip_bytes, len(&payload) + 28 + 50);
        prop_assert_eq!(seen.frame_bytes, seen.outer_ip_bytes + Ethernet2Header::LEN as u32);
    }

    #[test]
    fn a_cut_or_damaged_frame_never_panics(cut in 0usize..140, at in 0usize..140, byte: u8, tunnel: bool) {
        let mut frame = in_vxlan(&datagram(&[7; 40]), TUNNEL);
        if let Some(target) = frame.get_mut(at) {
            *target = byte;
        }
        frame.truncate(cut);
        let _ = innermost_udp(&frame, 140, tunnel.then_some(TUNNEL));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), ip in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0]), tunnel: bool) {
        let mut frame = bytes;
        if frame.len() > 14 {
            frame[12..14].copy_from_slice(&ip.to_be_bytes());
        }
        let _ = outer(&frame, 200);
        let _ = innermost_udp(&frame, 200, tunnel.then_some(TUNNEL));
    }
}
