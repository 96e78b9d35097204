//! `datapath: ovn`: a private OVN of a lab, its frames seen on the underlay, its topologies and rules proven, and
//! nothing left of it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{
    Owner, Record, Running, TestDir, cell_of, is_root, lines_written, lock_machine_state,
    lock_shared, measured, program, run, skip, wait_for, wirecost,
};
use crate::daemons::{daemons_of, is_gone, leaves_nothing_when_killed, on_this_machine};
use nix::sys::signal::Signal;
use wirecost_model::datapath::Datapath;
use wirecost_model::logical::{Acl, Topology};
use wirecost_model::sample::Invalid;

/// Whether OVN can be started here; says why not, or fails where it must.
pub(crate) fn ovn_can_run() -> bool {
    let programs = [
        "/usr/sbin/ovs-vswitchd",
        "/usr/bin/ovn-northd",
        "/usr/bin/ovn-controller",
    ];
    if !programs.iter().all(|program| Path::new(program).exists()) {
        return skip(
            "OVN is not installed: apt-get install openvswitch-switch ovn-central ovn-host",
        );
    }
    is_root()
}

/// Every way to encapsulate, both topologies, with rules and without, at a rate that it reaches.
const EVERY: &str = "\
name: every-way
underlay: { mtu: 1500, rate: 100mbit }
guest_mtu: 1442
guests: 2
encapsulation:
  - none
  - vlan
  - { vxlan: { source_ports: 1000-2000 } }
  - { geneve: { options: ovn, df: set } }
udp_checksum: on
datapath: ovn
topology: [switched, routed]
acl: [none, allow-related]
exclude:
  - { encapsulation: none, topology: routed }
  - { encapsulation: vlan, topology: routed }
offload: none
repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }
";

#[test]
fn every_encapsulation_topology_and_rule_is_proven_seen_and_measured() {
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_shared();
    let before = on_this_machine();
    let (ended, record, _place) = measured(EVERY);
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 2 * 2 + 2 * 4);
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        assert_eq!(sample.invalid, None, "{:?}: {sample:#?}", cell.levels);
        assert_eq!(cell.network.datapath, Datapath::Ovn);
        let switch = sample.open_vswitch.as_ref().expect("which it was");
        let version = switch.ovn.as_deref().expect("OVN's version");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()));
        let (outer, tag) = match cell.levels["encapsulation"].split(' ').next() {
            Some("none") => (0, 0),
            Some("vlan") => (0, 4),
            Some("vxlan") => (50, 0),
            Some("geneve") => (58, 0),
            other => panic!("{other:?}"),
        };
        let mut seen = 0;
        for proof in &sample.proofs {
            let Some(frame) = &proof.seen else { continue };
            seen += 1;
            assert_eq!(frame.outer_ip_bytes, 1442 + outer, "{cell:?}");
            assert_eq!(frame.frame_bytes, 1442 + outer + 14 + tag);
            assert!(!frame.fragment, "{frame:?}");
        }
        assert!(seen > 0, "{:?}", cell.levels);
        let bytes: u64 = sample.loads[0].flows.iter().map(|flow| flow.bytes).sum();
        let bits_per_s = bytes as f64 * 8.0 / sample.loads[0].seconds;
        assert!((1e6..1.3e8).contains(&bits_per_s), "{bits_per_s}");
    }
    let logical = |topology, acl| {
        let mut cells = record.head.experiment.cells.iter();
        cells.any(|cell| cell.network.logical == wirecost_model::logical::Logical { topology, acl })
    };
    assert!(logical(Topology::Routed, Acl::AllowRelated) && logical(Topology::Switched, Acl::None));
    let document = ended.document();
    let ovn = document["open_vswitch"]["ovn"].as_str();
    assert!(ovn.is_some(), "{document}");
    assert_eq!(on_this_machine(), before);
}

#[test]
fn over_ipv6_and_with_ipv6_guests_it_is_proven_too() {
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_shared();
    let plan = "name: six\nunderlay: { mtu: 1500, rate: 100mbit, ip: ipv6 }\nguest_mtu: 1400\nguest_ip: ipv6\n\
                encapsulation: { geneve: { options: ovn } }\nudp_checksum: on\ndatapath: ovn\n\
                topology: [switched, routed]\nacl: allow-related\noffload: none\n\
                repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n";
    let (ended, record, _place) = measured(plan);
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 2);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
}

#[test]
fn beside_open_vswitch_it_is_a_level_and_what_it_cannot_is_told() {
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_shared();
    let plan = "name: beside\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: 1400\n\
                encapsulation: [vxlan, geneve]\nudp_checksum: on\ndatapath: [ovs, ovn]\noffload: none\n\
                repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n";
    let (ended, record, _place) = measured(plan);
    let mut refused = 0;
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        let reason = sample.invalid.as_ref().map(Invalid::reason);
        let without_option = cell.levels["encapsulation"] == "geneve";
        if cell.network.datapath == Datapath::Ovn && without_option {
            let reason = reason.expect("OVN sends its option");
            assert!(reason.contains("options: ovn"), "{reason}");
            refused += 1;
        } else {
            assert_eq!(reason, None, "{sample:#?}");
        }
    }
    assert_eq!(refused, 1, "{ended:#?}");
}

/// A study of OVN's takes OVN where it is, and where it is not eBPF with its header; either says why.
#[test]
fn a_study_of_ovns_takes_ovn_and_else_its_header() {
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(
        "name: of-ovn\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: 1400\n\
         encapsulation: [vxlan, { geneve: { options: ovn } }]\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\npublished: { source: somebody, ovn: on }\n",
    );
    let hidden = "for d in /usr/share/ovn /usr/local/share/ovn; do \
                  if [ -d $d ]; then mount -t tmpfs none $d || exit 9; fi; done; exec \"$@\"";
    for (out, script, is_there) in [("with", "exec \"$@\"", true), ("without", hidden, false)] {
        let out = place.path().join(out);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.arg(program()).arg("run").arg(&plan).arg("--out");
        command.arg(&out).current_dir(place.path());
        let ended = run(&mut command);
        ended.expect_code(0);
        let record = Record::read(&out).expect("a record");
        for cell in &record.head.experiment.cells {
            let by = cell.network.datapath;
            assert_eq!(by.is_ovn(), is_there, "{by}");
            assert!(is_there || by == Datapath::Ebpf, "{by}");
        }
        for sample in &record.samples {
            assert_eq!(sample.invalid, None, "{sample:#?}");
        }
        let chosen = record.head.experiment.chosen.as_ref();
        let said = chosen.map_or_else(String::new, ToString::to_string);
        if !is_there {
            assert!(said.contains("without OVN's switches"), "{said}");
            assert!(said.contains("apt-get install"), "{said}");
            assert!(ended.stdout.contains("without OVN's switches"));
        }
    }
}

const KILLED: &str = "name: killed\nunderlay: { mtu: 9000 }\nguest_mtu: 1450\nencapsulation: vxlan\n\
                      datapath: ovn\nrepeat: { rounds: 500, seconds: 0.2, warmup: 0.05 }\n";

#[test]
fn a_killed_run_leaves_no_daemon_no_file_and_no_device() {
    if ovn_can_run() {
        // Three on each host, two central.
        leaves_nothing_when_killed(KILLED, 8);
    }
}

/// Kills at moments that are spread over a run's building, proof and first samples.
#[test]
fn twenty_kills_at_any_moment_leave_nothing() {
    const KILLS: u32 = 20;
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_machine_state();
    let before = on_this_machine();
    let place = TestDir::new();
    let plan = place.plan(KILLED);
    let mut whole = Duration::ZERO;
    let mut found = 0;
    for number in 0..=KILLS {
        let began = Instant::now();
        let mut running = Running::start(&mut place.run_command(&plan, &format!("run-{number}")));
        let owner = Owner::of(running.pid());
        if number == 0 {
            // How long there is something to hit.
            let out = place.path().join("run-0");
            running.wait_for("two samples", |_| (lines_written(&out) > 1).then_some(()));
            whole = began.elapsed();
        } else {
            std::thread::sleep(whole * (2 * number - 1) / (2 * KILLS));
        }
        let daemons = daemons_of(owner);
        found = found.max(daemons.len());
        running.signal(Signal::SIGKILL);
        assert!(running.wait().was_killed());
        wait_for("every daemon to be gone", || {
            let left = daemons_of(owner).into_iter().chain(daemons.iter().copied());
            left.into_iter().all(is_gone).then_some(())
        });
        wait_for("every agent to be gone", || {
            running.agents().is_empty().then_some(())
        });
    }
    assert_eq!(found, 8, "kills that met every daemon");
    assert_eq!(on_this_machine(), before);
    let cleaned = run(wirecost(["clean"]).arg("--json"));
    cleaned.expect_code(0);
}
