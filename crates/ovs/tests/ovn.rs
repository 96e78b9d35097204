//! What OVN puts on the wire, beside what imitates it: the same frames, byte for byte, but for the keys of logical
//! ports.

#[path = "../../vtep/tests/lab/mod.rs"]
mod lab;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::time::{Duration, Instant};

use lab::{Lab, MACS, NO_OFFLOADS, mac_text, skip};
use wirecost_model::logical::Acl;
use wirecost_model::plan::{Encapsulation, Geneve, GeneveOptions, OuterDf, Vxlan};
use wirecost_model::switch::OvsDatapath;
use wirecost_ovs::ovn::{
    Central, Chassis, LogicalNetwork, LogicalPort, OvnPrograms, port_key, port_name,
};
use wirecost_ovs::{Programs, Switch, SwitchSpec, UNDERLAY_BRIDGE};
use wirecost_sys::socket::PacketCapture;

const UNDERLAY: &str = "under0";
const HOSTS: [&str; 2] = ["a", "b"];
const VNI: u32 = 42;
/// Of Ethernet and IPv4 in front of the outer UDP header.
const UDP_AT: usize = 14 + 20;
/// Of these and UDP in front of VXLAN's or Geneve's.
const TUNNEL_AT: usize = UDP_AT + 8;
/// Of the datagram that is looked for.
const PAYLOAD: [u8; 100] = [0xa5; 100];

/// Whether OVN can run here; says why not, or fails where it must.
fn ovn_can_run() -> bool {
    if let Err(error) = Programs::find() {
        return skip(error);
    }
    if let Err(error) = OvnPrograms::find() {
        return skip(error);
    }
    nix::unistd::Uid::effective().is_root() || skip("OVN's own files need root")
}

fn mac_of(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 9, host as u8 + 1]
}

fn spec(host: usize, encapsulation: &Encapsulation, ovn: Option<Chassis>) -> SwitchSpec {
    SwitchSpec {
        encapsulation: encapsulation.clone(),
        underlay: UNDERLAY.to_owned(),
        underlay_mtu: 1600,
        guests: vec!["guest0".to_owned()],
        local: Lab::host(host + 1, false),
        peer: Lab::host(2 - host, false),
        mac: mac_of(host),
        ovn,
    }
}

/// A lab whose hosts' addresses are still on the underlay's devices.
fn lab() -> Lab {
    let lab = Lab::new(1600, 1442);
    for (number, host) in lab.hosts.iter().enumerate() {
        host.ip(&format!("address flush dev {UNDERLAY}"));
        // Open vSwitch learns from any ARP reply; the kernel's would name the device's hardware address below.
        let arp_ignore = format!("/proc/sys/net/ipv4/conf/{UNDERLAY}/arp_ignore");
        host.run(|| std::fs::write(arp_ignore, "8").expect("a setting of the namespace"));
        let aside = format!("02:00:00:02:09:0{}", number + 1);
        host.ip(&format!("link set {UNDERLAY} address {aside}"));
        host.features(UNDERLAY, &NO_OFFLOADS);
        host.features(UNDERLAY, &[("tx-checksum-ip-generic", false)]);
        let guest = &lab.guests[number];
        guest.features("eth0", &[("tx-checksum-ip-generic", false)]);
        let other = Lab::guest(2 - number, false);
        let mac = mac_text(MACS[1 - number]);
        guest.ip(&format!("neighbour replace {other} lladdr {mac} dev eth0"));
    }
    lab
}

fn logical(key: u32) -> LogicalNetwork {
    let guest = |host: usize| LogicalPort {
        name: port_name(HOSTS[host], 0),
        key: port_key(host as u32, 0),
        mac: MACS[host],
        address: Lab::guest(host + 1, false),
    };
    LogicalNetwork {
        guests: [vec![guest(0)], vec![guest(1)]],
        key,
        router: None,
        acl: Acl::None,
        to_underlay: false,
        tag: None,
    }
}

/// Both hosts' switches, programmed by OVN or not, each able to reach the other.
fn switches(
    lab: &Lab,
    encapsulation: &Encapsulation,
    central: Option<&mut Central>,
) -> Vec<Switch> {
    let remote = central.as_ref().map(|central| central.remote());
    let mut switches: Vec<Switch> = (0..2)
        .map(|host| {
            let chassis = remote.clone().map(|remote| Chassis {
                name: HOSTS[host].to_owned(),
                remote,
                ports: vec![port_name(HOSTS[host], 0)],
            });
            let wanted = spec(host, encapsulation, chassis);
            let place = &lab.hosts[host];
            let started = place.run(|| Switch::start(wanted, OvsDatapath::Userspace, "test"));
            let switch = started.unwrap_or_else(|error| panic!("{error}"));
            let number = host + 1;
            place.ip(&format!(
                "address add 10.9.0.{number}/24 dev {UNDERLAY_BRIDGE}"
            ));
            place.ip(&format!("link set {UNDERLAY_BRIDGE} up"));
            switch
        })
        .collect();
    for (host, switch) in switches.iter_mut().enumerate() {
        switch
            .wait_for_ovn()
            .unwrap_or_else(|error| panic!("{error}"));
        let reached = switch.reach(Lab::host(2 - host, false), mac_of(1 - host));
        reached.unwrap_or_else(|error| panic!("{error}"));
    }
    if let Some(central) = central {
        central
            .wait_for_hosts(2)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    switches
}

/// The frame on the underlay of a datagram from the first guest to the second, always the same.
fn frame(lab: &Lab) -> Vec<u8> {
    let [sender, receiver] = &lab.guests;
    let capture = lab.hosts[0].run(|| {
        let index = nix::net::if_::if_nametoindex(UNDERLAY).expect("the underlay");
        PacketCapture::open(index, 2048).expect("a capture")
    });
    let at: SocketAddr = (Lab::guest(2, false), 5001).into();
    let from: (IpAddr, u16) = (Lab::guest(1, false), 5000);
    let server = receiver.run(|| UdpSocket::bind(at).expect("a socket"));
    server
        .set_read_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    let client = sender.run(|| UdpSocket::bind(from).expect("a socket"));
    let mut buffer = [0; 2048];
    // The first packet of a flow waits for its rules.
    let deadline = Instant::now() + lab::PATIENCE;
    while client.send_to(&PAYLOAD, at).is_err() || server.recv_from(&mut buffer).is_err() {
        assert!(Instant::now() < deadline, "nothing arrives");
    }
    while let Ok(Some((length, _))) = capture.recv(&mut buffer) {
        if buffer[..length].ends_with(&PAYLOAD) {
            return buffer[..length].to_vec();
        }
    }
    panic!("the datagram arrived and was not seen on the underlay");
}

/// The frames of an encapsulation by OVN, and by Open vSwitch in its place.
fn both(encapsulation: &Encapsulation) -> [Vec<u8>; 2] {
    let key = encapsulation.udp().expect("a tunnel").vni;
    let by_ovn = {
        let lab = lab();
        let mut central =
            Central::start(&logical(key), "test").unwrap_or_else(|error| panic!("{error}"));
        let _switches = switches(&lab, encapsulation, Some(&mut central));
        frame(&lab)
    };
    let lab = lab();
    let _switches = switches(&lab, encapsulation, None);
    [by_ovn, frame(&lab)]
}

/// Without what may differ: what the guest's kernel draws (the identification of its IP packet, and what sums it up),
/// the outer source port, which is a hash, and `keys`.
fn masked(mut frame: Vec<u8>, keys: &[Range<usize>]) -> Vec<u8> {
    let inner_ip = frame.len() - PAYLOAD.len() - 8 - 20;
    let drawn = [
        UDP_AT..UDP_AT + 2,
        UDP_AT + 6..UDP_AT + 8,
        inner_ip + 4..inner_ip + 6,
        inner_ip + 10..inner_ip + 12,
    ];
    for range in drawn.iter().chain(keys) {
        frame[range.clone()].fill(0);
    }
    frame
}

#[test]
fn ovns_geneve_is_the_imitated_one_byte_for_byte_keys_included() {
    if !ovn_can_run() {
        return;
    }
    for udp_checksum in [false, true] {
        for df in [OuterDf::Unset, OuterDf::Set] {
            let [by_ovn, imitated] = both(&Encapsulation::Geneve(Geneve {
                vni: VNI,
                udp_checksum,
                df,
                options: GeneveOptions::Ovn,
                ..Geneve::default()
            }));
            assert_eq!(by_ovn.len(), 14 + 20 + 8 + 16 + 14 + 28 + PAYLOAD.len());
            // RFC 8926: the option's class 0x0102, type 0x80, one word; port 1 to port 2.
            let options = TUNNEL_AT + 8..TUNNEL_AT + 16;
            assert_eq!(by_ovn[options], [1, 2, 0x80, 1, 0, 1, 0, 2]);
            let checksum = &by_ovn[UDP_AT + 6..UDP_AT + 8];
            assert_eq!(checksum != [0, 0], udp_checksum, "{checksum:?}");
            assert_eq!(masked(by_ovn, &[]), masked(imitated, &[]));
        }
    }
}

#[test]
fn ovns_vxlan_is_plain_vxlan_but_for_the_network_identifier() {
    if !ovn_can_run() {
        return;
    }
    for udp_checksum in [false, true] {
        let [by_ovn, plain] = both(&Encapsulation::Vxlan(Vxlan {
            vni: VNI,
            udp_checksum,
            ..Vxlan::default()
        }));
        let vni = TUNNEL_AT + 4..TUNNEL_AT + 7;
        let number = |frame: &[u8]| {
            let bytes = &frame[vni.clone()];
            u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
        };
        // 12 bits of the port that it is for, 12 of the logical switch.
        assert_eq!(number(&by_ovn), 2 << 12 | VNI);
        assert_eq!(number(&plain), VNI);
        let keys = std::slice::from_ref(&vni);
        assert_eq!(masked(by_ovn, keys), masked(plain, keys));
    }
}

/// Prints how long it takes from nothing to the first datagram: `cargo test -p wirecost-ovs --test ovn -- --ignored
/// --nocapture`.
#[test]
#[ignore = "prints times, which only an idle machine has"]
fn fifty_times_up() {
    if !ovn_can_run() {
        return;
    }
    let encapsulation = Encapsulation::Geneve(Geneve {
        options: GeneveOptions::Ovn,
        udp_checksum: true,
        ..Geneve::default()
    });
    let mut seconds: Vec<f64> = (0..50)
        .map(|_| {
            let lab = lab();
            let began = Instant::now();
            let mut central =
                Central::start(&logical(VNI), "test").unwrap_or_else(|error| panic!("{error}"));
            let _switches = switches(&lab, &encapsulation, Some(&mut central));
            let frame = frame(&lab);
            assert!(!frame.is_empty());
            began.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "50 of 50 up: {:.2} s at least, {:.2} s in the middle, {:.2} s at most",
        seconds[0], seconds[25], seconds[49]
    );
}
