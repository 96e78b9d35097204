//! IPv6 guests and IPv6 underlays: built, proven, measured; silent beside the load; and not proven where
//! the path is a byte too small.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{Record, TestDir, lab_can_be_built, lock_shared, run, succeeds};
use crate::direct_lab::{NEVER, lab};
use wirecost_control::Lab;
use wirecost_model::cell::{Cell, Network};
use wirecost_model::fixtures;
use wirecost_model::ip::IpVersion::{self, Ipv4, Ipv6};
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Encapsulation, Vxlan};
use wirecost_model::sample::{Proof, ProofTime, Sample};

/// Every way in which the two versions meet, at a rate that any machine reaches.
const EVERY_WAY: &str = "\
name: every-way
underlay: { mtu: 9000, rate: 1gbit, ip: [ipv4, ipv6] }
guest_mtu: [1500, max]
guest_ip: [ipv4, ipv6]
encapsulation: [none, vxlan]
offload: [none, tunnel]
repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }
";

const UNDERLAY_MTU: u32 = 9000;
/// Inner Ethernet 14, VXLAN 8, UDP 8, and the outer header (RFC 7348, section 5).
fn overhead(cell: &Cell) -> u32 {
    match (
        cell.levels["encapsulation"].as_str(),
        cell.levels.get("underlay.ip").map(String::as_str),
    ) {
        ("none", None) => 0,
        ("vxlan", Some("ipv4")) => 50,
        ("vxlan", Some("ipv6")) => 70,
        other => panic!("{other:?}: {cell:?}"),
    }
}

/// TCP, timestamps and the guests' IP header (RFC 9293, RFC 7323).
fn headers(cell: &Cell) -> u32 {
    match cell.levels["guest_ip"].as_str() {
        "ipv4" => 20 + 20 + 12,
        "ipv6" => 40 + 20 + 12,
        other => panic!("{other}"),
    }
}

#[test]
fn every_way_is_proven_at_exactly_its_mtu_and_measured_below_its_own_limit() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(EVERY_WAY);

    let ended = run(place.run_command(&plan, "out").arg("--json"));

    ended.expect_code(0);
    let result = ended.document();
    let record = Record::read(&place.path().join("out")).expect("a record");
    // Without a tunnel the underlay's IP is no factor: 2 guest MTUs x 2 guests x 2 offloads x (1 + 2).
    assert_eq!(record.head.experiment.cells.len(), 24);
    assert_eq!(record.samples.len(), 24);
    let mut looked_for = BTreeSet::new();
    for sample in &record.samples {
        let cell = &record.head.experiment.cells[sample.cell as usize];
        assert_eq!(sample.invalid, None, "{sample:#?}");
        let largest = UNDERLAY_MTU - overhead(cell);
        let mtu = match cell.levels["guest_mtu"].as_str() {
            "1500" => 1500,
            _ => largest,
        };
        assert_eq!(cell.guest_mtu, mtu, "{cell:?}");
        proven_both_ways(sample, cell, &mut looked_for);
        segments_are_full(sample, cell);
        let shown = &result["cells"][sample.cell as usize];
        below_the_limit(sample, cell, shown["line_limit_gbps"].as_f64());
    }
    // Guest MTU x guest IP x the three ways to cross.
    assert_eq!(looked_for.len(), 12);

    // Each of the two tunnels is compared with the one cell that has none.
    let effects = result["effects"].as_array().expect("effects");
    let of = |factor: &str| {
        let mine = effects.iter().filter(|effect| effect["factor"] == factor);
        mine.filter(|effect| effect["metric"] == "throughput")
            .count()
    };
    // 1500 is the same guest MTU everywhere, and so is the label `max`.
    assert_eq!(of("encapsulation"), 2 * 2 * 2 * 2);
    assert_eq!(of("underlay.ip"), 2 * 2 * 2);
    assert_eq!(of("guest_ip"), 3 * 2 * 2);
}

fn proven_both_ways(sample: &Sample, cell: &Cell, looked_for: &mut BTreeSet<(Network, u32)>) {
    let first = looked_for.insert((cell.network.clone(), cell.guest_mtu));
    let proofs: BTreeSet<_> = sample
        .proofs
        .iter()
        .map(|proof| (proof.when == ProofTime::Before, proof.from.as_str()))
        .collect();
    let both = [(false, "a"), (false, "b"), (true, "a"), (true, "b")];
    assert_eq!(proofs, BTreeSet::from(both), "{sample:#?}");
    for proof in &sample.proofs {
        assert!(proof.proven && proof.size == cell.guest_mtu, "{proof:?}");
        if !(first && proof.when == ProofTime::Before) {
            continue;
        }
        let frame = proof.seen.as_ref().expect("looked for on the underlay");
        assert_eq!(frame.outer_ip_bytes, cell.guest_mtu + overhead(cell));
        assert_eq!(frame.frame_bytes, frame.outer_ip_bytes + 14);
        assert!(!frame.fragment, "{frame:?}");
    }
}

fn segments_are_full(sample: &Sample, cell: &Cell) {
    for flow in &sample.loads[0].flows {
        assert!(flow.bytes > 0, "{flow:?}");
        let sender = flow.sender.as_ref().expect("a socket");
        assert_eq!(sender.snd_mss, cell.guest_mtu - headers(cell), "{cell:?}");
        assert_eq!(sender.pmtu, cell.guest_mtu, "{cell:?}");
    }
}

fn below_the_limit(sample: &Sample, cell: &Cell, shown: Option<f64>) {
    // Worked out here once more, from the standards' numbers alone.
    let payload = f64::from(cell.guest_mtu - headers(cell));
    let on_the_line = f64::from(cell.guest_mtu + overhead(cell) + 38);
    let limit = payload / on_the_line;
    let shown = shown.expect("a rate");
    assert!((shown - limit).abs() < 1e-9, "{shown} of {limit}: {cell:?}");
    let gbps = sample.throughput().expect("throughput") / 1e9;
    // Who is preempted just before a window reads within it what had come before.
    let slack = if sample.marks.is_empty() { 1.01 } else { 1.10 };
    println!("{gbps:.4} of {limit:.4}: {:?}", cell.levels);
    assert!(gbps > 0.0 && gbps <= limit * slack, "{gbps}: {cell:?}");
}

fn network(encapsulation: Encapsulation, underlay_ip: IpVersion, guest_ip: IpVersion) -> Network {
    Network {
        underlay_mtu: UNDERLAY_MTU,
        underlay_ip,
        encapsulation,
        guest_ip,
        ..fixtures::network()
    }
}

/// Every way to cross with IPv6 in it.
fn ways_with_ipv6() -> [Network; 4] {
    let vxlan = || Encapsulation::Vxlan(Vxlan::default());
    [
        network(Encapsulation::None, Ipv4, Ipv6),
        network(vxlan(), Ipv4, Ipv6),
        network(vxlan(), Ipv6, Ipv4),
        network(vxlan(), Ipv6, Ipv6),
    ]
}

fn largest(network: &Network) -> u32 {
    network.underlay_mtu - network.overhead_bytes()
}

fn prove(lab: &mut Lab, size: u32) -> Vec<Proof> {
    lab.prove(ProofTime::Before, size, &NEVER)
        .expect("the agents answer")
}

/// Changes the underlay's MTU behind the agents' backs, on the host of process `pid`.
fn set_underlay_mtu(pid: u32, mtu: u32) {
    let mut command = Command::new("nsenter");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command
        .args(["--target", &pid.to_string(), "--net", "ip", "link", "set"])
        .args(["underlay", "mtu", &mtu.to_string()]);
    assert!(succeeds(&mut command), "{command:?}");
}

#[test]
fn an_underlay_that_is_one_byte_too_small_is_found_whichever_ip_it_carries() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for network in ways_with_ipv6() {
        let mut lab = lab(&network);
        let size = largest(&network);
        let offload = Offload::profile(Profile::None);
        lab.adapt(size, &offload, &NEVER).expect("adapted");
        for proof in prove(&mut lab, size) {
            assert!(proof.proven, "{network}: {proof:?}");
            let seen = proof.seen.expect("looked for");
            assert_eq!(seen.outer_ip_bytes, UNDERLAY_MTU, "{network}");
        }

        // The fault is on both hosts: a veth lets its receiving end's MTU be exceeded by 4 bytes.
        for pid in lab.pids() {
            set_underlay_mtu(pid, UNDERLAY_MTU - 1);
        }
        for proof in prove(&mut lab, size) {
            println!("{network}: {}", proof.reason.as_deref().unwrap_or("proven"));
            assert!(!proof.proven, "{network}: {proof:?}");
            let reason = proof.reason.expect("a reason");
            assert!(
                reason.contains(&size.to_string()) || reason.contains("fragments"),
                "{network}: {reason}"
            );
        }

        for pid in lab.pids() {
            set_underlay_mtu(pid, UNDERLAY_MTU);
        }
    }
}

/// Addresses in /proc/net/if_inet6 (net/ipv6/addrconf.c, `if6_seq_show`) of a task's namespace:
/// device, address in hexadecimal, flags.
fn ipv6_addresses(task: u32) -> Vec<(String, String, u32)> {
    let text = fs::read_to_string(format!("/proc/{task}/net/if_inet6")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let flags = u32::from_str_radix(fields[4], 16).expect("flags");
            (fields[5].to_owned(), fields[0].to_owned(), flags)
        })
        .collect()
}

#[test]
fn a_device_has_the_one_address_it_needs_and_may_use_it_at_once() {
    const TENTATIVE: u32 = 0x40;
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let ipv4_only = network(Encapsulation::Vxlan(Vxlan::default()), Ipv4, Ipv4);
    for network in ways_with_ipv6().iter().chain([&ipv4_only]) {
        let lab = lab(network);
        let guests = lab.guest_tids().each_ref().map(|tids| tids[0]);
        for (side, (host, guest)) in (1..).zip(lab.pids().into_iter().zip(guests)) {
            let wanted = |is_used: bool, device: &str, subnet: &str| {
                let address = format!("20010002{subnet:0>8}{side:0>16}");
                is_used
                    .then(|| (device.to_owned(), address))
                    .into_iter()
                    .collect::<Vec<_>>()
            };
            let of = |task| {
                let addresses = ipv6_addresses(task);
                assert!(addresses.iter().all(|(_, _, flags)| flags & TENTATIVE == 0));
                addresses
                    .into_iter()
                    .map(|(device, address, _)| (device, address))
                    .collect::<Vec<_>>()
            };
            let tunnels = network.encapsulation.is_tunnel() && network.underlay_ip == Ipv6;
            assert_eq!(of(host), wanted(tunnels, "underlay", "18"), "{network}");
            let speaks = network.guest_ip == Ipv6;
            assert_eq!(of(guest), wanted(speaks, "eth0", "19"), "{network}");
        }
    }
}

#[test]
fn the_udp_checksum_of_a_tunnel_is_as_planned_over_ipv6_too() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for udp_checksum in [false, true] {
        let vxlan = Vxlan {
            udp_checksum,
            ..Vxlan::default()
        };
        // The build reads the device back and fails where it came out otherwise.
        let network = network(Encapsulation::Vxlan(vxlan), Ipv6, Ipv6);
        let mut lab = lab(&network);
        let size = largest(&network);
        let offload = Offload::profile(Profile::Tunnel);
        lab.adapt(size, &offload, &NEVER).expect("adapted");
        for proof in prove(&mut lab, size) {
            assert!(proof.proven, "{network}: {proof:?}");
        }
    }
}
