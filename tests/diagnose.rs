//! `wirecost diagnose`: settings are tried one at a time and undone; and on networks of which it is known what is wrong, that is
//! what it names. What this kernel lacks is tried in emulated machines.

use serde_json::Value;

use crate::common::namespaces::Namespaces;
use crate::common::{Place, beside_others, is_root, run, wirecost};
use crate::existing::state;
use crate::pair::{Pair, ip};

#[test]
fn every_setting_that_is_tried_is_undone_and_judged() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let (pair, place) = (Pair::new("diagnose"), Place::new());
    let [a, b] = [&pair.a, &pair.b].map(|netns| format!("netns:{netns}"));
    let before = [state(&pair.a), state(&pair.b)];
    let out = place.path().join("run");
    let out = out.to_str().expect("a plain path");
    let arguments = [
        "diagnose",
        &a,
        &b,
        "--allow-host-changes",
        "--time",
        "45s",
        "--out",
        out,
        "--json",
    ];

    let unasked = run(&mut wirecost(arguments));
    unasked.expect_code(2);
    assert!(
        unasked.stderr.contains("tx-tcp-segmentation off"),
        "{unasked:?}"
    );

    let ended = run(wirecost(arguments).arg("--yes"));
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let document = ended.document();
    assert!(
        document["gbit_per_s"].as_f64().expect("a rate") > 0.0,
        "{document}"
    );
    assert!(
        !document["now"]["evidence"]
            .as_str()
            .expect("evidence")
            .is_empty()
    );
    let tried = document["tried"].as_array().expect("what was tried");
    let switches: Vec<&str> = tried
        .iter()
        .filter_map(|tried| tried["switch"].as_str())
        .collect();
    for switch in [
        "4 streams",
        "socket buffers of 16 MiB",
        "tx-tcp-segmentation off on a",
    ] {
        assert!(switches.contains(&switch), "{switches:?}");
    }
    assert!(
        tried.iter().all(|tried| tried["ratio"].is_f64()),
        "each was measured: {document}"
    );
    let left = document["not_tried"].as_array().expect("what was not");
    assert!(
        left.iter().any(|switch| switch == "rx-gro-list on on b"),
        "there is not so much time: {document}"
    );
    // The record is a run's like any other.
    let report = run(&mut wirecost(["report", out]));
    report.expect_code(0);
    assert!(
        report.stdout.contains("tx-tcp-segmentation off on a"),
        "{report:?}"
    );
}

/// Two hosts with a bridge between them, in which something is wrong.
struct Between {
    a: String,
    b: String,
    middle: String,
    _made: Namespaces,
}

impl Between {
    fn new(test: &str) -> Self {
        let own = std::process::id();
        let [a, middle, b] = ["a", "m", "b"].map(|side| format!("wct-{test}-{own}-{side}"));
        let made = Namespaces::new(&[&a, &middle, &b]);
        let there = |words: &str| on(&middle, words);
        there("ip link add br0 type bridge");
        there("ip link set br0 up");
        for (host, port, address) in [(&a, "to-a", "10.77.0.1/24"), (&b, "to-b", "10.77.0.2/24")] {
            there(&format!(
                "ip link add {port} type veth peer name eth0 netns {host}"
            ));
            there(&format!("ip link set {port} master br0 up"));
            on(host, &format!("ip address add {address} dev eth0"));
            on(host, "ip link set eth0 up");
        }
        Self {
            a,
            b,
            middle,
            _made: made,
        }
    }

    /// What comes from a and is told by a classic BPF program is dropped, each with this share.
    fn drop_from_a(&self, told: &[String], share: f64) {
        // The program leaves what it tells to two instructions that throw dice (SKF_AD_RANDOM, linux/filter.h).
        let threshold = (share * f64::from(u32::MAX)) as u32;
        let mut program = told.to_vec();
        program.extend([
            "32 0 0 4294963256".to_owned(),
            format!("53 1 0 {threshold}"),
            // TC_ACT_SHOT, TC_ACT_OK.
            "6 0 0 2".to_owned(),
            "6 0 0 0".to_owned(),
        ]);
        let bytecode = format!("{},{}", program.len(), program.join(","));
        on(&self.middle, "tc qdisc add dev to-a clsact");
        on(
            &self.middle,
            &format!("tc filter add dev to-a ingress bpf da bytecode {bytecode}"),
        );
    }

    fn diagnosed(&self, [a, b]: [&str; 2], time: &str) -> Value {
        let place = Place::new();
        let out = place.path().join("run");
        let hosts = [(&self.a, a), (&self.b, b)].map(|(netns, at)| format!("netns:{netns}={at}"));
        let ended = run(&mut wirecost([
            "diagnose",
            &hosts[0],
            &hosts[1],
            "--allow-host-changes",
            "--yes",
            "--time",
            time,
            "--json",
            "--out",
            out.to_str().expect("a plain path"),
        ]));
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        println!("{}", ended.stdout);
        ended.document()
    }
}

#[track_caller]
fn on(netns: &str, words: &str) {
    let mut arguments = vec!["netns", "exec", netns];
    arguments.extend(words.split(' '));
    // A program is one argument, with spaces.
    if let Some((before, bytecode)) = words.split_once(" bytecode ") {
        arguments = vec!["netns", "exec", netns];
        arguments.extend(before.split(' '));
        arguments.extend(["bytecode", bytecode]);
    }
    ip(&arguments);
}

/// Settings of the hosts that are said to help, the best first. What only the sender does, as several streams, helps against
/// most of what is wrong.
fn helpful(document: &Value) -> Vec<&str> {
    let tried = document["tried"].as_array().expect("what was tried");
    tried
        .iter()
        .filter(|tried| tried["judged"] == "helps")
        .filter_map(|tried| tried["switch"].as_str())
        .filter(|switch| switch.contains(" on "))
        .collect()
}

#[test]
fn a_spoiled_checksum_of_a_tunnel_is_named_first() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let between = Between::new("spoiled");
    for (host, own, other) in [(&between.a, 1, 2), (&between.b, 2, 1)] {
        on(
            host,
            &format!(
                "ip link add vxlan0 type vxlan id 7 local 10.77.0.{own} remote 10.77.0.{other} dstport 4789"
            ),
        );
        on(host, &format!("ip address add 10.88.0.{own}/24 dev vxlan0"));
        on(host, "ip link set vxlan0 up");
    }
    // A card that is left the checksum of the inner TCP spoils it: the field then has the sum of the pseudo-header, which is known
    // from the addresses and the length (net/ipv4/tcp_ipv4.c, `__tcp_v4_send_check`).
    const BEFORE_TCP: u32 = 14 + 20 + 8 + 8 + 14 + 20;
    let pseudo: u32 = 0x0a58 + 0x0001 + 0x0a58 + 0x0002 + 6;
    let told = [
        "128 0 0 0".to_owned(),
        format!("20 0 0 {BEFORE_TCP}"),
        format!("4 0 0 {pseudo}"),
        "2 0 0 0".to_owned(),
        "116 0 0 16".to_owned(),
        "7 0 0 0".to_owned(),
        "96 0 0 0".to_owned(),
        "84 0 0 65535".to_owned(),
        "12 0 0 0".to_owned(),
        "7 0 0 0".to_owned(),
        format!("40 0 0 {}", BEFORE_TCP + 16),
        "29 1 0 0".to_owned(),
        "6 0 0 0".to_owned(),
    ];
    between.drop_from_a(&told, 0.1);
    let document = between.diagnosed(["10.88.0.1", "10.88.0.2"], "100s");
    assert_eq!(
        helpful(&document),
        ["tx-checksum-ip-generic off on a"],
        "{document}"
    );
}

#[test]
fn segments_that_a_slow_middle_drops_are_named_first() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let between = Between::new("slow-middle");
    // What was not cut into frames by the sender.
    let told = [
        "128 0 0 0".to_owned(),
        "37 1 0 1600".to_owned(),
        "6 0 0 0".to_owned(),
    ];
    between.drop_from_a(&told, 0.3);
    let document = between.diagnosed(["10.77.0.1", "10.77.0.2"], "75s");
    assert_eq!(
        helpful(&document),
        ["tx-tcp-segmentation off on a"],
        "{document}"
    );
}

#[test]
fn a_line_is_the_honest_limit() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let between = Between::new("line");
    on(
        &between.middle,
        "tc qdisc add dev to-b root tbf rate 1gbit burst 128k latency 10ms",
    );
    let document = between.diagnosed(["10.77.0.1", "10.77.0.2"], "75s");
    assert_eq!(document["now"]["limit"], "path", "{document}");
    assert_eq!(helpful(&document), Vec::<&str>::new(), "{document}");
}

#[test]
fn what_the_receiver_does_not_join_is_named() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let between = Between::new("apart");
    // A veth joins what comes from an end without TSO only (drivers/net/veth.c).
    on(&between.middle, "ethtool -K to-b tso off");
    on(&between.b, "ethtool -K eth0 gro off");
    let document = between.diagnosed(["10.77.0.1", "10.77.0.2"], "75s");
    let helpful = helpful(&document);
    assert!(helpful.contains(&"rx-gro on on b"), "{document}");
    // The bridge's port could leave them whole in the first place: that is as true.
    let others = helpful.iter().filter(|switch| {
        **switch != "rx-gro on on b" && !switch.contains("tx-tcp-segmentation on")
    });
    assert_eq!(others.count(), 0, "{document}");
}
