//! `wirecost tunnel up --bridge`: ports in a bridge of the host's own Open vSwitch, added, used and removed, and
//! nothing else of that changed.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Ended, is_root, lock_machine_state, run, skip, succeeds, wirecost};
use wirecost_model::plan::{Encapsulation, Vxlan};
use wirecost_model::switch::OvsDatapath;
use wirecost_ovs::{Programs, Switch, SwitchSpec, UNDERLAY_BRIDGE};
use wirecost_sys::namespace::HeldNetns;

const NAME: &str = "wcown0";
const MTU: u32 = 1400;
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]];
const ASIDE: &str = "02:00:00:02:09:01";

/// A host with an Open vSwitch of its own, as an administrator has it, and one with the kernel's vxlan.
struct Lab {
    ours: HeldNetns,
    other: HeldNetns,
    switch: Option<Switch>,
    run_directory: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let host = |name: &str| HeldNetns::create(name).expect("a namespace");
        let mut lab = Self {
            ours: host("ours"),
            other: host("other"),
            switch: None,
            run_directory: PathBuf::new(),
        };
        let [mac_a, mac_b] = MACS.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
        let tid = lab.other.tid();
        in_host(
            &lab.ours,
            &format!(
                "link add under0 address {ASIDE} mtu 1500 type veth peer name under0 address {mac_b} mtu 1500 netns {tid}"
            ),
        );
        in_host(&lab.ours, "link set under0 up");
        for command in [
            "link set under0 up".to_owned(),
            "address add 10.9.0.2/24 dev under0".to_owned(),
            format!("neighbour replace 10.9.0.1 lladdr {mac_a} dev under0"),
            "link add vx0 type vxlan id 9 local 10.9.0.2 remote 10.9.0.1 dstport 4789 noudpcsum"
                .to_owned(),
            format!("link set vx0 mtu {MTU} up"),
            "address add 192.0.2.2/24 dev vx0".to_owned(),
        ] {
            in_host(&lab.other, &command);
        }
        let wanted = SwitchSpec {
            // A tunnel of the administrator's own, of another segment.
            encapsulation: Encapsulation::Vxlan(Vxlan::default()),
            underlay: "under0".to_owned(),
            underlay_mtu: 1500,
            guests: Vec::new(),
            local: [10, 9, 0, 1].into(),
            peer: [10, 9, 0, 2].into(),
            mac: MACS[0],
            ovn: None,
        };
        let started = lab
            .ours
            .netns()
            .within(|| Switch::start(wanted, OvsDatapath::Userspace, "test"));
        let mut switch = started
            .expect("entered")
            .unwrap_or_else(|error| panic!("{error}"));
        let in_userspace = switch.spec().has_underlay_bridge(switch.about().datapath);
        let device = if in_userspace {
            UNDERLAY_BRIDGE
        } else {
            in_host(&lab.ours, &format!("link set under0 address {mac_a}"));
            "under0"
        };
        in_host(&lab.ours, &format!("address add 10.9.0.1/24 dev {device}"));
        in_host(&lab.ours, &format!("link set {device} up"));
        let reached = switch.reach([10, 9, 0, 2].into(), MACS[1]);
        reached.unwrap_or_else(|error| panic!("{error}"));
        let own = switch.run_directory();
        let below = own.strip_prefix("/proc/self").expect("a descriptor's path");
        lab.run_directory = PathBuf::from(format!("/proc/{}", std::process::id())).join(below);
        lab.switch = Some(switch);
        lab
    }

    /// `wirecost tunnel ...` on our host, whose Open vSwitch it finds.
    fn tunnel(&self, arguments: &str) -> Ended {
        self.wirecost(&format!("tunnel {arguments}"))
    }

    fn wirecost(&self, arguments: &str) -> Ended {
        let mut command = wirecost(arguments.split(' '));
        command.env("OVS_RUNDIR", &self.run_directory);
        let ended = self.ours.netns().within(|| run(&mut command));
        ended.expect("entered")
    }

    fn ports(&self) -> String {
        let output = Command::new("ovs-vsctl")
            .arg(format!(
                "--db=unix:{}/db.sock",
                self.run_directory.display()
            ))
            .args(["list-ports", "br-int"])
            .output();
        String::from_utf8(output.expect("ovs-vsctl").stdout).expect("text")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.tunnel(&format!("down {NAME}"));
    }
}

/// Whether packets of exactly the guests' MTU get there and back.
fn pings(from: &HeldNetns, address: &str) -> bool {
    let payload = (MTU - 28).to_string();
    let mut ping = Command::new("ping");
    ping.args(["-c", "2", "-i", "0.1", "-W", "10", "-M", "do"]);
    ping.args(["-s", &payload, address]);
    from.netns()
        .within(|| succeeds(&mut ping))
        .expect("entered")
}

fn in_host(host: &HeldNetns, arguments: &str) {
    let mut ip = Command::new("ip");
    ip.args(arguments.split(' '));
    let output = host.netns().within(|| ip.output()).expect("entered");
    let output = output.expect("ip");
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

fn can_run() -> bool {
    if let Err(error) = Programs::find() {
        return skip(error);
    }
    is_root()
}

const UP: &str = "--name wcown0 --peer 10.9.0.2 --address 192.0.2.1/24";

#[test]
fn guest_and_tunnel_are_ports_of_the_bridge_until_the_tunnel_is_down() {
    if !can_run() {
        return;
    }
    let _lock = lock_machine_state();
    let lab = Lab::new();
    let before = lab.ports();
    let up = lab.tunnel(&format!(
        "up vxlan vni=9 {UP} --mtu {MTU} --bridge br-int --json"
    ));
    up.expect_code(0);
    assert_eq!(up.document()["tunnel"]["ends"][0]["bridge"], "br-int");
    assert_eq!(lab.ports(), format!("{before}wcown0-p\nwcown0-t\n"));
    assert!(pings(&lab.ours, "192.0.2.2"));
    assert!(pings(&lab.other, "192.0.2.1"));
    let shown = lab.tunnel("show --json").document();
    assert_eq!(shown["tunnels"][0]["whole"], true, "{shown}");
    lab.tunnel(&format!("down {NAME}")).expect_code(0);
    assert_eq!(lab.ports(), before);
    let shown = lab.tunnel("show --json").document();
    assert_eq!(shown["tunnels"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_cannot_be_in_somebody_elses_bridge_is_said_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let _lock = lock_machine_state();
    let lab = Lab::new();
    let before = lab.ports();
    for (what, reason) in [
        (
            "vxlan vni=9 BR --bridge br-none",
            "there is no bridge br-none",
        ),
        (
            "geneve options=ovn BR --bridge br-int",
            "leave `options` out",
        ),
        (
            "vxlan source_ports=1-9 BR --bridge br-int",
            "leave `source_ports` out",
        ),
        (
            "vxlan vni=9 BR --mtu 1490 --bridge br-int",
            "the largest is 1450",
        ),
        // Another of the same way and segment as the administrator's.
        (
            "vxlan vni=42 BR --bridge br-int",
            "Open vSwitch cannot use wcown0-t as a port",
        ),
    ] {
        let ended = lab.tunnel(&format!("up {}", what.replace("BR", UP)));
        ended.expect_code(3);
        assert!(ended.stderr.contains(reason), "{what}: {}", ended.stderr);
        assert_eq!(lab.ports(), before, "{what}");
        let shown = lab.tunnel("show --json").document();
        assert_eq!(shown["tunnels"].as_array().map(Vec::len), Some(0), "{what}");
    }
    let mut elsewhere = wirecost(
        "tunnel up vxlan --bridge br0"
            .split(' ')
            .chain(UP.split(' ')),
    );
    elsewhere.env("OVS_RUNDIR", "/nonexistent");
    let ended = lab
        .ours
        .netns()
        .within(|| run(&mut elsewhere))
        .expect("entered");
    ended.expect_code(3);
    assert!(
        ended
            .stderr
            .contains("no Open vSwitch runs on this machine"),
        "{ended:#?}"
    );
}

#[test]
fn a_tunnel_whose_switch_is_gone_is_broken_and_clean_removes_it() {
    if !can_run() {
        return;
    }
    let _lock = lock_machine_state();
    let mut lab = Lab::new();
    let up = lab.tunnel(&format!("up vxlan vni=9 {UP} --bridge br-int"));
    up.expect_code(0);
    drop(lab.switch.take());
    let shown = lab.tunnel("show --json").document();
    assert_eq!(shown["tunnels"][0]["whole"], false, "{shown}");
    let cleaned = lab.wirecost("clean");
    cleaned.expect_code(0);
    assert!(
        cleaned
            .stdout
            .contains("removed what was left of tunnel wcown0"),
        "{cleaned:#?}"
    );
}
