//! Faults built with `ip` in namespaces of their own, read over netlink, judged: the ids that are expected, and no
//! others. Everything lives in the namespaces of one child that ends with its test.

use std::collections::BTreeSet;
use std::process::Command;

use wirecost_audit::{HostStack, judge};
use wirecost_sys::namespace::{UserNamespace, isolate};

/// The child is this test program once more, which then is alone in its process: a user namespace can be entered by
/// single-threaded processes only, so the scripts run under `unshare`.
const CHILD: &str = "WIRECOST_AUDIT_SCRIPT";

/// What a host says after a script of `ip` commands; `None`, with a word about it, where this machine does not let us.
fn after(script: &str) -> Option<HostStack> {
    let itself = std::env::current_exe().expect("this program");
    let output = Command::new(itself)
        .args([
            "--exact",
            "the_child_builds_and_reads",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, script)
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&output.stdout);
    let document = text.lines().find_map(|line| line.split("STACK ").nth(1));
    if let Some(document) = document {
        return Some(serde_json::from_str(document).expect("a document"));
    }
    let why = text
        .lines()
        .find_map(|line| line.split("CANNOT ").nth(1))
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    wirecost_skips::skip(why);
    None
}

/// Not a test by itself: what [`after`] starts.
#[test]
fn the_child_builds_and_reads() {
    let Ok(script) = std::env::var(CHILD) else {
        return;
    };
    // The test runner has threads, so the namespaces are made by a shell that holds the second one with a `sleep`.
    let holder = "unshare --net sleep 60 >/dev/null 2>&1 & echo $! > \"$1\"; \
        for i in $(seq 500); do [ \"$(readlink /proc/$!/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ] && break; sleep 0.01; done; \
        g=$!; set -e; ip link set lo up; eval \"$2\"";
    let file = std::env::temp_dir().join(format!("wirecost-audit-{}", std::process::id()));
    let inside = std::thread::spawn(move || {
        let own = nix::unistd::geteuid().is_root();
        if !own {
            return Err(
                "this needs root: the test runner's threads keep it out of a user namespace"
                    .to_owned(),
            );
        }
        enter_new_namespace()?;
        let built = Command::new("sh")
            .args(["-c", holder, "sh"])
            .arg(&file)
            .arg(&script)
            .stdout(std::process::Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let stack = built.status.success().then(|| wirecost_audit::gather("a"));
        let pid = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        // The one process that this script left: its namespace goes with it.
        let _ = Command::new("kill").arg(pid.trim()).output();
        match stack {
            Some(stack) => stack.map_err(|error| format!("reading: {error}")),
            None => panic!("`{script}`: {}", String::from_utf8_lossy(&built.stderr)),
        }
    });
    match inside.join().expect("the thread") {
        Ok(stack) => println!("STACK {}", serde_json::to_string(&stack).expect("written")),
        Err(why) => println!("CANNOT {}", why.replace('\n', " ")),
    }
}

/// Not a test by itself: what the next one starts.
#[test]
fn the_child_reads_where_it_is() {
    if std::env::var_os("WIRECOST_AUDIT_HERE").is_some() {
        let stack = wirecost_audit::gather("a").expect("read");
        println!("STACK {}", serde_json::to_string(&stack).expect("written"));
    }
}

#[test]
fn without_any_capability_the_own_namespace_is_read_all_the_same() {
    let output = Command::new("setpriv")
        .args([
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--ambient-caps=-all",
            "--no-new-privs",
        ])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_child_reads_where_it_is", "--nocapture"])
        .env("WIRECOST_AUDIT_HERE", "1")
        .output()
        .expect("setpriv");
    let text = String::from_utf8_lossy(&output.stdout);
    if !nix::unistd::geteuid().is_root() {
        // Only root may take away what it could have; a plain user has nothing to begin with.
        wirecost_skips::skip("taking capabilities away needs root");
        return;
    }
    let document = text.lines().find_map(|line| line.split("STACK ").nth(1));
    let document = document.unwrap_or_else(|| panic!("{output:?}"));
    let stack: HostStack = serde_json::from_str(document).expect("a document");
    assert!(
        stack.namespaces[0]
            .devices
            .iter()
            .any(|device| device.loopback)
    );
}

/// A network namespace of this thread's own.
fn enter_new_namespace() -> Result<(), String> {
    isolate(UserNamespace::Keep).map_err(|error| format!("a network namespace: {error}"))
}

#[track_caller]
fn expect(script: &str, expected: &[&str]) {
    let Some(stack) = after(script) else { return };
    let findings = judge(&stack);
    let found: BTreeSet<String> = findings
        .iter()
        .map(|finding| match &finding.device {
            Some(device) => format!("{} {device}", finding.id),
            None => finding.id.to_owned(),
        })
        .collect();
    let expected: BTreeSet<String> = expected.iter().map(|&line| line.to_owned()).collect();
    assert_eq!(found, expected, "{findings:#?}\n{:?}", stack.unread);
}

/// A guest in `$g` behind a bridge with a VXLAN tunnel: the guest's device, the bridge's port, the tunnel and the
/// underlay have these MTUs.
fn overlay(guest: u32, port: u32, tunnel: u32, underlay: u32) -> String {
    format!(
        "ip link add eth0 mtu {underlay} type veth peer name far mtu {underlay}; ip addr add 10.0.0.1/24 dev eth0; \
         ip link set eth0 up; ip link set far up; ip link add br0 type bridge; ip link set br0 up; \
         ip link add vxlan1 mtu {tunnel} type vxlan id 7 dev eth0 remote 10.0.0.2 dstport 4789; \
         ip link set vxlan1 master br0 up; \
         ip link add veth1 mtu {port} type veth peer name eth0 netns $g mtu {guest}; \
         ip link set veth1 master br0 up; nsenter -t $g -n ip addr add 192.168.0.1/24 dev eth0; \
         nsenter -t $g -n ip link set eth0 up"
    )
}

#[test]
fn a_network_that_is_right_has_no_finding() {
    for underlay in [1500, 9000, 9216] {
        let guest = underlay - 50;
        expect(&overlay(guest, guest, guest, underlay), &[]);
    }
}

#[test]
fn a_veth_that_was_changed_at_one_end_is_seen_from_the_other_namespace() {
    expect(
        &overlay(8950, 1450, 8950, 9000),
        &["veth-ends-differ veth1", "tcp-mtu-probing-off"],
    );
    expect(
        &overlay(1450, 8950, 8950, 9000),
        &["veth-ends-differ eth0", "tcp-mtu-probing-off"],
    );
}

#[test]
fn guests_that_send_more_than_the_tunnel_takes() {
    expect(
        &overlay(9000, 9000, 8950, 9000),
        &["guest-larger-than-tunnel vxlan1", "tcp-mtu-probing-off"],
    );
}

#[test]
fn a_tunnel_as_large_as_its_underlay() {
    expect(
        &format!(
            "{}; ip link set vxlan1 mtu 1450; ip link set eth0 mtu 1450",
            overlay(1450, 1450, 1450, 1500)
        ),
        &[
            "tunnel-exceeds-underlay vxlan1",
            "veth-ends-differ eth0",
            "tcp-mtu-probing-off",
        ],
    );
}

#[test]
fn an_uplink_that_was_lowered_after_the_tunnel_was_made() {
    expect(
        &format!(
            "{}; ip link set far mtu 1500; ip link set eth0 mtu 1500",
            overlay(8950, 8950, 8950, 9000)
        ),
        &["tunnel-exceeds-underlay vxlan1", "tcp-mtu-probing-off"],
    );
}

#[test]
fn an_overhead_that_was_counted_twice_costs_and_is_no_fault() {
    expect(
        &overlay(8900, 8900, 8900, 9000),
        &["overhead-counted-twice vxlan1"],
    );
}

#[test]
fn a_bridges_port_that_was_left_behind() {
    expect(
        "ip link add br0 type bridge; ip link set br0 up; ip link add p1 mtu 9000 type veth peer name q1 mtu 9000; \
         ip link add p2 mtu 9000 type veth peer name q2 mtu 9000; ip link set p1 master br0 up; ip link set p2 master br0 up; \
         ip link set q1 up; ip link set q2 up; ip link set br0 mtu 9000; ip link set p2 mtu 1500; ip link set q2 mtu 1500; \
         ip link set br0 mtu 9000",
        &["bridge-port-smaller p2", "tcp-mtu-probing-off"],
    );
}

#[test]
fn the_default_routes_device_may_be_larger_than_the_tunnels_own() {
    expect(
        "ip link add eth0 mtu 9000 type veth peer name far0 mtu 9000; ip link add eth1 mtu 1500 type veth peer name far1 mtu 1500; \
         ip addr add 10.0.0.1/24 dev eth0; ip addr add 10.1.0.1/24 dev eth1; \
         for d in eth0 far0 eth1 far1; do ip link set $d up; done; ip route add default via 10.0.0.2; \
         ip link add vxlan1 mtu 8950 type vxlan id 7 remote 10.1.0.2 dstport 4789; ip link set vxlan1 up",
        &["tunnel-uses-narrower-device vxlan1", "tcp-mtu-probing-off"],
    );
}

#[test]
fn a_route_with_an_mtu_counts_for_the_tunnel() {
    expect(
        "ip link add eth0 mtu 9000 type veth peer name far mtu 9000; ip link set far up; ip link set eth0 up; \
         ip addr add 10.0.0.1/32 dev eth0; ip route add 10.0.0.0/24 dev eth0 mtu 1500; \
         ip link add vxlan1 mtu 8950 type vxlan id 7 remote 10.0.0.2 dstport 4789; ip link set vxlan1 up",
        &[
            "tunnel-exceeds-underlay vxlan1",
            "route-mtu-smaller eth0",
            "tcp-mtu-probing-off",
        ],
    );
}

#[test]
fn other_ends_that_only_the_forwarding_database_names_are_looked_at() {
    expect(
        "ip link add eth0 mtu 1500 type veth peer name far mtu 1500; ip link set far up; ip link set eth0 up; \
         ip addr add 10.0.0.1/24 dev eth0; \
         ip link add vxlan1 mtu 1500 type vxlan id 7 dstport 4789 nolearning; ip link set vxlan1 up; \
         bridge fdb append 00:00:00:00:00:00 dev vxlan1 dst 10.0.0.2",
        &["tunnel-exceeds-underlay vxlan1", "tcp-mtu-probing-off"],
    );
}

#[test]
fn a_vxlan_over_ipv6_is_held_against_its_larger_overhead() {
    let script = |mtu: u32| {
        format!(
            "ip link add eth0 mtu 1500 type veth peer name far mtu 1500; ip link set far up; ip link set eth0 up; \
             ip -6 addr add 3fff::1/64 dev eth0 nodad; \
             ip link add vxlan1 mtu {mtu} type vxlan id 7 remote 3fff::2 local 3fff::1 dstport 4789; ip link set vxlan1 up"
        )
    };
    expect(&script(1430), &[]);
    expect(
        &script(1450),
        &["tunnel-exceeds-underlay vxlan1", "tcp-mtu-probing-off"],
    );
}

#[test]
fn settings_and_rules_are_read_in_the_namespace() {
    let Some(stack) = after(
        "sysctl -qw net.ipv4.ip_no_pmtu_disc=1; nft add table inet m; \
         nft add chain inet m f '{ type filter hook forward priority 0; }'; \
         nft add rule inet m f tcp flags syn tcp option maxseg size set 1360",
    ) else {
        return;
    };
    let clamps = stack.namespaces[0]
        .mss_clamps
        .as_ref()
        .expect("nft is there");
    assert_eq!(clamps[0].mss, Some(1360));
    let findings = judge(&stack);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "pmtu-discovery-off");
}
