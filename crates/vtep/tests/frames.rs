//! Single frames through the programs (`BPF_PROG_TEST_RUN`): every format byte by byte, every reason to drop.

mod lab;

use std::net::IpAddr;

use etherparse::PacketBuilder;
use lab::{Lab, MACS, VNI, allowed};
use wirecost_vtep::{Config, Counter, DryRun, FdbDestination, Format, Tunnel, Verdict, Vtep};
use wirecost_wire::geneve::{self, GeneveOption, Options};
use wirecost_wire::{vlan::Tag, vxlan};

/// Headers in front of the inner frame: Ethernet, IP, UDP.
const OUTER: usize = 14 + 20 + 8;

struct Bench {
    vtep: Vtep,
    lab: Lab,
}

impl Bench {
    fn new(config: Config) -> Self {
        let lab = Lab::new(1500, 1500);
        let vtep = lab.endpoint(0, config);
        Self { vtep, lab }
    }

    /// Sends a guest's frame; the one counter that moved.
    fn send(&mut self, frame: &[u8]) -> (DryRun, Counter) {
        self.counting(|vtep| vtep.dry_run_from_guest("guest0", frame))
    }

    /// Receives a frame on the underlay; the one counter that moved.
    fn receive(&mut self, frame: &[u8]) -> (DryRun, Counter) {
        self.counting(|vtep| vtep.dry_run_from_underlay(frame))
    }

    /// The lab's own stray frames (router solicitations) are counted too: try again where two things were.
    fn counting(
        &mut self,
        work: impl Fn(&mut Vtep) -> Result<DryRun, wirecost_vtep::Error>,
    ) -> (DryRun, Counter) {
        for _ in 0..10 {
            let before = self.vtep.counters().expect("counters");
            let run = self.lab.hosts[0]
                .run(|| work(&mut self.vtep))
                .expect("tried");
            let moved = self.vtep.counters().expect("counters").since(&before);
            let moved: Vec<_> = moved.iter().filter(|&(_, count)| count > 0).collect();
            if let [(counter, 1)] = moved[..] {
                return (run, counter);
            }
        }
        panic!("never one frame counted alone");
    }

    #[track_caller]
    fn expect_dropped(&mut self, frame: &[u8], why: Counter) {
        let (run, counter) = self.receive(frame);
        assert_eq!((run.verdict, counter), (Verdict::Dropped, why));
    }
}

fn vxlan_tunnel(udp_checksum: bool, six: bool) -> Config {
    let tunnel = Tunnel {
        udp_checksum,
        source_ports: (50_000, 50_009),
        ..Tunnel::vxlan(Lab::host(1, six))
    };
    Config::new("under0", Format::Vxlan(tunnel))
}

fn geneve_tunnel(options: Options) -> Config {
    let tunnel = Tunnel {
        udp_checksum: true,
        ..Tunnel::geneve(Lab::host(1, false))
    };
    Config::new("under0", Format::Geneve(tunnel, options))
}

fn datagram(from: usize, payload: &[u8]) -> Vec<u8> {
    let (number, other) = (from as u8 + 1, 2 - from as u8);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(MACS[from], MACS[1 - from])
        .ipv4([10, 7, 0, number], [10, 7, 0, other], 64)
        .udp(1000, 2000)
        .write(&mut frame, payload)
        .expect("a datagram");
    frame
}

fn segment6(from: usize, payload: &[u8]) -> Vec<u8> {
    let address = |number: usize| match Lab::guest(number, true) {
        IpAddr::V6(v6) => v6.octets(),
        IpAddr::V4(_) => unreachable!(),
    };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(MACS[from], MACS[1 - from])
        .ipv6(address(from + 1), address(2 - from), 64)
        .tcp(1000, 2000, 7, 100)
        .write(&mut frame, payload)
        .expect("a segment");
    frame
}

fn arp() -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &MACS[0], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    frame.resize(42, 0x11);
    frame
}

/// What the other host would send with a UDP checksum: `tunnel` is all behind the UDP header.
fn from_remote(port: u16, tunnel: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([4; 6], [6; 6])
        .ipv4([10, 9, 0, 2], [10, 9, 0, 1], 64)
        .udp(55_555, port)
        .write(&mut frame, tunnel)
        .expect("a tunnelled frame");
    frame
}

fn in_vxlan(inner: &[u8]) -> Vec<u8> {
    from_remote(4789, &[&vxlan::header(VNI)[..], inner].concat())
}

/// Sum over an IP packet's UDP datagram and pseudo-header, the checksum included: 0xffff where it is right.
fn checksum_of(frame: &[u8]) -> u16 {
    let (addresses, udp) = if frame[12..14] == [8, 0] {
        (&frame[26..34], &frame[34..])
    } else {
        (&frame[22..54], &frame[54..])
    };
    let words = |bytes: &[u8]| -> u32 {
        bytes
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0)))
            .sum()
    };
    let mut sum = words(addresses) + 17 + udp.len() as u32 + words(udp);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn vxlan_is_the_bytes_of_rfc_7348() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(false, false));
    let inner = datagram(0, b"hello");
    let (run, counter) = bench.send(&inner);
    assert_eq!(
        (run.verdict, counter),
        (Verdict::Redirected, Counter::Encapsulated)
    );
    let frame = run.frame;
    assert_eq!(frame.len(), OUTER + 8 + inner.len());
    let (ip, behind) = etherparse::Ipv4Header::from_slice(&frame[14..]).expect("IPv4");
    assert_eq!((ip.source, ip.destination), ([10, 9, 0, 1], [10, 9, 0, 2]));
    assert_eq!(usize::from(ip.total_len), frame.len() - 14);
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert!(ip.dont_fragment && ip.time_to_live == 64);
    let (udp, behind) = etherparse::UdpHeader::from_slice(behind).expect("UDP");
    assert!((50_000..=50_009).contains(&udp.source_port), "{udp:?}");
    assert_eq!((udp.destination_port, udp.checksum), (4789, 0));
    assert_eq!(usize::from(udp.length), 8 + 8 + inner.len());
    assert_eq!(behind, [&vxlan::header(VNI)[..], &inner].concat());
}

#[test]
fn geneve_is_the_bytes_of_rfc_8926() {
    if !allowed() {
        return;
    }
    for options in [
        Options::none(),
        Options::ovn(3, 4),
        Options::of_size(252).expect("a size"),
    ] {
        let mut bench = Bench::new(geneve_tunnel(options.clone()));
        for inner in [datagram(0, b"hello"), segment6(0, b"hello"), arp()] {
            let (run, _) = bench.send(&inner);
            let expected = [geneve::header(VNI, &options), inner].concat();
            assert_eq!(run.frame[OUTER..], expected);
            assert_eq!(run.frame[36..38], geneve::PORT.to_be_bytes());
            assert_eq!(checksum_of(&run.frame), 0xffff);
        }
    }
}

#[test]
fn outer_checksums_are_right_whatever_is_inside() {
    if !allowed() {
        return;
    }
    for six in [false, true] {
        for inner_vlan in [None, Some(7)] {
            let mut bench = Bench::new(Config {
                inner_vlan,
                ..vxlan_tunnel(true, six)
            });
            let mut without_checksum = datagram(0, &[9; 333]);
            without_checksum[40..42].copy_from_slice(&[0, 0]);
            let mut fragment = datagram(0, &[5; 100]);
            fragment[20] = 0x20;
            let padded = [datagram(0, b"x"), vec![0xee; 17]].concat();
            let odd = [arp(), vec![1; 601]].concat();
            for inner in [
                datagram(0, b""),
                datagram(0, &[3; 1301]),
                segment6(0, &[7; 1000]),
                without_checksum,
                fragment,
                padded,
                odd,
                arp(),
            ] {
                let (run, _) = bench.send(&inner);
                assert_eq!(run.verdict, Verdict::Redirected);
                assert_eq!(checksum_of(&run.frame), 0xffff, "{inner:02x?}");
            }
        }
    }
}

#[test]
fn flows_take_different_source_ports_and_one_flow_always_the_same() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(false, false));
    let mut port = |frame: &[u8]| {
        let (run, _) = bench.send(frame);
        u16::from_be_bytes([run.frame[34], run.frame[35]])
    };
    let mut seen = std::collections::BTreeSet::new();
    for flow in 0..200u16 {
        let mut frame = datagram(0, b"flow");
        frame[34..36].copy_from_slice(&flow.to_be_bytes());
        let first = port(&frame);
        assert_eq!(first, port(&frame));
        seen.insert(first);
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
    assert!(seen.first() >= Some(&50_000) && seen.last() <= Some(&50_009));
}

#[test]
fn what_the_kernel_or_we_wrap_is_unwrapped() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(true, false));
    for inner in [datagram(1, &[4; 700]), segment6(1, b"x")] {
        let (run, counter) = bench.receive(&in_vxlan(&inner));
        assert_eq!(
            (run.verdict, counter),
            (Verdict::Redirected, Counter::Decapsulated)
        );
        assert_eq!(run.frame, inner);
    }
    // The reserved bits of VXLAN are ignored on receipt.
    let mut reserved = vxlan::header(VNI);
    reserved[0] |= 0xf7;
    reserved[7] = 9;
    let inner = datagram(1, b"reserved");
    let (run, _) = bench.receive(&from_remote(4789, &[&reserved[..], &inner].concat()));
    assert_eq!(run.frame, inner);

    let mut bench = Bench::new(geneve_tunnel(Options::ovn(1, 2)));
    let mut options = Options::ovn(9, 9);
    options
        .push(GeneveOption {
            class: 7,
            kind: 1,
            data: &[0; 8],
        })
        .expect("room");
    let tunnel = [geneve::header(VNI, &options), inner.clone()].concat();
    let (run, _) = bench.receive(&from_remote(6081, &tunnel));
    assert_eq!(run.frame, inner);
}

#[test]
fn what_is_not_the_tunnels_is_the_hosts() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(true, false));
    let whole = in_vxlan(&datagram(1, b"x"));
    let other_port = from_remote(4790, &whole[OUTER..]);
    let mut other_host = whole.clone();
    other_host[33] = 77;
    let mut tcp = whole.clone();
    tcp[23] = 6;
    for frame in [other_port, other_host, tcp, arp(), segment6(1, b"x")] {
        let run = bench.lab.hosts[0]
            .run(|| bench.vtep.dry_run_from_underlay(&frame))
            .expect("tried");
        assert_eq!((run.verdict, run.frame), (Verdict::Passed, frame));
    }
}

#[test]
fn hostile_and_broken_vxlan_is_dropped_and_counted() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(true, false));
    let inner = datagram(1, &[1; 64]);
    let whole = in_vxlan(&inner);

    bench.expect_dropped(&whole[..OUTER + 60], Counter::Short);
    bench.expect_dropped(&from_remote(4789, &[8, 0, 0]), Counter::Short);
    let mut longer = whole.clone();
    longer[38..40].copy_from_slice(&2000u16.to_be_bytes());
    bench.expect_dropped(&longer, Counter::Short);
    let mut fragment = whole.clone();
    fragment[20] = 0x20;
    bench.expect_dropped(&fragment, Counter::Fragment);
    let no_vni = [&[0; 8][..], &inner].concat();
    bench.expect_dropped(&from_remote(4789, &no_vni), Counter::BadHeader);
    let other_vni = [&vxlan::header(99)[..], &inner].concat();
    bench.expect_dropped(&from_remote(4789, &other_vni), Counter::UnknownVni);
    let mut stranger = whole.clone();
    stranger[29] = 55;
    bench.expect_dropped(&stranger, Counter::UnknownRemote);
    bench.expect_dropped(&in_vxlan(&inner[..13]), Counter::InnerTruncated);
    bench.expect_dropped(&in_vxlan(&inner[..20]), Counter::InnerTruncated);
    bench.expect_dropped(&in_vxlan(&inner[..80]), Counter::InnerTruncated);
    let mut lying = inner.clone();
    lying[14] = 0x52;
    bench.expect_dropped(&in_vxlan(&lying), Counter::InnerTruncated);
    let mut to_remote = datagram(1, b"x");
    to_remote[..6].copy_from_slice(&MACS[1]);
    bench.expect_dropped(&in_vxlan(&to_remote), Counter::NoDestination);

    // Outer TTL, ports, tunnel header, inner Ethernet header, inner TTL.
    for at in [22, 35, OUTER + 1, OUTER + 6, OUTER + 9, OUTER + 8 + 22] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        bench.expect_dropped(&damaged, Counter::BadChecksum);
    }
    let mut damaged = in_vxlan(&arp());
    damaged[OUTER + 8 + 40] ^= 1;
    bench.expect_dropped(&damaged, Counter::BadChecksum);
    // No checksum is no wrong one.
    let mut zero = whole;
    zero[40..42].copy_from_slice(&[0, 0]);
    assert_eq!(bench.receive(&zero).1, Counter::Decapsulated);
}

#[test]
fn hostile_and_broken_geneve_is_dropped_and_counted() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(geneve_tunnel(Options::ovn(1, 2)));
    let inner = datagram(1, &[1; 64]);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut tunnel = [geneve::header(VNI, &Options::ovn(1, 2)), inner.clone()].concat();
        change(&mut tunnel);
        from_remote(6081, &tunnel)
    };
    bench.expect_dropped(&with(&|t| t[0] |= 0x40), Counter::BadHeader);
    bench.expect_dropped(&with(&|t| t[1] |= 0x80), Counter::BadHeader);
    bench.expect_dropped(&with(&|t| t[2] = 0), Counter::BadHeader);
    bench.expect_dropped(&with(&|t| t[11] = 2), Counter::OptionBeyond);
    bench.expect_dropped(&with(&|t| t[0] = 0x3f), Counter::OptionBeyond);
    bench.expect_dropped(&with(&|t| t[10] = 0x81), Counter::CriticalOption);
    // Critical without the header's flag C is critical all the same.
    bench.expect_dropped(
        &with(&|t| {
            t[1] = 0;
            t[9] = 3;
        }),
        Counter::CriticalOption,
    );
    bench.expect_dropped(&with(&|t| t[6] = 1), Counter::UnknownVni);
    let unknown_but_harmless = with(&|t| {
        t[1] = 0;
        t[10] = 0x01;
    });
    assert_eq!(
        bench.receive(&unknown_but_harmless).1,
        Counter::Decapsulated
    );
}

#[test]
fn tags_inside_are_put_on_and_taken_off() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(Config {
        inner_vlan: Some(100),
        ..vxlan_tunnel(true, false)
    });
    let tagged = |mut frame: Vec<u8>, id| {
        frame.splice(12..12, Tag::new(id).bytes());
        frame
    };
    for inner in [datagram(0, b"x"), arp()] {
        let (run, _) = bench.send(&inner);
        assert_eq!(run.frame[OUTER + 8..], tagged(inner, 100));
    }
    let inner = datagram(1, b"x");
    let (run, _) = bench.receive(&in_vxlan(&tagged(inner.clone(), 100)));
    assert_eq!(run.frame, inner);
    bench.expect_dropped(&in_vxlan(&tagged(inner.clone(), 101)), Counter::InnerTag);
    bench.expect_dropped(&in_vxlan(&inner), Counter::InnerTag);
    bench.expect_dropped(
        &in_vxlan(&tagged(inner, 100)[..16]),
        Counter::InnerTruncated,
    );
}

#[test]
fn what_is_too_big_comes_back_as_an_answer_that_fits() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(false, false));
    let (run, counter) = bench.send(&datagram(0, &[0; 1450 - 28]));
    assert_eq!(
        (run.verdict, counter),
        (Verdict::Redirected, Counter::Encapsulated)
    );

    let big = datagram(0, &[0; 1451 - 28]);
    let (run, counter) = bench.send(&big);
    assert_eq!(
        (run.verdict, counter),
        (Verdict::Redirected, Counter::TooBigAnswered)
    );
    let answer = etherparse::SlicedPacket::from_ethernet(&run.frame).expect("whole");
    let Some(etherparse::NetSlice::Ipv4(ip)) = &answer.net else {
        panic!("no IPv4: {answer:?}");
    };
    assert_eq!(ip.header().source(), [10, 7, 0, 2]);
    assert_eq!(ip.header().destination(), [10, 7, 0, 1]);
    assert_eq!(
        ip.header().header_checksum(),
        ip.header().to_header().calc_header_checksum()
    );
    let Some(etherparse::TransportSlice::Icmpv4(icmp)) = &answer.transport else {
        panic!("no ICMP: {answer:?}");
    };
    let needed =
        etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1450 };
    assert_eq!(
        icmp.icmp_type(),
        etherparse::Icmpv4Type::DestinationUnreachable(needed)
    );
    assert_eq!(
        icmp.checksum(),
        icmp.icmp_type().calc_checksum(icmp.payload())
    );
    assert_eq!(icmp.payload()[..28], big[14..42]);
    assert_eq!(run.frame[..12], [MACS[0], MACS[1]].concat());

    let big = segment6(0, &[0; 1451 - 60]);
    let (run, counter) = bench.send(&big);
    assert_eq!(counter, Counter::TooBigAnswered);
    let answer = etherparse::SlicedPacket::from_ethernet(&run.frame).expect("whole");
    let Some(etherparse::NetSlice::Ipv6(ip)) = &answer.net else {
        panic!("no IPv6: {answer:?}");
    };
    let Some(etherparse::TransportSlice::Icmpv6(icmp)) = &answer.transport else {
        panic!("no ICMPv6: {answer:?}");
    };
    assert_eq!(
        icmp.icmp_type(),
        etherparse::Icmpv6Type::PacketTooBig { mtu: 1450 }
    );
    assert!(icmp.is_checksum_valid(ip.header().source(), ip.header().destination()));

    // Neither errors nor what goes to a group is answered.
    let mut group = datagram(0, &[0; 1500]);
    group[0] |= 1;
    assert_eq!(bench.send(&group).1, Counter::TooBigUnanswered);
    let mut error = datagram(0, &[0; 1500]);
    error[23] = 1;
    error[34] = 3;
    assert_eq!(bench.send(&error).1, Counter::TooBigUnanswered);
}

#[test]
fn frames_for_everyone_go_to_every_remote() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(true, false));
    let more: IpAddr = "10.9.0.3".parse().expect("address");
    bench.lab.hosts[1].ip("address add 10.9.0.3/24 dev under0");
    let hosts = &bench.lab.hosts;
    hosts[0]
        .run(|| bench.vtep.flood_to(VNI, more))
        .expect("a second remote");
    let before = bench.vtep.counters().expect("counters");
    let unknown = {
        let mut frame = datagram(0, b"who");
        frame[5] = 99;
        frame
    };
    for frame in [arp(), unknown] {
        let run = hosts[0]
            .run(|| bench.vtep.dry_run_from_guest("guest0", &frame))
            .expect("tried");
        // The last copy is the frame itself.
        assert_eq!(run.frame[30..34], [10, 9, 0, 3]);
        assert_eq!(run.frame[OUTER + 8..], frame);
        assert_eq!(checksum_of(&run.frame), 0xffff);
    }
    let counters = bench.vtep.counters().expect("counters").since(&before);
    assert!(counters.get(Counter::Encapsulated) >= 4, "{counters:?}");
    assert!(counters.get(Counter::Flooded) >= 2, "{counters:?}");
}

#[test]
fn guests_of_one_host_reach_each_other_and_others_vnis_do_not() {
    if !allowed() {
        return;
    }
    let mut bench = Bench::new(vxlan_tunnel(false, false));
    let host = &bench.lab.hosts[0];
    for (number, vni) in [(1, VNI), (2, VNI + 1)] {
        let device = format!("more{number}");
        host.ip(&format!(
            "link add {device} type veth peer name peer{number}"
        ));
        host.ip(&format!("link set {device} up"));
        let mac = [2, 0, 0, 0, 8, number];
        host.run(|| bench.vtep.add_guest(&device, vni))
            .expect("a guest");
        bench
            .vtep
            .set_fdb_entry(vni, mac, FdbDestination::Guest(device))
            .expect("an entry");
    }
    let to = |number| {
        let mut frame = datagram(0, b"local");
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 8, number]);
        frame
    };
    assert_eq!(bench.send(&to(1)).1, Counter::Switched);
    // Unknown in this segment: to the remotes, encapsulated.
    let run = bench.lab.hosts[0]
        .run(|| bench.vtep.dry_run_from_guest("guest0", &to(2)))
        .expect("tried");
    assert_eq!(run.frame[OUTER + 8..], to(2));
    bench.vtep.remove_guest("more1").expect("removed");
    assert_eq!(bench.send(&to(1)).1, Counter::Encapsulated);
    // Nothing of it is left: it can be a guest of another segment.
    bench.lab.hosts[0]
        .run(|| bench.vtep.add_guest("more1", VNI + 1))
        .expect("a guest");
}
