//! Our eBPF endpoint at one host, Open vSwitch at the other: what each writes, the other reads.

#[path = "../../vtep/tests/lab/mod.rs"]
mod lab;

use lab::{Lab, NO_OFFLOADS, VNI, allowed, bulk, echo, skip};
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Encapsulation, Geneve, GeneveOptions, Vxlan};
use wirecost_model::switch::OvsDatapath;
use wirecost_ovs::{Programs, Switch, SwitchSpec, UNDERLAY_BRIDGE};
use wirecost_vtep::{Config, Counter};

const MEGABYTE: usize = 1 << 20;
/// Divides into no MSS: each write ends in a short segment.
const ODD_WRITE: usize = 70_001;
const UNDERLAY: &str = "under0";
/// The hardware address of host 1 on the underlay.
const HOST_1: [u8; 6] = [2, 0, 0, 0, 9, 1];
/// The hardware address that host 2 is known by, and the one that its device has instead.
const MAC: [u8; 6] = [2, 0, 0, 0, 9, 2];
const ASIDE: &str = "02:00:00:02:09:02";
/// Nothing may be left to a device: a packet socket would meet it undone.
const NO_CHECKSUM: [(&str, bool); 1] = [("tx-checksum-ip-generic", false)];

/// Whether both can run here; says why not, or fails where they must.
fn both_can_run() -> bool {
    if let Err(error) = Programs::find() {
        return skip(error);
    }
    allowed()
}

fn geneve(udp_checksum: bool, options: GeneveOptions) -> Encapsulation {
    Encapsulation::Geneve(Geneve {
        vni: VNI,
        udp_checksum,
        options,
        ..Geneve::default()
    })
}

fn vxlan(udp_checksum: bool) -> Encapsulation {
    Encapsulation::Vxlan(Vxlan {
        vni: VNI,
        udp_checksum,
        ..Vxlan::default()
    })
}

/// Host 2's switch, with the host's address on the underlay and guest 2 behind it.
fn switch(lab: &Lab, encapsulation: &Encapsulation, underlay_mtu: u32, six: bool) -> Switch {
    let host = &lab.hosts[1];
    host.ip(&format!("address flush dev {UNDERLAY}"));
    host.ip(&format!("link set {UNDERLAY} address {ASIDE}"));
    let wanted = SwitchSpec {
        encapsulation: encapsulation.clone(),
        underlay: UNDERLAY.to_owned(),
        underlay_mtu,
        guests: vec!["guest0".to_owned()],
        local: Lab::host(2, six),
        peer: Lab::host(1, six),
        mac: MAC,
        ovn: None,
    };
    let started = host.run(|| Switch::start(wanted, OvsDatapath::Userspace, "test"));
    let mut switch = started.unwrap_or_else(|error| panic!("{error}"));
    host.ip(&format!("address add 10.9.0.2/24 dev {UNDERLAY_BRIDGE}"));
    host.ip(&format!(
        "address add fd09::2/64 dev {UNDERLAY_BRIDGE} nodad"
    ));
    host.ip(&format!("link set {UNDERLAY_BRIDGE} up"));
    let reached = switch.reach(Lab::host(1, six), HOST_1);
    reached.unwrap_or_else(|error| panic!("{error}"));
    switch
}

/// Bulk and whole datagrams both ways, IPv4 and IPv6 inside.
fn exercise(lab: &Lab, guest_mtu: usize) {
    for (from, to) in [(0, 1), (1, 0)] {
        let (sender, receiver) = (&lab.guests[from], &lab.guests[to]);
        for six in [false, true] {
            let at = Lab::guest(to + 1, six);
            let headers = if six { 48 } else { 28 };
            let payload = guest_mtu - headers;
            sender.command(
                "ping",
                &format!("-c 2 -i 0.1 -W 10 -M do -s {payload} {at}"),
            );
            assert!(echo(sender, receiver, at, payload), "{at}: {guest_mtu}");
            bulk(sender, receiver, at, 2 * MEGABYTE, 1 << 17);
            bulk(sender, receiver, at, 2 * MEGABYTE, ODD_WRITE);
        }
    }
}

/// Guests of that MTU, ours behind eBPF and theirs behind Open vSwitch; nothing may be dropped by ours.
fn understand_each_other(encapsulation: &Encapsulation, guest_mtu: u32, six: bool) {
    let ip = if six {
        IpVersion::Ipv6
    } else {
        IpVersion::Ipv4
    };
    let underlay_mtu = guest_mtu + encapsulation.overhead_bytes(ip);
    let lab = Lab::new(underlay_mtu, guest_mtu);
    let [ours, _] = &lab.hosts;
    ours.ip(&format!(
        "link set {UNDERLAY} address {}",
        lab::mac_text(HOST_1)
    ));
    for address in [Lab::host(2, false), Lab::host(2, true)] {
        let mac = lab::mac_text(MAC);
        ours.ip(&format!(
            "neighbour replace {address} lladdr {mac} dev {UNDERLAY}"
        ));
    }
    for (place, device) in [(ours, UNDERLAY), (&lab.guests[1], "eth0")] {
        place.features(device, &NO_OFFLOADS);
        place.features(device, &NO_CHECKSUM);
    }
    let switch = switch(&lab, encapsulation, underlay_mtu, six);
    let config = Config::of(UNDERLAY, encapsulation, Lab::host(1, six)).expect("a format");
    let endpoint = lab.endpoint(0, config);
    let before = endpoint.counters().expect("counters");
    exercise(&lab, guest_mtu as usize);
    let counted = endpoint.counters().expect("counters").since(&before);
    assert_eq!(counted.dropped(), 0, "{encapsulation}: {counted:?}");
    assert!(counted.get(Counter::Encapsulated) > 100, "{counted:?}");
    assert!(counted.get(Counter::Decapsulated) > 100, "{counted:?}");
    endpoint.detach().expect("detached");
    drop(switch);
}

#[test]
fn geneve_by_ebpf_and_by_open_vswitch_understand_each_other() {
    if !both_can_run() {
        return;
    }
    for guest_mtu in [1450, 8900] {
        for udp_checksum in [false, true] {
            for options in [GeneveOptions::NONE, GeneveOptions::Ovn] {
                understand_each_other(&geneve(udp_checksum, options), guest_mtu, false);
            }
        }
    }
}

#[test]
fn options_of_an_experimental_class_are_carried_too() {
    if !both_can_run() {
        return;
    }
    understand_each_other(&geneve(true, GeneveOptions::Bytes(60)), 1450, false);
}

#[test]
fn vxlan_by_ebpf_and_by_open_vswitch_understand_each_other() {
    if !both_can_run() {
        return;
    }
    for guest_mtu in [1450, 8900] {
        for udp_checksum in [false, true] {
            understand_each_other(&vxlan(udp_checksum), guest_mtu, false);
        }
    }
}

#[test]
fn over_ipv6_they_do_as_well() {
    if !both_can_run() {
        return;
    }
    understand_each_other(&vxlan(true), 1450, true);
    understand_each_other(&geneve(true, GeneveOptions::Ovn), 8900, true);
}
