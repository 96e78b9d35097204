//! `wirecost check`: paths as they are and as they fail, from both sides and from one.

mod details;

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{Ended, Running, is_root, run, succeeds, wait_for, wirecost};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Two hosts on one subnet, and a switch between them.
struct Switched {
    a: String,
    middle: String,
    b: String,
}

impl Switched {
    /// `mtu` is that of every device.
    fn new(test: &str, mtu: u32) -> Self {
        let name = |part: &str| format!("wcc-{test}-{}-{part}", std::process::id());
        let made = Self {
            a: name("a"),
            middle: name("m"),
            b: name("b"),
        };
        let (a, m, b) = (&made.a, &made.middle, &made.b);
        shell(&format!(
            "set -e
            for n in {a} {m} {b}; do ip netns add $n; ip -n $n link set lo up; done
            ip -n {m} link add br0 mtu {mtu} type bridge
            ip -n {m} link set br0 up
            i=0
            for n in {a} {b}; do
                i=$((i + 1))
                ip -n {m} link add p$i mtu {mtu} type veth peer name eth0 mtu {mtu} netns $n
                ip -n {m} link set p$i master br0 up
                ip -n $n link set eth0 up
                ip -n $n address add 10.78.0.$i/24 dev eth0
                ip -n $n address add fd78::$i/64 dev eth0 nodad
            done"
        ));
        made
    }

    /// Has the switch do something with what comes from the host of port `port`, 1 or 2, and matches.
    fn filters(&self, port: u32, matches: &str, verdict: &str) {
        shell(&format!(
            "ip netns exec {} nft 'add table netdev f{port}; add chain netdev f{port} c {{ type filter hook ingress \
             device \"p{port}\" priority 0; }}; add rule netdev f{port} c {matches} {verdict}'",
            self.middle
        ));
    }

    /// Has the switch drop IP packets above `mtu` that come from the host of port `port`, 1 or 2, without a word.
    fn drops_above(&self, port: u32, mtu: u32) {
        shell(&format!(
            "ip netns exec {} nft 'add table netdev t{port}; add chain netdev t{port} c {{ type filter hook ingress \
             device \"p{port}\" priority 0; }}; add rule netdev t{port} c meta length > {mtu} drop'",
            self.middle
        ));
    }

    fn check(&self, more: &[&str]) -> Ended {
        let (a, b) = (format!("netns:{}", self.a), format!("netns:{}", self.b));
        check(&[&[a.as_str(), b.as_str()], more].concat())
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        for netns in [&self.a, &self.middle, &self.b] {
            succeeds(Command::new("ip").args(["netns", "del", netns]));
        }
    }
}

#[track_caller]
fn shell(script: &str) {
    run(Command::new("sh").args(["-c", script])).expect_code(0);
}

fn check(arguments: &[&str]) -> Ended {
    let arguments = ["check"].into_iter().chain(arguments.iter().copied());
    run(&mut wirecost(arguments))
}

/// What a check printed, which is what its schema says.
#[track_caller]
fn document(ended: &Ended) -> Value {
    let document = ended.document();
    let schema = run(&mut wirecost(["schema", "check"]));
    let validator = jsonschema::validator_for(&schema.document()).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document
}

/// What every flow of each direction carries, and why: once where all are alike.
fn told(document: &Value) -> Vec<(String, u64, String)> {
    let mut told: Vec<_> = document["paths"]
        .as_array()
        .expect("paths")
        .iter()
        .map(|path| {
            let text = |key: &str| path[key].as_str().expect("text").to_owned();
            (
                text("from"),
                path["mtu"].as_u64().unwrap_or(0),
                text("kind"),
            )
        })
        .collect();
    told.dedup();
    told
}

/// Ids of what was found that is more than information.
fn found(document: &Value) -> Vec<String> {
    document["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|finding| finding["severity"] != "info")
        .map(|finding| finding["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn a_path_that_is_all_right_has_no_finding_at_1500_and_at_9000() {
    if !is_root() {
        return;
    }
    for mtu in [1500, 9000] {
        let path = Switched::new("right", mtu);
        let ended = path.check(&["--json"]);
        ended.expect_code(0);
        assert_eq!(ended.complaints(), "");
        let document = document(&ended);
        let (a, b) = (format!("netns:{}", path.a), format!("netns:{}", path.b));
        let carries = |host: &str| (host.to_owned(), u64::from(mtu), "device".to_owned());
        assert_eq!(told(&document), [carries(&a), carries(&b)], "{document:#}");
        assert_eq!(found(&document), [""; 0], "{document:#}");
        assert_eq!(document["hosts"][0]["address"], "10.78.0.1");
        assert_eq!(document["paths"].as_array().map(Vec::len), Some(32));

        let expected = path.check(&["--expect", "1500", "--flows", "1"]);
        expected.expect_code(0);
        assert!(
            expected.stdout.contains("nothing was found"),
            "{}",
            expected.stdout
        );
        let more = path.check(&["--expect", "9216", "--flows", "2", "--json"]);
        more.expect_code(1);
        let document = self::document(&more);
        assert_eq!(found(&document), ["expected-size-fails"; 2], "{document:#}");
        assert_eq!(
            document["findings"][0]["fix"][0],
            format!("ip -n {} link set dev eth0 mtu 9216", path.a)
        );
    }
}

#[test]
fn a_switch_that_drops_silently_is_found_both_ways_over_both_ip_versions() {
    if !is_root() {
        return;
    }
    let path = Switched::new("hole", 9000);
    path.drops_above(1, 8950);
    path.drops_above(2, 8950);
    for to in ["10.78.0.2", "fd78::2"] {
        let (a, b) = (
            format!("netns:{}", path.a),
            format!("netns:{}={to}", path.b),
        );
        let ended = check(&[&a, &b, "--json"]);
        ended.expect_code(1);
        let document = document(&ended);
        let told = told(&document);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told.iter()
                .all(|(_, mtu, kind)| *mtu == 8950 && kind == "silent"),
            "{told:?}"
        );
        assert_eq!(found(&document), ["path-drops-silently"; 2]);
        let evidence = document["findings"][0]["evidence"].as_str().expect("words");
        assert!(
            evidence.contains("between this host and the destination"),
            "{evidence}"
        );
    }
}

#[test]
fn one_narrow_direction_is_told_apart_from_the_other() {
    if !is_root() {
        return;
    }
    let path = Switched::new("oneway", 9000);
    path.drops_above(2, 1500);
    let ended = path.check(&["--json", "--encapsulation", "vxlan", "--flows", "4"]);
    ended.expect_code(1);
    let document = document(&ended);
    let (a, b) = (format!("netns:{}", path.a), format!("netns:{}", path.b));
    assert_eq!(
        told(&document),
        [
            (a, 9000, "device".to_owned()),
            (b.clone(), 1500, "silent".to_owned())
        ]
    );
    assert_eq!(
        found(&document),
        ["path-drops-silently", "directions-differ"]
    );
    assert_eq!(document["findings"][0]["host"], b.as_str());
    assert_eq!(document["encapsulation"]["guest_mtu"], 1450);
    assert_eq!(document["encapsulation"]["underlay_mtu"], 9050);
    // Nothing has the tunnel's port, so that is where the probes went.
    assert_eq!(document["directions"][0]["port"], 4789);
}

#[test]
fn one_side_says_which_way_is_narrow_and_what_it_cannot_know() {
    if !is_root() {
        return;
    }
    let path = Switched::new("alone", 9000);
    let a = format!("netns:{}", path.a);
    let ended = check(&[&a, "10.78.0.2", "--json"]);
    ended.expect_code(0);
    let right = document(&ended);
    assert_eq!(told(&right), [(a.clone(), 9000, "device".to_owned())]);
    assert_eq!(right["hosts"][1]["agent"], false);
    let note = right["notes"][0].as_str().expect("a note");
    assert!(note.contains("unknown"), "{note}");
    // Its own address: the longest packet that there is.
    for own in ["10.78.0.1", "fd78::1"] {
        let ended = check(&[&a, own, "--json"]);
        ended.expect_code(0);
        assert_eq!(
            told(&document(&ended)),
            [(a.clone(), 65_535, "ok".to_owned())]
        );
    }

    path.drops_above(1, 4000);
    for (to, expect) in [("10.78.0.2", "9000"), ("fd78::2", "9000")] {
        let ended = check(&[&a, to, "--json", "--expect", expect]);
        ended.expect_code(1);
        let narrow = document(&ended);
        assert_eq!(told(&narrow), [(a.clone(), 4000, "silent".to_owned())]);
        assert_eq!(found(&narrow), ["path-drops-silently"]);
        assert_eq!(narrow["directions"][0]["narrow"], "there");
    }
}

#[test]
fn an_address_that_nobody_has_on_the_link_is_named_from_one_side_and_a_missing_route_too() {
    if !is_root() {
        return;
    }
    let path = Switched::new("nobody", 1500);
    let a = format!("netns:{}=10.78.0.1", path.a);
    for (to, words) in [
        (
            "10.78.0.9",
            "no host answers ARP requests for 10.78.0.9 on eth0",
        ),
        ("192.0.2.9", "the sender has no route to 192.0.2.9"),
    ] {
        let ended = check(&[&a, to, "--json"]);
        ended.expect_code(1);
        let document = document(&ended);
        assert_eq!(found(&document), ["path-dead"], "{document:#}");
        let evidence = document["findings"][0]["evidence"].as_str().expect("words");
        assert!(evidence.contains(words), "{evidence}");
    }
    // Someone whose answers are filtered may be there.
    path.filters(1, "icmp type echo-reply", "drop");
    path.filters(2, "icmp type echo-reply", "drop");
    let filtered = check(&[&a, "10.78.0.2", "--json"]);
    filtered.expect_code(1);
    assert_eq!(found(&document(&filtered)), ["path-undecided"]);
}

/// The kernel asks again after a second, and holds the probes meanwhile.
#[test]
fn a_neighbour_that_is_found_late_makes_no_path_dead() {
    if !is_root() {
        return;
    }
    for port in [1, 2] {
        let path = Switched::new("late", 1500);
        path.filters(port, "ether type arp numgen inc mod 1000 < 1", "drop");
        let ended = path.check(&["--flows", "2", "--json"]);
        ended.expect_code(0);
        let document = document(&ended);
        let told = told(&document);
        assert!(told.iter().all(|(_, mtu, _)| *mtu == 1500), "{told:?}");
    }
}

#[test]
fn a_neighbour_that_never_answers_is_named_for_both_directions() {
    if !is_root() {
        return;
    }
    let path = Switched::new("mute", 1500);
    // What b says is lost, so that a does not find it, and b finds a by what a asks.
    path.filters(2, "ether type arp", "drop");
    let ended = path.check(&["--flows", "2", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    assert_eq!(found(&document), ["path-dead"; 2], "{document:#}");
    let evidence = |index: usize| document["findings"][index]["evidence"].as_str();
    let first = evidence(0).expect("words");
    assert!(
        first.contains("no host answers ARP requests for 10.78.0.2"),
        "{first}"
    );
    let second = evidence(1).expect("words");
    assert!(second.contains("cannot send any"), "{second}");
}

#[test]
fn heavy_loss_is_found_and_some_is_noted_and_sizes_are_told_all_the_same() {
    if !is_root() {
        return;
    }
    for (percent, expected) in [(25, &["path-loses-packets"; 2][..]), (0, &[])] {
        let path = Switched::new("lossy", 9000);
        for port in [1, 2] {
            let some = format!("meta protocol ip numgen random mod 100 < {percent}");
            path.filters(port, &some, "drop");
        }
        let ended = path.check(&["--flows", "48", "--json"]);
        let document = document(&ended);
        let told = told(&document);
        assert!(told.iter().all(|(_, mtu, _)| *mtu == 9000), "{told:?}");
        assert_eq!(found(&document), expected, "{document:#}");
    }
}

#[test]
fn the_commands_of_a_finding_end_it() {
    if !is_root() {
        return;
    }
    let path = Switched::new("typed", 9000);
    path.drops_above(1, 8950);
    path.drops_above(2, 8000);
    let ended = path.check(&["--flows", "2", "--json"]);
    ended.expect_code(1);
    let narrow = document(&ended);
    assert_eq!(
        found(&narrow),
        [
            "path-drops-silently",
            "path-drops-silently",
            "directions-differ"
        ]
    );
    let findings = narrow["findings"].as_array().expect("findings");
    let lines = findings
        .iter()
        .filter_map(|finding| finding["fix"].as_array());
    let lines = lines.flatten().filter_map(Value::as_str);
    let commands: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    // Two routes, and what has TCP look for smaller segments.
    assert_eq!(commands.len(), 4, "{commands:?}");
    for command in commands {
        shell(command);
    }
    let ended = path.check(&["--flows", "2", "--json"]);
    ended.expect_code(0);
    let lowered = document(&ended);
    let told: Vec<u64> = told(&lowered).into_iter().map(|(_, mtu, _)| mtu).collect();
    assert_eq!(told, [8950, 8000]);
    // Who expects more is told that the route does not allow it, once the path carries it.
    shell(&format!("ip netns exec {} nft flush ruleset", path.middle));
    let ended = path.check(&["--flows", "2", "--expect", "9000", "--json"]);
    ended.expect_code(1);
    let routed = document(&ended);
    assert_eq!(found(&routed), ["expected-size-fails"; 2]);
    for finding in routed["findings"].as_array().expect("findings") {
        let fix = finding["fix"][0].as_str().expect("a command");
        shell(fix.strip_prefix("# if that is not wanted: ").unwrap_or(fix));
    }
    path.check(&["--flows", "2", "--expect", "9000"])
        .expect_code(0);
}

/// A router's message is remembered for ten minutes; so are those about others' destinations.
#[test]
fn what_the_kernel_remembers_of_a_check_before_is_no_finding_of_the_next() {
    if !is_root() {
        return;
    }
    let path = Switched::new("again", 1500);
    let (a, m, b) = (&path.a, &path.middle, &path.b);
    shell(&format!(
        "set -e
        ip -n {m} link set p2 nomaster
        ip -n {m} link set p2 mtu 1400
        ip -n {b} link set eth0 mtu 1400
        ip -n {m} address add 10.78.0.254/24 dev br0
        ip -n {m} address add 10.79.0.254/24 dev p2
        ip netns exec {m} sysctl -qw net.ipv4.ip_forward=1
        ip -n {b} address flush dev eth0
        ip -n {b} address add 10.79.0.2/24 dev eth0
        ip -n {b} address add 10.79.0.3/24 dev eth0
        ip -n {a} route add default via 10.78.0.254
        ip -n {b} route add default via 10.79.0.254"
    ));
    let check = |to: &str, more: &[&str]| {
        let (a, b) = (format!("netns:{a}"), format!("netns:{b}={to}"));
        let ended = check(&[&[a.as_str(), b.as_str(), "--flows", "1", "--json"], more].concat());
        found(&document(&ended))
    };
    assert_eq!(check("10.79.0.2", &[]), ["path-signals"]);
    assert_eq!(check("10.79.0.2", &["--expect", "1400"]), [""; 0]);
    // Lowered as the finding says, the path carries what is sent.
    shell(&format!(
        "ip -n {a} route replace 10.79.0.2 via 10.78.0.254 dev eth0 mtu 1400"
    ));
    assert_eq!(check("10.79.0.2", &[]), [""; 0]);
    let one_sided = self::check(&[&format!("netns:{a}"), "10.79.0.3", "--json"]);
    assert_eq!(found(&document(&one_sided)), ["path-signals"]);
}

#[test]
fn a_filter_on_the_tunnels_port_is_told_from_a_dead_path() {
    if !is_root() {
        return;
    }
    let path = Switched::new("filter", 1500);
    shell(&format!(
        "ip netns exec {} nft 'add table netdev t; add chain netdev t c {{ type filter hook ingress device \"p1\" \
         priority 0; }}; add rule netdev t c udp dport 4789 drop'",
        path.middle
    ));
    let ended = path.check(&["--encapsulation", "vxlan", "--flows", "3", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    let (a, b) = (format!("netns:{}", path.a), format!("netns:{}", path.b));
    let told = told(&document);
    assert_eq!(told[0], (a, 0, "dead".to_owned()));
    assert_eq!(told[1], (b, 1500, "device".to_owned()));
    assert_eq!(found(&document), ["path-dead"]);
    let evidence = document["findings"][0]["evidence"].as_str().expect("words");
    let words = "something drops UDP to port 4789";
    assert!(evidence.contains(words), "{evidence}");
}

#[test]
fn beside_a_live_tunnel_its_own_port_is_probed_and_its_guests_see_nothing() {
    if !is_root() {
        return;
    }
    let path = Switched::new("live", 9000);
    for (here, there) in [(&path.a, "10.78.0.2"), (&path.b, "10.78.0.1")] {
        shell(&format!(
            "ip -n {here} link add vx0 type vxlan id 7 remote {there} dstport 4789 dev eth0; ip -n {here} link set vx0 up"
        ));
    }
    path.drops_above(1, 8000);
    let ended = path.check(&["--encapsulation", "vxlan", "--flows", "4", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    assert_eq!(document["directions"][0]["port"], 4789);
    assert_eq!(document["directions"][1]["port"], 4789);
    let told = told(&document);
    assert_eq!((told[0].1, told[0].2.as_str()), (8000, "silent"));
    assert_eq!((told[1].1, told[1].2.as_str()), (9000, "device"));
    let note = document["notes"][0].as_str().expect("a note");
    assert!(note.contains("captured with a packet socket"), "{note}");
    let received = run(Command::new("ip").args([
        "netns",
        "exec",
        &path.b,
        "cat",
        "/sys/class/net/vx0/statistics/rx_packets",
    ]));
    // What a new device sends by itself, and never hundreds of probes.
    let received: u32 = received.stdout.trim().parse().unwrap_or(0);
    assert!(received < 50, "{received}");
}

#[test]
fn the_source_ports_are_those_that_the_tunnel_has() {
    if !is_root() {
        return;
    }
    let path = Switched::new("range", 1500);
    shell(&format!(
        "ip -n {} link add vx0 type vxlan id 7 remote 10.78.0.2 dstport 4789 srcport 50000 50009 dev eth0",
        path.a
    ));
    let ended = path.check(&["--port", "4789", "--json"]);
    ended.expect_code(0);
    let document = document(&ended);
    let ports = |from: &str| -> BTreeSet<u64> {
        let paths = document["paths"].as_array().expect("paths");
        let own = paths.iter().filter(|path| path["from"] == from);
        own.map(|path| path["source_port"].as_u64().expect("a port"))
            .collect()
    };
    let there = ports(&format!("netns:{}", path.a));
    assert_eq!(there, (50_000..50_009).collect());
    // The other end has no such tunnel.
    assert_eq!(ports(&format!("netns:{}", path.b)).len(), 16);
}

#[test]
fn wrong_checksums_are_told_from_a_size() {
    if !is_root() {
        return;
    }
    let path = Switched::new("sums", 9000);
    shell(&format!(
        "ip netns exec {} ethtool -K eth0 tx off >/dev/null; \
         ip netns exec {} nft 'add table netdev t; add chain netdev t c {{ type filter hook ingress device \"p1\" \
         priority 0; }}; add rule netdev t c meta length > 1400 udp checksum set 0xdead'",
        path.a, path.middle
    ));
    let ended = path.check(&["--flows", "2", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    assert_eq!(found(&document), ["bad-checksums", "directions-differ"]);
    assert_eq!(document["findings"][0]["host"], format!("netns:{}", path.a));
}

#[test]
fn wrong_checksums_of_tcp_alone_are_found_by_a_stream() {
    if !is_root() {
        return;
    }
    let path = Switched::new("tcpsums", 1500);
    shell(&format!(
        "ip netns exec {} ethtool -K eth0 tx off >/dev/null; \
         ip netns exec {} nft 'add table netdev t; add chain netdev t c {{ type filter hook ingress device \"p1\" \
         priority 0; }}; add rule netdev t c meta length > 1000 tcp checksum set 0xdead'",
        path.a, path.middle
    ));
    let ended = path.check(&["--flows", "2", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    assert_eq!(found(&document), ["bad-checksums"], "{document:#}");
    assert_eq!(document["directions"][0]["tcp"], "full-stalled");
    assert_eq!(document["directions"][1]["tcp"], "passed");
}

#[test]
fn what_two_hosts_of_one_machine_both_see_is_said_once() {
    if !is_root() {
        return;
    }
    let path = Switched::new("once", 9000);
    shell(&format!(
        "ip -n {} link set eth0 mtu 1500; ip -n {} link set p2 mtu 8000",
        path.b, path.middle
    ));
    let ended = path.check(&["--flows", "1", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    let veth: Vec<&Value> = document["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|finding| finding["id"] == "veth-ends-differ")
        .collect();
    assert_eq!(veth.len(), 1, "{veth:#?}");
    assert_eq!(veth[0]["host"], format!("netns:{}", path.b));
    assert_eq!(
        veth[0]["fix"][0],
        format!("ip -n {} link set dev eth0 mtu 8000", path.b)
    );
}

#[test]
fn a_way_without_a_route_is_named() {
    if !is_root() {
        return;
    }
    let path = Switched::new("route", 1500);
    shell(&format!(
        "ip -n {} address add 10.79.0.2/24 dev eth0",
        path.b
    ));
    let (a, b) = (
        format!("netns:{}=10.78.0.1", path.a),
        format!("netns:{}=10.79.0.2", path.b),
    );
    let ended = check(&[&a, &b, "--flows", "2", "--json"]);
    ended.expect_code(1);
    let document = document(&ended);
    assert_eq!(found(&document), ["path-dead"; 2], "{document:#}");
    let evidence = document["findings"][0]["evidence"].as_str().expect("words");
    assert!(evidence.contains("no route to 10.79.0.2"), "{evidence}");
}

#[test]
fn what_is_in_the_way_of_a_check_is_said() {
    for (arguments, code, words) in [
        (&["local"][..], 2, "<TO>"),
        (&["local", "somewhere"], 2, "an address without an agent"),
        (&["local", "local", "--flows", "0"], 2, "1..=1024"),
        (&["local", "local", "--expect", "40"], 2, "81..=65535"),
        (&["local", "local", "--port", "0"], 2, "--port"),
        (&["local", "local", "--encapsulation", "vxlam"], 2, "vxlan"),
        (&["local", "local", "--bandwidth", "40"], 2, "--bandwidth"),
        (&["local=192.0.2.77", "local"], 2, "192.0.2.77"),
        (&["local=127.0.0.1", "::1"], 2, "different versions of IP"),
        (&["local", "0.0.0.0"], 2, "not a unicast address"),
        (&["local", "224.0.0.1"], 2, "not a unicast address"),
        (&["local", "fe80::1"], 2, "link-local"),
        (&["exec:true", "local"], 3, "exec:true"),
    ] {
        let ended = check(arguments);
        ended.expect_code(code);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
    if is_root() {
        let ended = check(&["netns:wcc-is-not-there", "local"]);
        ended.expect_code(3);
        let words = "is named wcc-is-not-there";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn this_machine_with_itself_carries_what_loopback_does() {
    let ended = check(&["local", "local", "--flows", "2", "--json"]);
    let document = document(&ended);
    let told = told(&document);
    assert!(
        told.iter().all(|(_, mtu, _)| *mtu == 65_535),
        "{document:#}"
    );
}

#[test]
fn an_interrupted_check_ends_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let path = Switched::new("ends", 1500);
    let a = format!("netns:{}", path.a);
    // Nobody answers, so that it takes its time.
    shell(&format!(
        "ip netns exec {} nft 'add table netdev t; add chain netdev t c {{ type filter hook ingress device \"p1\" \
         priority 0; }}; add rule netdev t c udp length > 400 numgen random mod 100 < 50 drop'",
        path.middle
    ));
    let b = format!("netns:{}", path.b);
    let mut running = Running::start(&mut wirecost([
        "check", &a, &b, "--flows", "1024", "--rate", "100",
    ]));
    running.wait_for("both agents", |running| {
        (running.agents().len() == 2).then_some(())
    });
    running.wait_for("a word about it", |running| {
        running.stderr_so_far().contains("probing").then_some(())
    });
    assert!(running.signal(Signal::SIGINT));
    let ended = running.wait();
    ended.expect_code(3);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    wait_for("the agents to be gone", || {
        running.agents().is_empty().then_some(())
    });
}

#[test]
fn help_says_what_the_exit_codes_mean() {
    let ended = run(&mut wirecost(["check", "--help"]));
    ended.expect_code(0);
    insta::assert_snapshot!(ended.stdout);
}
