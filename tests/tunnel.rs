//! Tunnels by hand: made, used, shown, removed; and found where something was left of them.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Ended, is_root, lock_machine_state, program, run, skip, succeeds, wirecost};
use wirecost_sys::bpf::PassingClassifier;
use wirecost_sys::namespace::Netns;
use wirecost_sys::socket::set_mtu_discover_probe;

/// Whether tunnels can be made here; says why not, or fails where they must.
fn tunnels_can_be_made() -> bool {
    if !is_root() {
        return false;
    }
    match PassingClassifier::load() {
        Err(error) => skip(format!("eBPF programs cannot be loaded here: {error}")),
        Ok(_) => true,
    }
}

/// A tunnel that is taken down with the test, whatever becomes of it.
struct Made(&'static str);

impl Drop for Made {
    fn drop(&mut self) {
        succeeds(&mut wirecost(["tunnel", "down", self.0]));
    }
}

fn tunnel(arguments: &str) -> Ended {
    let words = ["tunnel"].into_iter().chain(arguments.split(' '));
    run(&mut wirecost(words))
}

fn ip(arguments: &str) {
    let mut command = Command::new("ip");
    assert!(
        succeeds(command.args(arguments.split(' '))),
        "ip {arguments}"
    );
}

fn within<T>(namespace: &str, work: impl FnOnce() -> T) -> T {
    let netns = Netns::named(namespace).expect("a namespace");
    netns.within(work).expect("entered")
}

/// Whether a datagram of exactly `size` bytes of IPv4, which nothing may fragment, gets from one namespace to an
/// address in another and back.
fn echoes(from: &str, to: &str, address: IpAddr, size: usize) -> bool {
    let server = within(to, || UdpSocket::bind((address, 0)).expect("a socket"));
    let client = within(from, || UdpSocket::bind("0.0.0.0:0").expect("a socket"));
    set_mtu_discover_probe(&client).expect("don't fragment");
    for socket in [&server, &client] {
        let short = Some(Duration::from_millis(300));
        socket.set_read_timeout(short).expect("a timeout");
    }
    let at = server.local_addr().expect("its address");
    let (sent, mut buffer) = (vec![7; size - 28], vec![0; 1 << 16]);
    (0..10).any(|_| {
        if client.send_to(&sent, at).is_err() {
            return false;
        }
        let Ok((length, back)) = server.recv_from(&mut buffer) else {
            return false;
        };
        assert_eq!(length, sent.len());
        server.send_to(&buffer[..1], back).is_ok() && client.recv_from(&mut buffer).is_ok()
    })
}

/// Nothing of tunnels is there: no note, no pin, no namespace, no device.
fn nothing_is_left(of: &str) {
    assert!(!Path::new("/run/wirecost").exists());
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounts.contains("/run/wirecost"), "{mounts}");
    for side in ["a", "b"] {
        assert!(!Path::new(&format!("/run/netns/{of}-{side}")).exists());
    }
    let devices = fs::read_to_string("/proc/thread-self/net/dev").expect("devices");
    assert!(
        !devices.contains(of) && !devices.contains("wcseg"),
        "{devices}"
    );
}

#[test]
fn a_tunnel_between_namespaces_carries_its_mtu_and_is_gone_when_it_is_down() {
    if !tunnels_can_be_made() {
        return;
    }
    let _lock = lock_machine_state();
    for (encapsulation, mtu, ipv6) in [
        ("none", 1500, false),
        ("vlan id=7", 1500, false),
        ("vxlan vni=9", 8900, true),
        ("geneve options=ovn udp_checksum=on", 1450, false),
    ] {
        let name = "wctest0";
        let made = Made(name);
        let ipv6 = if ipv6 { " --ipv6" } else { "" };
        let up = tunnel(&format!(
            "up {encapsulation} --name {name} --mtu {mtu}{ipv6} --json"
        ));
        up.expect_code(0);
        let document = up.document();
        assert_eq!(document["tunnel"]["ends"][0]["mtu"], mtu);
        let address = |end: usize| -> IpAddr {
            let text = document["tunnel"]["ends"][end]["address"].as_str();
            text.expect("an address").parse().expect("an address")
        };
        let (a, b) = ("wctest0-a", "wctest0-b");
        for (from, to, address) in [(a, b, address(1)), (b, a, address(0))] {
            assert!(echoes(from, to, address, mtu), "{encapsulation} {from}");
        }

        let shown = tunnel("show --json").document();
        let shown = &shown["tunnels"][0];
        assert_eq!(
            (&shown["name"], &shown["whole"]),
            (&name.into(), &true.into())
        );
        assert!(
            shown["counters"][0].to_string().contains("encapsulated"),
            "{shown}"
        );
        // Whole, it stays.
        let cleaned = run(&mut wirecost(["clean", "--json"])).document();
        assert_eq!(cleaned["tunnels"]["up"][0], name);
        assert!(echoes(a, b, address(1), mtu));

        tunnel(&format!("down {name}")).expect_code(0);
        nothing_is_left(name);
        drop(made);
    }
}

#[test]
fn two_hosts_each_make_their_end() {
    if !tunnels_can_be_made() {
        return;
    }
    let _lock = lock_machine_state();
    let (hosts, names) = (["wctest-h1", "wctest-h2"], ["wctest1", "wctest2"]);
    let _made = names.map(Made);
    let _hosts = hosts.map(Host::new);
    ip("-n wctest-h1 link add up0 mtu 1600 type veth peer name up0 mtu 1600 netns wctest-h2");
    for number in [1, 2] {
        ip(&format!(
            "-n wctest-h{number} addr add 10.99.0.{number}/24 dev up0"
        ));
        ip(&format!("-n wctest-h{number} link set up0 up"));
    }
    let at = |host: &str, arguments: &str| {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{host}"))
            .arg(program())
            .arg("tunnel");
        run(command.args(arguments.split(' ')))
    };
    for (index, (host, name)) in hosts.iter().zip(names).enumerate() {
        let (own, other) = (index + 1, 2 - index);
        let up = at(
            host,
            &format!(
                "up geneve options=8 udp_checksum=on --name {name} --peer 10.99.0.{other} --address 10.98.0.{own}/24"
            ),
        );
        up.expect_code(0);
        assert!(up.stdout.contains("over up0"), "{up:#?}");
    }
    let other: IpAddr = "10.98.0.2".parse().expect("an address");
    assert!(echoes(hosts[0], hosts[1], other, 1500));
    for (arguments, words) in [
        (
            "up geneve vni=9 --name wctest5 --peer 10.99.0.2 --address 10.97.0.1/24",
            "tunnel wctest1 already receives all of UDP port 6081 on up0",
        ),
        (
            "up vxlan port=6081 --name wctest5 --peer 10.99.0.2 --address 10.97.0.1/24",
            "tunnel wctest1 already receives all of UDP port 6081 on up0",
        ),
        (
            "up vxlan --name wctest5 --peer 10.99.0.1 --address 10.97.0.1/24",
            "10.99.0.1 is this host's own address",
        ),
        (
            "up vxlan --name wctest5 --peer 10.99.0.2 --address 10.98.0.1/24",
            "10.98.0.1 is an address of wctest1 already",
        ),
    ] {
        let refused = at(hosts[0], arguments);
        refused.expect_code(3);
        assert!(refused.stderr.contains(words), "{refused:#?}");
    }
    let shown = tunnel("show").stdout;
    for host in hosts {
        assert!(
            shown.contains(&format!("network namespace {host}:")),
            "{shown}"
        );
    }
    // A guest whose MTU is raised is told what fits.
    ip(&format!("-n {} link set {} mtu 9000", hosts[0], names[0]));
    assert!(!echoes(hosts[0], hosts[1], other, 3000));
    let counted = tunnel("show").stdout;
    assert!(counted.contains("too_big_answered"), "{counted}");
    // From wherever it is asked for.
    tunnel("down wctest1").expect_code(0);
    at(hosts[1], "down wctest2").expect_code(0);
    for host in hosts {
        let left = within(host, || fs::read_to_string("/proc/thread-self/net/dev"));
        let left = left.expect("devices");
        assert!(
            !left.contains("wctest") && !left.contains("wcseg"),
            "{left}"
        );
    }
    nothing_is_left("wctest1");
}

#[test]
fn a_tunnel_whose_namespace_is_gone_can_be_removed() {
    if !tunnels_can_be_made() {
        return;
    }
    let _lock = lock_machine_state();
    for way in ["down wctest6", "clean"] {
        let _made = Made("wctest6");
        let host = Host::new("wctest-h6");
        ip("-n wctest-h6 link add up0 type veth peer name up1");
        ip("-n wctest-h6 addr add 10.99.0.1/24 dev up0");
        ip("-n wctest-h6 link set up0 up");
        let mut up = Command::new("nsenter");
        let up = up.arg("--net=/run/netns/wctest-h6").arg(program());
        let up = up.args(["tunnel", "up", "vxlan", "--name", "wctest6"]);
        run(up.args(["--peer", "10.99.0.2", "--address", "10.98.0.1/24"])).expect_code(0);
        drop(host);
        let shown = tunnel("show").stdout;
        let words = "missing: the network namespace that it was made in";
        assert!(shown.contains(words), "{shown}");
        match way {
            "clean" => run(&mut wirecost(["clean"])).expect_code(0),
            down => tunnel(down).expect_code(0),
        }
        nothing_is_left("wctest6");
    }
}

/// A named network namespace that goes with the test.
struct Host(&'static str);

impl Host {
    fn new(name: &'static str) -> Self {
        ip(&format!("netns add {name}"));
        Self(name)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        succeeds(Command::new("ip").args(["netns", "del", self.0]));
    }
}

#[test]
fn what_is_left_of_a_tunnel_is_found_and_removed() {
    if !tunnels_can_be_made() {
        return;
    }
    let _lock = lock_machine_state();
    let name = "wctest3";
    let _made = Made(name);
    tunnel(&format!("up vxlan udp_checksum=on --name {name}")).expect_code(0);
    // Somebody took a namespace away.
    assert!(succeeds(Command::new("ip").args([
        "netns",
        "del",
        "wctest3-b"
    ])));
    let shown = tunnel("show");
    assert!(shown.stdout.contains("broken"), "{shown:#?}");
    let cleaned = run(&mut wirecost(["clean"]));
    cleaned.expect_code(0);
    let words = format!("removed what was left of tunnel {name}");
    assert!(cleaned.stdout.contains(&words), "{cleaned:#?}");
    nothing_is_left(name);

    // A pair of devices that no tunnel has any more.
    assert!(succeeds(Command::new("ip").args(
        "link add wcseg4242s type veth peer name wcseg4242r".split(' ')
    )));
    let cleaned = run(&mut wirecost(["clean", "--json"])).document();
    assert_eq!(cleaned["tunnels"]["devices"][0], "wcseg4242s");
    nothing_is_left(name);
}

#[test]
fn a_tunnel_that_cannot_be_leaves_nothing() {
    if !tunnels_can_be_made() {
        return;
    }
    let _lock = lock_machine_state();
    for (arguments, code, words) in [
        ("up vxln", 2, "did you mean `vxlan`?"),
        ("up vxlan vni=x", 2, "a whole number from 0 to 16777215"),
        ("up vxlan --peer 192.0.2.1", 2, "--address"),
        ("up vxlan --name much-too-long-a-name", 2, "at most 13"),
        ("up vxlan --name ../x", 2, "letters, digits and `-`"),
        ("up gre", 2, "the kernel's own device"),
        ("up none vni=4", 2, "`none` has no options"),
        ("up vxlan vni=1 vni=2", 2, "`vni` is given twice"),
        ("up geneve options=3", 2, "not a multiple of 4"),
        (
            "up vxlan --name wctest4 --peer 127.0.0.1 --address 192.0.2.1/24",
            3,
            "127.0.0.1 is no other host's address",
        ),
        ("down nothere", 3, "no tunnel is called nothere"),
    ] {
        let ended = tunnel(arguments);
        ended.expect_code(code);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(words), "{arguments}: {ended:#?}");
        nothing_is_left("wctest4");
    }
    // A namespace of somebody else's that has the name of one that would be made stays, with what is in it.
    for side in ["a", "b"] {
        let taken = format!("wctest4-{side}");
        wirecost_sys::namespace::create_named(&taken).expect("a namespace");
        let ended = tunnel("up vxlan --name wctest4");
        ended.expect_code(3);
        let words = format!("there is a network namespace {taken} already");
        assert!(ended.stderr.contains(&words), "{ended:#?}");
        let there = Netns::named(&taken);
        wirecost_sys::namespace::remove_named(&taken).expect("removed");
        assert!(there.is_ok(), "{taken} is gone");
        nothing_is_left("wctest4");
    }
    // Nor does a device of somebody else's go that has the name of one that would be made.
    let _host = Host::new("wctest-h4");
    ip("-n wctest-h4 link add up0 type veth peer name up1");
    ip("-n wctest-h4 link add wctest4-p type veth peer name mine");
    ip("-n wctest-h4 addr add 10.99.0.1/24 dev up0");
    ip("-n wctest-h4 link set up0 up");
    ip("-n wctest-h4 link set up1 up");
    let ended = run(Command::new("nsenter")
        .arg("--net=/run/netns/wctest-h4")
        .arg(program())
        .args("tunnel up vxlan --name wctest4 --peer 10.99.0.2 --address 192.0.2.1/24".split(' ')));
    ended.expect_code(3);
    let words = "there is a device wctest4-p already";
    assert!(ended.stderr.contains(words), "{ended:#?}");
    ip("-n wctest-h4 link show dev wctest4-p");
    // What `ip netns exec` runs is in a mount namespace that goes with it, and pins with that.
    let mut alone = Command::new("unshare");
    let ended = run(alone
        .arg("--mount")
        .arg(program())
        .args(["tunnel", "up", "vxlan"]));
    ended.expect_code(3);
    assert!(ended.stderr.contains("nsenter --net="), "{ended:#?}");
    nothing_is_left("wctest4");

    let twice = Made("wctest4");
    tunnel("up vlan --name wctest4").expect_code(0);
    let again = tunnel("up vlan --name wctest4");
    again.expect_code(3);
    assert!(
        again.stderr.contains("there is a tunnel wctest4 already"),
        "{again:#?}"
    );
    drop(twice);
    nothing_is_left("wctest4");
}
