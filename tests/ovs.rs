//! `datapath: ovs`: a private Open vSwitch on each host of a lab, its frames seen on the underlay, the plan's rate
//! kept, what it cannot said, and nothing left of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{
    Owner, Record, TestDir, cell_of, install, is_root, lock_machine_state, lock_shared, measured,
    run, skip, wait_for, wirecost,
};
use crate::daemons::{leaves_nothing_when_killed, on_this_machine};
use wirecost_model::cell::Cell;
use wirecost_model::datapath::Datapath;
use wirecost_model::offload::Role;
use wirecost_model::sample::{ProofTime, Sample};
use wirecost_model::switch::OvsDatapath;

/// Where Debian's package puts the switch.
const SWITCH: &str = "/usr/sbin/ovs-vswitchd";
const UNDERLAY_MTU: u32 = 9000;

/// Whether a switch can be started here; says why not, or fails where it must.
fn ovs_can_run() -> bool {
    if !Path::new(SWITCH).exists() {
        return skip("Open vSwitch is not installed: apt-get install openvswitch-switch");
    }
    is_root()
}

/// Every way to encapsulate that it has, and guests of several sizes, at a rate that it reaches.
const EVERY: &str = "\
name: every-way
underlay: { mtu: 9000, rate: 100mbit }
guest_mtu: [1450, max]
guests: 2
encapsulation:
  - none
  - vlan
  - { vxlan: { source_ports: 1000-2000 } }
  - { geneve: { options: ovn, inner_vlan: 7 } }
udp_checksum: on
datapath: ovs
offload: tunnel
repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }
";

/// Bytes of the underlay's IP MTU, and beside it (RFC 7348, RFC 8926, IEEE 802.1Q).
fn overhead(cell: &Cell) -> (u32, u32) {
    match cell.levels["encapsulation"].split(' ').next() {
        Some("none") => (0, 0),
        Some("vlan") => (0, 4),
        Some("vxlan") => (14 + 8 + 8 + 20, 0),
        Some("geneve") => (14 + 4 + 8 + 8 + 8 + 20, 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_encapsulation_is_proven_seen_and_measured_at_the_rate_of_the_plan() {
    if !ovs_can_run() {
        return;
    }
    let _lock = lock_shared();
    let before = on_this_machine();
    let (ended, record, _place) = measured(EVERY);
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 2 * 4);
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        assert_eq!(sample.invalid, None, "{:?}: {sample:#?}", cell.levels);
        assert_eq!(cell.network.datapath, Datapath::Ovs);
        let switch = sample.open_vswitch.as_ref().expect("which it was");
        assert!(switch.version.starts_with(|c: char| c.is_ascii_digit()));
        let (outer, tag) = overhead(cell);
        assert!([1450, UNDERLAY_MTU - outer].contains(&cell.guest_mtu));
        for proof in &sample.proofs {
            let Some(frame) = &proof.seen else { continue };
            assert_eq!(proof.when, ProofTime::Before);
            assert_eq!(frame.outer_ip_bytes, cell.guest_mtu + outer, "{cell:?}");
            assert_eq!(frame.frame_bytes, cell.guest_mtu + outer + 14 + tag);
            assert!(!frame.fragment, "{frame:?}");
        }
        // The switch manages the queueing of its ports, unless it is told not to.
        let bytes: u64 = sample.loads[0].flows.iter().map(|flow| flow.bytes).sum();
        let bits_per_s = bytes as f64 * 8.0 / sample.loads[0].seconds;
        assert!(bits_per_s > 1e6, "{sample:#?}");
        assert!(
            bits_per_s < 1.3e8,
            "{bits_per_s} where 100 Mbit/s were wanted"
        );
        assert_eq!(switch.datapath, OvsDatapath::Userspace);
        whole_frames_only(sample, cell);
    }
    let document = ended.document();
    let version = document["open_vswitch"]["version"].as_str();
    assert_eq!(
        version,
        record.samples[0]
            .open_vswitch
            .as_ref()
            .map(|switch| switch.version.as_str())
    );
    assert_eq!(on_this_machine(), before);
}

/// Every device hands over frames as they are, whatever the plan's offloads; the bridge for the underlay has its MTU.
fn whole_frames_only(sample: &Sample, cell: &Cell) {
    for device in &sample.devices {
        for (feature, on) in &device.features {
            let joined_by_guest = feature == "rx-gro" && device.role == Role::Guest;
            assert_eq!(*on, joined_by_guest, "{feature} of {}", device.name);
        }
    }
    let mut bridges = sample
        .devices
        .iter()
        .filter(|device| device.role == Role::Bridge);
    let tunnelled = cell.network.encapsulation.is_tunnel();
    assert_eq!(bridges.clone().count(), if tunnelled { 2 } else { 0 });
    assert!(bridges.all(|bridge| bridge.mtu == UNDERLAY_MTU));
}

#[test]
fn beside_ebpf_it_is_a_level_and_what_it_cannot_is_told() {
    if !ovs_can_run() {
        return;
    }
    let _lock = lock_shared();
    let plan = "name: beside\nunderlay: { mtu: 1500, rate: 100mbit, ip: ipv6 }\nencapsulation: vxlan\n\
                udp_checksum: [off, on]\nguest_mtu: 1400\ndatapath: [ebpf, ovs]\noffload: none\n\
                repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n";
    let (ended, record, place) = measured(plan);
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        let reason = sample
            .invalid
            .as_ref()
            .map(wirecost_model::sample::Invalid::reason);
        let by_ovs = cell.network.datapath == Datapath::Ovs;
        if by_ovs && cell.levels["udp_checksum"] == "off" {
            let reason = reason.expect("always computed");
            assert!(reason.contains("always computes the outer UDP checksum over IPv6"));
            for file in ["report.html", "samples.jsonl"] {
                let text = fs::read_to_string(place.path().join("out").join(file)).expect(file);
                assert!(text.contains("always computes the outer UDP"), "{file}");
            }
            assert!(ended.stdout.contains("always computes the outer UDP"));
        } else {
            assert_eq!(reason, None, "{sample:#?}");
            assert_eq!(sample.open_vswitch.is_some(), by_ovs);
        }
    }
}

#[test]
fn where_it_is_not_installed_the_cells_say_what_to_install() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    // A directory over the place where the schema is, seen by this run alone.
    let place = TestDir::new();
    let plan = place.plan(
        "name: none-there\nunderlay: { mtu: 9000 }\nencapsulation: vxlan\nguest_mtu: 1450\ndatapath: [ebpf, ovs]\n\
         repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n",
    );
    let out = place.path().join("out");
    let hidden = "for d in /usr/share/openvswitch /usr/local/share/openvswitch; do \
                  if [ -d $d ]; then mount -t tmpfs none $d || exit 9; fi; done; exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", hidden, "sh"])
        .arg(crate::common::program())
        .arg("run")
        .arg(&plan)
        .arg("--out")
        .arg(&out)
        .current_dir(place.path());
    let ended = run(&mut command);
    let record = Record::read(&out).unwrap_or_else(|| panic!("no record: {ended:#?}"));
    let by_ovs = |sample: &&Sample| cell_of(&record, sample).network.datapath == Datapath::Ovs;
    let sample = record.samples.iter().find(by_ovs).expect("a sample");
    let reason = sample.invalid.as_ref().expect("not built").reason();
    assert!(
        reason.contains("Open vSwitch is not installed here"),
        "{reason}"
    );
    assert!(
        reason.contains("apt-get install openvswitch-switch"),
        "{reason}"
    );
    assert!(ended.stdout.contains("not installed"), "{ended:#?}");
}

#[test]
fn a_killed_run_leaves_no_daemon_no_file_and_no_device() {
    if !ovs_can_run() {
        return;
    }
    let plan = "name: killed\nunderlay: { mtu: 9000 }\nguest_mtu: 1450\nencapsulation: geneve\ndatapath: ovs\n\
                repeat: { rounds: 500, seconds: 0.2, warmup: 0.05 }\n";
    leaves_nothing_when_killed(plan, 4);
}

/// Something that looks like a daemon of a run: its name, and the run among its arguments.
struct Stray {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Stray {
    fn start(owner: Owner) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("ovs-vswitchd");
        install(Path::new("/bin/sh"), &program);
        let pidfile = format!(
            "--pidfile=/proc/self/fd/9/wirecost-{}-switch.pid",
            owner.argument()
        );
        let child = Command::new(&program)
            .args(["-c", "read line", "ovs", &pidfile])
            .stdin(Stdio::piped())
            .spawn()
            .expect("started");
        Self {
            child,
            _directory: directory,
        }
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clean_ends_a_daemon_whose_run_is_gone_and_no_other() {
    let _lock = lock_machine_state();
    let mut ended = Command::new("true").spawn().expect("a process");
    let gone = Owner::of(ended.id());
    ended.wait().expect("its end");
    let (mut stray, mut living) = (
        Stray::start(gone),
        Stray::start(Owner::of(std::process::id())),
    );
    let cleaned = run(wirecost(["clean"]).arg("--json"));
    cleaned.expect_code(0);
    let pid = u64::from(stray.child.id());
    let document = cleaned.document();
    let ended = document["ended"].as_array().expect("a list");
    let found = ended.iter().find(|one| one["pid"] == pid);
    assert_eq!(found.expect("the stray")["daemon"], true, "{document}");
    wait_for("the stray to be gone", || {
        stray.child.try_wait().expect("ours")
    });
    assert!(
        living.child.try_wait().expect("ours").is_none(),
        "a living run's"
    );
}
