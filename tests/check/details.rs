//! Parts of a check besides findings: hops, TCP to an open port, the MTU to set, link-local addresses.

use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use super::{check, document, shell};
use crate::common::{is_root, succeeds};

/// Two hosts and two routers between them, the link between which carries less; over IPv4 and IPv6.
struct Routed {
    prefix: String,
}

const NODES: [&str; 4] = ["a", "r", "s", "b"];

impl Routed {
    fn new(test: &str, middle: u32) -> Self {
        let made = Self {
            prefix: format!("wcb-{test}-{}", std::process::id()),
        };
        let [a, r, s, b] = NODES.map(|node| made.name(node));
        shell(&format!(
            "set -e
            for n in {a} {r} {s} {b}; do
                ip netns add $n
                ip -n $n link set lo up
                ip netns exec $n sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
            done
            for n in {r} {s}; do ip netns exec $n sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1; done
            wire() {{
                ip link add $2 mtu $5 netns $1 type veth peer name $4 mtu $5 netns $3
                ip -n $1 link set $2 gso_max_segs 1 up
                ip -n $3 link set $4 gso_max_segs 1 up
            }}
            wire {a} eth0 {r} left 1500
            wire {r} right {s} left {middle}
            wire {s} right {b} eth0 1500
            address() {{ ip -n $1 address add $3 dev $2; ip -n $1 address add $4 dev $2 nodad; }}
            address {a} eth0 10.81.1.1/24 fd81:1::1/64
            address {r} left 10.81.1.254/24 fd81:1::fe/64
            address {r} right 10.81.2.1/24 fd81:2::1/64
            address {s} left 10.81.2.2/24 fd81:2::2/64
            address {s} right 10.81.3.254/24 fd81:3::fe/64
            address {b} eth0 10.81.3.2/24 fd81:3::2/64
            route() {{ ip -n $1 route add default via $2; ip -n $1 route add default via $3; }}
            route {a} 10.81.1.254 fd81:1::fe
            route {r} 10.81.2.2 fd81:2::2
            route {s} 10.81.2.1 fd81:2::1
            route {b} 10.81.3.254 fd81:3::fe"
        ));
        made
    }

    fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    fn host(&self, node: &str, address: &str) -> String {
        format!("netns:{}={address}", self.name(node))
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        for node in NODES {
            succeeds(Command::new("ip").args(["netns", "del", &self.name(node)]));
        }
    }
}

/// Address and largest size of each hop.
fn hops(trace: &Value) -> Vec<(String, u64)> {
    let hops = trace["hops"].as_array().expect("hops");
    hops.iter()
        .map(|hop| {
            let address = hop["address"].as_str().unwrap_or("-").to_owned();
            assert!(hop["rtt_s"].is_number() || address == "-", "{hop}");
            (address, hop["mtu"].as_u64().unwrap_or(0))
        })
        .collect()
}

fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let pairs = expected.iter();
    pairs
        .map(|(address, mtu)| ((*address).to_owned(), *mtu))
        .collect()
}

#[test]
fn a_trace_tells_what_reaches_each_hop_in_both_directions() {
    if !is_root() {
        return;
    }
    let path = Routed::new("trace", 1400);
    let (a, b) = (path.host("a", "10.81.1.1"), path.host("b", "10.81.3.2"));
    let ended = check(&[&a, &b, "--trace", "--json"]);
    let told = document(&ended);
    let there = pairs(&[
        ("10.81.1.254", 1500),
        ("10.81.2.2", 1400),
        ("10.81.3.2", 1400),
    ]);
    assert_eq!(hops(&told["traces"][0]), there, "{told:#}");
    let back = pairs(&[
        ("10.81.3.254", 1500),
        ("10.81.2.1", 1400),
        ("10.81.1.1", 1400),
    ]);
    assert_eq!(hops(&told["traces"][1]), back, "{told:#}");
    let message = told["traces"][0]["hops"][1]["message"].as_str();
    assert_eq!(message, Some("10.81.1.254 says too big: 1400"), "{told:#}");

    let (a6, b6) = (path.host("a", "fd81:1::1"), path.host("b", "fd81:3::2"));
    let ended = check(&[&a6, &b6, "--trace", "--json"]);
    let told = document(&ended);
    let there = pairs(&[
        ("fd81:1::fe", 1500),
        ("fd81:2::2", 1400),
        ("fd81:3::2", 1400),
    ]);
    assert_eq!(hops(&told["traces"][0]), there, "{told:#}");

    // Without an agent a closed port answers.
    let ended = check(&[&a, "10.81.3.2", "--trace", "--json"]);
    let told = document(&ended);
    let there = pairs(&[
        ("10.81.1.254", 1500),
        ("10.81.2.2", 1400),
        ("10.81.3.2", 1400),
    ]);
    assert_eq!(hops(&told["traces"][0]), there, "{told:#}");
    assert_eq!(told["traces"].as_array().map(Vec::len), Some(1));
    let text = check(&[&a, "10.81.3.2", "--trace"]).stdout;
    assert!(
        text.contains("hops from netns:") && text.contains("destination"),
        "{text}"
    );
}

/// Listens in a namespace, on a thread of its own, until it is dropped.
fn listener(netns: &str, address: &str) -> TcpListener {
    let (netns, address) = (netns.to_owned(), address.to_owned());
    let thread = std::thread::spawn(move || {
        let file = std::fs::File::open(format!("/run/netns/{netns}")).expect("a namespace");
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
        TcpListener::bind((address.as_str(), 4433)).expect("a port")
    });
    thread.join().expect("a listener")
}

#[test]
fn an_open_port_proves_a_path_on_which_udp_is_closed() {
    if !is_root() {
        return;
    }
    for (middle, carries, kind) in [(1500, 1500, "device"), (1400, 1400, "silent")] {
        let path = Routed::new("tcp", middle);
        shell(&format!(
            "ip netns exec {r} nft 'add table inet f; add chain inet f f {{ type filter hook forward priority 0; }}; \
             add rule inet f f meta l4proto udp drop'
            for n in {r} {s}; do ip netns exec $n nft 'add table inet o; add chain inet o o {{ type filter hook output \
             priority 0; }}; add rule inet o o icmp type destination-unreachable drop; add rule inet o o icmpv6 type \
             packet-too-big drop'; done",
            r = path.name("r"),
            s = path.name("s")
        ));
        for (from, to) in [("10.81.1.1", "10.81.3.2"), ("fd81:1::1", "fd81:3::2")] {
            let _listener = listener(&path.name("b"), to);
            let a = path.host("a", from);
            let ended = check(&[&a, to, "--tcp", "4433", "--json"]);
            let told = document(&ended);
            assert_eq!(told["directions"][0]["mtu"], carries, "{told:#}");
            assert_eq!(told["directions"][0]["kind"], kind, "{told:#}");
            assert_eq!(told["tcp"][0]["passes"], carries, "{told:#}");
            assert_eq!(told["tcp"][0]["connected"], true);
            ended.expect_code(i32::from(middle == 1400));
        }
        let a = path.host("a", "10.81.1.1");
        let ended = check(&[&a, "10.81.3.2", "--tcp", "4434"]);
        ended.expect_code(1);
        assert!(
            ended.stdout.contains("refuses connections"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn the_mtu_to_set_is_that_of_the_narrowest_of_all_pairs() {
    if !is_root() {
        return;
    }
    let path = Routed::new("most", 1400);
    let (a, b) = (path.host("a", "10.81.1.1"), path.host("b", "10.81.3.2"));
    let r = path.host("r", "10.81.1.254");
    let ended = check(&[&a, &r, "--recommend", "--encapsulation", "vxlan", "--json"]);
    let told = document(&ended);
    let guests = |told: &Value| {
        let guests = told["recommendation"]["guests"]
            .as_array()
            .expect("guests")
            .clone();
        guests
            .iter()
            .map(|guest| guest["mtu"].as_u64())
            .collect::<Vec<_>>()
    };
    assert_eq!(guests(&told), [Some(1500), Some(1450)], "{told:#}");
    let ended = check(&[
        &a,
        &r,
        "--recommend",
        "--encapsulation",
        "vxlan",
        "--pair",
        &a,
        &b,
        "--json",
    ]);
    let told = document(&ended);
    assert_eq!(guests(&told), [Some(1400), Some(1350)], "{told:#}");
    let why = told["recommendation"]["limits"][0]["why"]
        .as_str()
        .expect("why");
    assert!(why.contains("reports an MTU of 1400"), "{why}");
    assert_eq!(told["directions"].as_array().map(Vec::len), Some(4));
    let text = check(&[&a, &r, "--recommend", "--pair", &a, &b]).stdout;
    assert!(text.contains("1400  without encapsulation"), "{text}");
    let wrong = check(&[&a, &r, "--pair", "nobody", &b]);
    wrong.expect_code(2);
    assert!(wrong.stderr.contains("--pair `nobody`"), "{}", wrong.stderr);
}

#[test]
fn link_local_addresses_are_used_with_their_device() {
    if !is_root() {
        return;
    }
    let path = Routed::new("link", 1500);
    for (node, device, address) in [("a", "eth0", "fe80::81:1"), ("r", "left", "fe80::81:2")] {
        shell(&format!(
            "ip -n {} address add {address}/64 dev {device} nodad",
            path.name(node)
        ));
    }
    let a = path.host("a", "fe80::81:1%eth0");
    let r = path.host("r", "fe80::81:2%left");
    let ended = check(&[&a, &r, "--json"]);
    let told = document(&ended);
    ended.expect_code(0);
    assert_eq!(told["directions"][0]["mtu"], 1500, "{told:#}");
    assert_eq!(told["directions"][1]["mtu"], 1500, "{told:#}");
    assert_eq!(told["hosts"][0]["device"], "eth0");

    let a_alone = format!("netns:{}", path.name("a"));
    let ended = check(&[&a_alone, "fe80::81:2%eth0", "--json"]);
    let told = document(&ended);
    ended.expect_code(0);
    assert_eq!(told["directions"][0]["mtu"], 1500, "{told:#}");

    let one = check(&[&a, &a_alone]);
    one.expect_code(2);
    assert!(
        one.stderr.contains("link-local address with its device"),
        "{}",
        one.stderr
    );
    let missing = check(&[&path.host("a", "fe80::99%eth0"), &r]);
    missing.expect_code(2);
    assert!(
        missing.stderr.contains("has no fe80::99 on eth0"),
        "{}",
        missing.stderr
    );
    let other = check(&[&path.host("a", "10.81.1.1%eth0"), &r]);
    other.expect_code(2);
    assert!(
        other.stderr.contains("only a link-local"),
        "{}",
        other.stderr
    );
}
