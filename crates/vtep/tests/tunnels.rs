//! Whole tunnels between namespaces: our endpoint with itself, and with the kernel's vxlan and geneve.

mod lab;
mod paced;

use std::process::Command;
use std::time::Duration;

use lab::{Lab, MACS, NO_OFFLOADS, VNI, allowed, bulk, echo, mac_text};
use wirecost_vtep::{Config, Counter, Counters, Format, Hook, Tunnel, Vtep};
use wirecost_wire::geneve::Options;

const MEGABYTE: usize = 1 << 20;
/// Outer checksum, outer IPv6, guest MTU, offloads on the underlay: each with each at least once.
const CASES: [(bool, bool, u32, bool); 6] = [
    (false, false, 1450, false),
    (true, false, 1450, false),
    (true, false, 8900, true),
    (false, true, 8900, false),
    (true, true, 1450, false),
    (false, true, 1450, true),
];
/// Divides into no MSS: each write ends in a short segment.
const ODD_WRITE: usize = 70_001;

/// Endpoints at both hosts. What the first one got before the second was there is not of interest.
fn both(lab: &Lab, config: impl Fn(usize) -> Config) -> [Vtep; 2] {
    [0, 1].map(|index| lab.endpoint(index, config(index)))
}

fn counted(ends: &[Vtep; 2]) -> [Counters; 2] {
    ends.each_ref().map(|end| end.counters().expect("counters"))
}

fn vxlan(index: usize, six: bool, udp_checksum: bool) -> Config {
    let tunnel = Tunnel {
        udp_checksum,
        ..Tunnel::vxlan(Lab::host(index + 1, six))
    };
    Config::new("under0", Format::Vxlan(tunnel))
}

fn geneve(index: usize, six: bool, udp_checksum: bool, options: Options) -> Config {
    let tunnel = Tunnel {
        udp_checksum,
        ..Tunnel::geneve(Lab::host(index + 1, six))
    };
    Config::new("under0", Format::Geneve(tunnel, options))
}

/// [`exercise`] between two endpoints in which nothing is lost; then they are taken down.
fn exercise_cleanly(lab: &Lab, ends: [Vtep; 2], guest_mtu: usize) -> [Counters; 2] {
    let before = counted(&ends);
    exercise(lab, guest_mtu);
    let after = counted(&ends);
    for end in ends {
        end.detach().expect("detached");
    }
    [0, 1].map(|index| {
        let counters = after[index].since(&before[index]);
        assert_eq!(counters.dropped(), 0, "{counters:?}");
        assert!(counters.get(Counter::Encapsulated) > 100, "{counters:?}");
        assert!(counters.get(Counter::Decapsulated) > 100, "{counters:?}");
        counters
    })
}

/// Both ways, IPv4 and IPv6 inside: datagrams of exactly the guest MTU, streams whose writes end anywhere.
fn exercise(lab: &Lab, guest_mtu: usize) {
    for (from, to) in [(0, 1), (1, 0)] {
        let (sender, receiver) = (&lab.guests[from], &lab.guests[to]);
        for six in [false, true] {
            let at = Lab::guest(to + 1, six);
            let headers = if six { 48 } else { 28 };
            let there = echo(sender, receiver, at, guest_mtu - headers);
            assert!(there, "{at}: no datagram of {guest_mtu} bytes");
            bulk(sender, receiver, at, 2 * MEGABYTE, 1 << 17);
            bulk(sender, receiver, at, 2 * MEGABYTE, ODD_WRITE);
        }
    }
}

#[test]
fn vxlan_carries_both_ways_with_and_without_checksums() {
    if !allowed() {
        return;
    }
    for (udp_checksum, six, guest_mtu, offloads) in CASES {
        let lab = Lab::new(guest_mtu + 70, guest_mtu);
        if !offloads {
            for host in &lab.hosts {
                host.features("under0", &NO_OFFLOADS);
            }
        }
        let ends = both(&lab, |index| vxlan(index, six, udp_checksum));
        let [sent, _] = exercise_cleanly(&lab, ends, guest_mtu as usize);
        assert_eq!(sent.get(Counter::Resegmented) > 0, udp_checksum, "{sent:?}");
    }
}

#[test]
fn geneve_carries_options_both_ways() {
    if !allowed() {
        return;
    }
    for (options, udp_checksum, six) in [
        (Options::none(), false, false),
        (Options::ovn(1, 2), true, false),
        (Options::ovn(1, 2), true, true),
        (Options::of_size(252).expect("a size"), false, true),
    ] {
        let lab = Lab::new(9000, 1450);
        for host in &lab.hosts {
            host.features("under0", &NO_OFFLOADS);
        }
        let ends = both(&lab, |index| {
            geneve(index, six, udp_checksum, options.clone())
        });
        exercise_cleanly(&lab, ends, 1450);
    }
}

#[test]
fn a_tag_is_carried_inside() {
    if !allowed() {
        return;
    }
    for udp_checksum in [false, true] {
        let lab = Lab::new(1500, 1446);
        let ends = both(&lab, |index| Config {
            inner_vlan: Some(100),
            ..vxlan(index, false, udp_checksum)
        });
        assert_eq!(ends[0].guest_mtu(), 1446);
        exercise_cleanly(&lab, ends, 1446);
    }
}

#[test]
fn formats_without_a_tunnel_carry_too() {
    if !allowed() {
        return;
    }
    for format in [Format::Plain, Format::Vlan { id: 42 }] {
        let lab = Lab::new(1500, 1500);
        let ends = both(&lab, |_| Config::new("under0", format.clone()));
        exercise_cleanly(&lab, ends, 1500);
        // The hosts' own addresses on the underlay work on.
        let ends = both(&lab, |_| Config::new("under0", format.clone()));
        assert!(echo(
            &lab.hosts[0],
            &lab.hosts[1],
            Lab::host(2, false),
            1000
        ));
        drop(ends);
    }
}

#[test]
fn clsact_does_where_there_is_no_tcx() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1450);
    let ends = both(&lab, |index| Config {
        hook: Hook::Clsact,
        ..vxlan(index, false, false)
    });
    exercise_cleanly(&lab, ends, 1450);
    let left = lab.hosts[0].command("tc", "filter show dev under0 ingress");
    assert_eq!(left.trim(), "", "a program is left");
}

/// What iproute2 calls the checksum of a tunnel's outer datagrams.
fn checksums(six: bool, udp_checksum: bool) -> &'static str {
    match (udp_checksum, six) {
        (true, false) => "udpcsum",
        (true, true) => "udp6zerocsumrx",
        (false, false) => "noudpcsum",
        (false, true) => "udp6zerocsumtx udp6zerocsumrx",
    }
}

fn kernel_vxlan(lab: &Lab, six: bool, udp_checksum: bool, guest_mtu: u32) {
    let (local, remote) = (Lab::host(2, six), Lab::host(1, six));
    let checksums = checksums(six, udp_checksum);
    let kind = format!(
        "vxlan id {VNI} local {local} remote {remote} dstport 4789 dev under0 nolearning {checksums}"
    );
    kernel_tunnel(lab, &kind, guest_mtu);
}

fn kernel_geneve(lab: &Lab, six: bool, udp_checksum: bool, guest_mtu: u32) {
    let (remote, checksums) = (Lab::host(1, six), checksums(six, udp_checksum));
    let kind = format!("geneve id {VNI} remote {remote} dstport 6081 {checksums}");
    kernel_tunnel(lab, &kind, guest_mtu);
}

/// The kernel's own tunnel at host 2, as a bridge's port would be used: guest 2 behind it.
fn kernel_tunnel(lab: &Lab, kind: &str, guest_mtu: u32) {
    let host = &lab.hosts[1];
    host.ip(&format!("link add tun0 mtu {guest_mtu} type {kind}"));
    host.ip(&format!(
        "link add br0 mtu {guest_mtu} type bridge stp_state 0 forward_delay 0"
    ));
    for device in ["tun0", "guest0"] {
        host.ip(&format!("link set {device} master br0"));
    }
    for device in ["tun0", "br0"] {
        host.ip(&format!("link set {device} up"));
    }
    // The bridge forwards at its slowest port's MTU.
    host.ip(&format!("link set guest0 mtu {guest_mtu}"));
    let mac = mac_text(MACS[0]);
    lab.guests[1].ip(&format!(
        "neighbour replace {} lladdr {mac} dev eth0 nud permanent",
        Lab::guest(1, false)
    ));
}

#[test]
fn vxlan_interoperates_with_the_kernels() {
    if !allowed() {
        return;
    }
    for (udp_checksum, six, guest_mtu, offloads) in CASES {
        interoperates(guest_mtu, offloads, |lab| {
            kernel_vxlan(lab, six, udp_checksum, guest_mtu);
            lab.endpoint(0, vxlan(0, six, udp_checksum))
        });
    }
}

#[test]
fn geneve_interoperates_with_the_kernels() {
    if !allowed() || !kernel_has_geneve() {
        return;
    }
    for (udp_checksum, six, guest_mtu, offloads) in CASES {
        interoperates(guest_mtu, offloads, |lab| {
            kernel_geneve(lab, six, udp_checksum, guest_mtu);
            // The kernel's device takes no critical option, and sends none.
            lab.endpoint(0, geneve(0, six, udp_checksum, Options::none()))
        });
    }
}

/// Whether this kernel has the driver; says so where not. `make test-kernels` tries kernels that have.
fn kernel_has_geneve() -> bool {
    let lab = Lab::new(1500, 1400);
    let add = "link add try0 type geneve id 1 remote 192.0.2.1";
    let has = lab.hosts[0].run(|| {
        let status = Command::new("ip").args(add.split(' ')).status();
        status.is_ok_and(|status| status.success())
    });
    has || wirecost_skips::lacks("this kernel has no geneve device")
}

/// Traffic both ways with our endpoint at host 1 and the kernel's at host 2, and nothing that either finds wrong. The
/// kernel's is there first: a datagram over IPv6 without a checksum that no socket receives counts as a checksum error
/// (net/ipv6/udp.c).
fn interoperates(guest_mtu: u32, offloads: bool, build: impl Fn(&Lab) -> Vtep) {
    let lab = Lab::new(guest_mtu + 70, guest_mtu);
    if !offloads {
        for host in &lab.hosts {
            host.features("under0", &NO_OFFLOADS);
        }
    }
    let ours = build(&lab);
    let before = ours.counters().expect("counters");
    exercise(&lab, guest_mtu as usize);
    let counters = ours.counters().expect("counters").since(&before);
    assert_eq!(counters.dropped(), 0, "{counters:?}");
    ours.detach().expect("detached");
    // A wrong checksum of ours would have been counted by the kernel.
    for (file, name) in [
        ("/proc/thread-self/net/snmp", "Udp: "),
        ("/proc/thread-self/net/snmp6", "Udp6InCsumErrors"),
    ] {
        let text = lab.hosts[1].run(|| std::fs::read_to_string(file).expect("counters"));
        assert_eq!(checksum_errors(&text, name), 0, "{text}");
    }
}

/// `InCsumErrors` of /proc/net/snmp (a line of names, one of values) or of snmp6 (a line each).
fn checksum_errors(text: &str, name: &str) -> u64 {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
    let value = match lines[..] {
        [names, values] => names
            .split_whitespace()
            .zip(values.split_whitespace())
            .find_map(|(name, value)| (name == "InCsumErrors").then_some(value)),
        [line] => line.split_whitespace().nth(1),
        _ => None,
    };
    value.expect("a counter").parse().expect("a number")
}

#[test]
fn a_guest_whose_mtu_is_too_large_is_told_and_nothing_stalls() {
    if !allowed() {
        return;
    }
    for six_outside in [false, true] {
        let lab = Lab::new(1500, 1500);
        let ends = both(&lab, |index| vxlan(index, six_outside, false));
        let before = counted(&ends);
        let fits = ends[0].guest_mtu();
        assert_eq!(fits, if six_outside { 1430 } else { 1450 });
        for six in [false, true] {
            let at = Lab::guest(2, six);
            bulk(&lab.guests[0], &lab.guests[1], at, MEGABYTE, 1 << 16);
            assert!(echo(&lab.guests[0], &lab.guests[1], at, 1452));
            let route = lab.guests[0].ip(&format!("route get {at}"));
            assert!(route.contains(&format!("mtu {fits}")), "{route}");
        }
        let counters = counted(&ends)[0].since(&before[0]);
        assert!(counters.get(Counter::TooBigAnswered) > 0, "{counters:?}");
        assert_eq!(counters.dropped(), 0, "{counters:?}");
    }
}

#[test]
fn a_guest_is_told_when_the_underlay_comes_to_take_less() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1450);
    let ends = both(&lab, |index| vxlan(index, false, false));
    let at = Lab::guest(2, false);
    assert!(echo(&lab.guests[0], &lab.guests[1], at, 1400));
    for host in &lab.hosts {
        host.ip("link set under0 mtu 1400");
    }
    // The programs look once a second.
    let told = || {
        echo(&lab.guests[0], &lab.guests[1], at, 1400);
        let route = lab.guests[0].ip(&format!("route get {at}"));
        route.contains("mtu 1350")
    };
    assert!((0..20).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        told()
    }));
    assert!(
        echo(&lab.guests[0], &lab.guests[1], at, 1400),
        "in two packets"
    );
    let counters = ends[0].counters().expect("counters");
    assert!(counters.get(Counter::TooBigAnswered) > 0, "{counters:?}");
}

#[test]
fn a_guest_without_checksum_offload_hears_too_big_as_well() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1500);
    let ends = both(&lab, |index| vxlan(index, false, false));
    let off = [("tx-checksum-ip-generic", false)];
    lab.hosts[0].features("guest0", &off);
    bulk(
        &lab.guests[0],
        &lab.guests[1],
        Lab::guest(2, false),
        MEGABYTE,
        1 << 16,
    );
    let counters = ends[0].counters().expect("counters");
    assert!(counters.get(Counter::TooBigAnswered) > 0, "{counters:?}");
}

#[test]
fn too_big_is_answered_at_a_limited_rate() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1500);
    let mut end = lab.endpoint(0, vxlan(0, false, false));
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2(MACS[0], MACS[1])
        .ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
        .udp(1, 2)
        .write(&mut frame, &[0; 1460])
        .expect("a datagram");
    for _ in 0..2000 {
        end.dry_run_from_guest("guest0", &frame).expect("tried");
    }
    let counters = end.counters().expect("counters");
    let (told, not) = (
        counters.get(Counter::TooBigAnswered),
        counters.get(Counter::TooBigUnanswered),
    );
    assert_eq!(told + not, 2000);
    assert!(told >= 50, "{counters:?}");
    assert!(not > 0, "{counters:?}");
}

#[test]
fn everything_goes_with_the_endpoint() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1450);
    // Index and name; a link may still come up.
    let devices = || -> Vec<String> {
        let listed = lab.hosts[0].ip("-o link");
        let names = listed
            .lines()
            .map(|line| line.splitn(3, ':').take(2).collect());
        names.collect()
    };
    let before = devices();
    let end = lab.endpoint(0, vxlan(0, false, true));
    assert!(devices().iter().any(|device| device.contains("wcseg")));
    drop(end);
    assert_eq!(devices(), before);
    std::thread::sleep(Duration::from_millis(1));
    // Attached again, it is a new one.
    let end = lab.endpoint(0, vxlan(0, false, true));
    assert!(end.counters().expect("counters").get(Counter::Decapsulated) == 0);
}
