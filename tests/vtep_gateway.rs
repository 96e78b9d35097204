//! A VXLAN gateway of the hardware_vtep schema, by Open vSwitch's own emulator: `check` walks the path through it, and
//! `load` and `run` load it, as any existing network.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{TestDir, is_root, lock_shared, run, skip, succeeds, wirecost};
use wirecost_sys::namespace::HeldNetns;

const EMULATOR: &str = "/usr/share/openvswitch/scripts/ovs-vtep";
/// Of the guests: VXLAN leaves that much of 1500.
const MTU: &str = "1450";

/// A guest in VLAN 100, the gateway, and a host with the kernel's VXLAN.
struct Lab {
    guest: HeldNetns,
    _gateway: HeldNetns,
    other: HeldNetns,
    daemons: Child,
    _directory: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let held = |name: &str| HeldNetns::create(name).expect("a namespace");
        let (guest, gateway, other) = (held("guest"), held("gateway"), held("other"));
        let (to_guest, to_other) = (guest.tid(), other.tid());
        for command in [
            format!(
                "link add under0 mtu 1500 type veth peer name under0 mtu 1500 address 02:00:00:00:09:02 netns {to_other}"
            ),
            "link set under0 address 02:00:00:02:09:01 up".to_owned(),
            format!("link add port0 mtu 1500 type veth peer name eth0 mtu {MTU} netns {to_guest}"),
            "link set port0 up".to_owned(),
        ] {
            ip(&gateway, &command);
        }
        for command in [
            "link set lo up",
            "address add 192.0.2.1/24 dev eth0",
            "link set eth0 up",
        ] {
            ip(&guest, command);
        }
        for command in [
            "link set lo up",
            "link set under0 up",
            "address add 10.9.0.2/24 dev under0",
            "link add vx0 type vxlan id 5000 local 10.9.0.2 remote 10.9.0.1 dstport 4789",
            &format!("link set vx0 mtu {MTU} up"),
            "address add 192.0.2.2/24 dev vx0",
        ] {
            ip(&other, command);
        }
        // Packet sockets meet frames one by one, with their checksums.
        for (place, devices) in [
            (&guest, &["eth0"][..]),
            (&gateway, &["under0", "port0"]),
            (&other, &["under0", "vx0"]),
        ] {
            for device in devices {
                let mut command = Command::new("ethtool");
                command.args(["-K", device, "tx", "off", "tso", "off", "gro", "off"]);
                let done = place.netns().within(|| succeeds(&mut command));
                assert!(done.expect("entered"), "{device}");
            }
        }
        let directory = tempfile::tempdir().expect("a directory");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vtep/gateway.sh");
        // The daemons end with the first process of their own process namespace.
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child", script])
            .arg(directory.path())
            .arg("10.9.0.2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let started = gateway.netns().within(|| command.spawn());
        let mut daemons = started.expect("entered").expect("started");
        let mut line = String::new();
        let output = daemons.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("read");
        assert_eq!(line, "ready\n", "the gateway did not come up");
        Self {
            guest,
            _gateway: gateway,
            other,
            daemons,
            _directory: directory,
        }
    }

    /// Both ends as `wirecost` is told of them.
    fn hosts(&self) -> [String; 2] {
        [(&self.guest, 1), (&self.other, 2)].map(|(place, number)| {
            format!(
                "exec:nsenter --net=/proc/{}/ns/net=192.0.2.{number}",
                place.tid()
            )
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.daemons.kill();
        let _ = self.daemons.wait();
    }
}

fn ip(place: &HeldNetns, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    let done = place.netns().within(|| succeeds(&mut command));
    assert!(done.expect("entered"), "ip {arguments}");
}

#[test]
fn the_path_through_a_gateway_is_checked_and_loaded() {
    if !Path::new(EMULATOR).exists() {
        skip("Open vSwitch's VTEP emulator is not installed: apt-get install openvswitch-vtep");
        return;
    }
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let lab = Lab::new();
    let [guest, other] = lab.hosts();

    let checked = run(wirecost(["check", &guest, &other]).args(["--expect", MTU, "--json"]));
    let document = checked.document();
    let paths = document["paths"].as_array().expect("paths");
    assert_eq!(
        paths.len(),
        2 * 16,
        "both directions, every flow: {document}"
    );
    for path in paths {
        assert_eq!(path["mtu"], 1450, "{path}");
    }
    let load = ["tcp-rr", "--time", "0.5s", "--json"];
    let loaded = run(wirecost(["load", &guest, &other]).args(load));
    loaded.expect_code(0);

    let place = TestDir::new();
    let plan = place.plan(
        "name: gateway\nnetwork: existing\nguest_mtu: 1450\nload: tcp-rr\n\
         repeat: { rounds: 1, seconds: 0.3, warmup: 0.1 }\n",
    );
    let mut command = wirecost(["run"]);
    command
        .arg(&plan)
        .args(["--hosts", &format!("{guest},{other}"), "--yes", "--json"])
        .current_dir(place.path());
    let ran = run(&mut command);
    ran.expect_code(0);
}
