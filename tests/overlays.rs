//! Encapsulations side by side: by eBPF, each frame seen on the underlay as its header has it; one datapath for all
//! that is compared; and what cannot be built, with the reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{
    Ended, Record, Running, TestDir, cell_of, lab_can_be_built, lacks, lines_written,
    lock_machine_state, lock_shared, measured, run, skip, wait_for,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use wirecost_model::cell::{Cell, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::offload::Role;
use wirecost_model::plan::{Description, Encapsulation};
use wirecost_model::sample::ProofTime;
use wirecost_sys::bpf::PassingClassifier;

const UNDERLAY_MTU: u32 = 9000;

/// Every header, over either IP, with and without a checksum, at a rate that any machine reaches.
const EVERY: &str = "\
name: every-overlay
underlay: { mtu: 9000, rate: 1gbit, ip: [ipv4, ipv6] }
guest_mtu: [1500, max]
encapsulation: [none, vlan, vxlan, { geneve: { options: ovn } }]
udp_checksum: [off, on]
datapath: ebpf
offload: [none, tunnel]
repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }
";

/// Whether eBPF programs can be loaded here; says why not, or fails where they must.
fn ebpf_can_be_loaded() -> bool {
    match PassingClassifier::load() {
        Ok(_) => lab_can_be_built(),
        Err(error) => skip(format!("eBPF programs cannot be loaded here: {error}")),
    }
}

/// Bytes of the underlay's IP MTU, and beside it: inner Ethernet 14, UDP 8, VXLAN 8 (RFC 7348, section 5), Geneve 8
/// with 8 of options (RFC 8926, section 3), the outer IP header; a VLAN tag 4; GRE 4 and its key 4 (RFC 2890, section
/// 2).
fn overhead(cell: &Cell) -> (u32, u32) {
    let ip = match cell.levels.get("underlay.ip").map(String::as_str) {
        Some("ipv6") => 40,
        Some("ipv4") => 20,
        _ => 0,
    };
    match cell.levels["encapsulation"].as_str() {
        "none" => (0, 0),
        "vlan" => (0, 4),
        "vxlan" => (14 + 8 + 8 + ip, 0),
        "vxlan inner_vlan=7" => (14 + 4 + 8 + 8 + ip, 0),
        "geneve options=ovn" => (14 + 8 + 8 + 8 + ip, 0),
        "geneve options=252 inner_vlan=7" => (14 + 4 + 8 + 8 + 252 + ip, 0),
        "gre" => (4 + ip, 0),
        "gre key=7 ttl=64" => (4 + 4 + ip, 0),
        "gretap" => (4 + 14 + ip, 0),
        "gretap key=7" => (4 + 4 + 14 + ip, 0),
        "ipip" => (ip, 0),
        other => panic!("{other}"),
    }
}

fn valid_with_the_frame_seen(record: &Record) {
    let mut looked_for: BTreeSet<(Network, u32)> = BTreeSet::new();
    for sample in &record.samples {
        let cell = cell_of(record, sample);
        assert_eq!(sample.invalid, None, "{:?}: {sample:#?}", cell.levels);
        assert!(sample.loads[0].flows[0].bytes > 0, "{sample:#?}");
        looked_for.insert((cell.network.clone(), cell.guest_mtu));
    }
    // A lab that was taken down meanwhile looks again: each at least once, from either side.
    for from in ["a", "b"] {
        let mut seen: BTreeSet<(Network, u32)> = BTreeSet::new();
        for sample in &record.samples {
            let cell = cell_of(record, sample);
            let proofs = sample.proofs.iter();
            for proof in proofs.filter(|proof| proof.from == from) {
                let Some(frame) = &proof.seen else { continue };
                assert_eq!(proof.when, ProofTime::Before);
                let (outer, tag) = overhead(cell);
                let ip = cell.guest_mtu + outer;
                assert_eq!(frame.outer_ip_bytes, ip, "{:?}", cell.levels);
                assert_eq!(frame.frame_bytes, ip + 14 + tag, "{:?}", cell.levels);
                assert_eq!(frame.expected_frame_bytes, Some(frame.frame_bytes));
                assert!(!frame.fragment, "{frame:?}");
                seen.insert((cell.network.clone(), cell.guest_mtu));
            }
        }
        assert_eq!(seen, looked_for);
    }
}

#[test]
fn every_encapsulation_by_ebpf_is_proven_seen_and_measured() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let (ended, record, _place) = measured(EVERY);
    ended.expect_code(0);
    // 2 guest MTUs x 2 offloads x (none, vlan, and 2 tunnels over either IP with and without a checksum).
    assert_eq!(record.head.experiment.cells.len(), 4 * (2 + 2 * 2 * 2));
    valid_with_the_frame_seen(&record);
    for cell in &record.head.experiment.cells {
        assert_eq!(cell.network.datapath, Datapath::Ebpf);
        assert_eq!(cell.levels["datapath"], "ebpf");
        let tunnel = cell.network.encapsulation.udp();
        let computed = tunnel.map(|tunnel| tunnel.udp_checksum);
        let level = cell.levels.get("udp_checksum").map(|level| level == "on");
        assert_eq!(level, computed, "{:?}", cell.levels);
        let largest = UNDERLAY_MTU - overhead(cell).0;
        assert!([1500, largest].contains(&cell.guest_mtu), "{cell:?}");
    }
    for sample in &record.samples {
        // No device encapsulates, and no bridge is passed.
        let roles: BTreeSet<Role> = sample.devices.iter().map(|device| device.role).collect();
        let expected = [Role::Underlay, Role::GuestPort, Role::Guest];
        assert_eq!(roles, BTreeSet::from(expected));
    }
    headers_and_checksums_are_told_apart(&ended.document());
}

/// What the checksum costs is compared within each tunnel; what the header costs at either.
fn headers_and_checksums_are_told_apart(result: &Value) {
    let effects = result["effects"].as_array().expect("effects");
    let of = |factor: &str, from: &str, to: &str| {
        let mine = effects.iter().filter(|effect| {
            effect["factor"] == factor
                && effect["from"] == from
                && effect["to"] == to
                && effect["metric"] == "throughput"
        });
        mine.collect::<Vec<_>>()
    };
    // Guest MTU x offload x IP x tunnel.
    let checksums = of("udp_checksum", "off", "on");
    assert_eq!(checksums.len(), 2 * 2 * 2 * 2);
    for effect in checksums {
        assert_ne!(effect["where"]["encapsulation"], "none", "{effect}");
    }
    assert_eq!(of("encapsulation", "none", "vlan").len(), 2 * 2);
    // IP x checksum of the tunnel, with the one cell that has neither.
    assert_eq!(of("encapsulation", "none", "vxlan").len(), 2 * 2 * 2 * 2);
    let geneve = of("encapsulation", "none", "geneve options=ovn");
    assert_eq!(geneve.len(), 2 * 2 * 2 * 2);
}

#[test]
fn tags_inside_many_options_and_several_guests_are_carried() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let (ended, record, _place) = measured(
        "name: odd\nunderlay: { mtu: 9000 }\nguests: [1, 3]\ndatapath: ebpf\n\
         encapsulation: [none, vlan, { vxlan: { inner_vlan: 7 } }, { geneve: { options: 252, inner_vlan: 7 } }]\n\
         load: [tcp-stream, udp-rr]\nrepeat: { rounds: 1, seconds: 0.3, warmup: 0.05 }\n",
    );
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 2 * 4 * 2);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
        let guests = cell_of(&record, sample).network.guests;
        for device in &sample.devices {
            let count = match device.role {
                Role::Guest | Role::GuestPort => guests,
                _ => 1,
            };
            assert_eq!(device.count, count, "{device:?}");
        }
    }
}

/// Whether this kernel makes a device of a kind, by iproute2 in a namespace of its own.
fn kernel_has(arguments: &str) -> bool {
    let mut command = std::process::Command::new("unshare");
    command.args(["--net", "ip", "link", "add", "try0", "type"]);
    crate::common::succeeds(command.args(arguments.split(' ')))
}

/// What iproute2 makes of a level over an IP for guests of another: those that a lab makes.
fn kernel_has_ip_tunnel(level: &str, over_ipv6: bool, guests_ipv6: bool) -> bool {
    let kind = match (level, over_ipv6, guests_ipv6) {
        ("gre" | "gretap", false, _) => level.to_owned(),
        ("gre" | "gretap", true, _) => format!("ip6{level}"),
        (_, false, false) => "ipip".to_owned(),
        (_, false, true) => "sit".to_owned(),
        (_, true, _) => "ip6tnl".to_owned(),
    };
    let ends = if over_ipv6 {
        "local 2001:2::1 remote 2001:2::2"
    } else {
        "local 198.18.0.1 remote 198.18.0.2"
    };
    kernel_has(&format!("{kind} {ends}")) || lacks(format!("this kernel has no {kind} device"))
}

#[test]
fn gre_and_ip_in_ip_are_proven_seen_and_measured_where_the_kernel_has_them() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for (level, written) in [
        ("gre", "[gre, { gre: { key: 7, ttl: 64 } }]"),
        ("gretap", "[gretap, { gretap: { key: 7 } }]"),
        ("ipip", "ipip"),
    ] {
        for (underlay, over_ipv6) in [("ipv4", false), ("ipv6", true)] {
            for (guests, guests_ipv6) in [("ipv4", false), ("ipv6", true)] {
                if !kernel_has_ip_tunnel(level, over_ipv6, guests_ipv6) {
                    continue;
                }
                let (ended, record, _place) = measured(&format!(
                    "name: without-udp\nunderlay: {{ mtu: 9000, rate: 1gbit, ip: {underlay} }}\nguests: 2\n\
                     guest_ip: {guests}\nguest_mtu: [1500, max]\nencapsulation: {written}\ndatapath: kernel\n\
                     offload: [none, tunnel]\nrepeat: {{ rounds: 1, seconds: 0.4, warmup: 0.05 }}\n"
                ));
                ended.expect_code(0);
                valid_with_the_frame_seen(&record);
            }
        }
    }
}

/// The encapsulations that no other datapath builds.
fn kernels_alone() -> impl Iterator<Item = &'static Description> {
    let kinds = Description::ALL.iter().copied();
    kinds.filter(|kind| kind.datapaths == [Datapath::Kernel])
}

#[test]
fn what_is_the_kernels_alone_and_the_kernel_lacks_is_left_out_with_the_reason() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let words: Vec<&str> = kernels_alone().map(|kind| kind.word).collect();
    let (ended, record, _place) = measured(&format!(
        "name: lacking\nunderlay: {{ mtu: 9000 }}\nencapsulation: [none, {}]\nguest_mtu: 1500\n\
         repeat: {{ rounds: 1, seconds: 0.4, warmup: 0.05 }}\n",
        words.join(", ")
    ));
    // By the kernel, which builds more of it than eBPF.
    assert_eq!(record.head.experiment.plan.datapath, [Datapath::Kernel]);
    let has = |kind: &&Description| {
        let ends = match kind.word {
            "gre" | "gretap" | "ipip" => " local 198.18.0.1 remote 198.18.0.2",
            _ => "",
        };
        kernel_has(&format!("{}{ends}", kind.drivers[0].kind))
    };
    let lacking: Vec<_> = kernels_alone().filter(|kind| !has(kind)).collect();
    for sample in &record.samples {
        let label = &cell_of(&record, sample).levels["encapsulation"];
        let lacks = lacking.iter().any(|kind| kind.word == label);
        assert_eq!(sample.invalid.is_none(), !lacks, "{label}: {sample:#?}");
    }
    ended.expect_code(if lacking.is_empty() { 0 } else { 3 });
    let document = ended.document();
    let reasons = reasons(&document);
    assert_eq!(reasons.len(), lacking.len());
    for kind in lacking {
        let (word, option) = (kind.word, kind.drivers[0].option);
        let words = format!("this kernel has no {word} device: {option}");
        let end = format!("by eBPF: {}", kind.only);
        let told = |reason: &&String| reason.contains(&words) && reason.ends_with(&end);
        assert!(reasons.iter().any(|reason| told(&reason)), "{reasons:#?}");
    }
    // That some cells would be routed and others bridged is told, whether or not they could be built.
    let warnings = document["warnings"].as_array().expect("a list");
    let routed = |warning: &Value| {
        warning
            .as_str()
            .is_some_and(|text| text.contains("hosts route"))
    };
    assert_eq!(warnings.iter().filter(|warning| routed(warning)).count(), 1);
}

/// The reasons in a result's list of samples that do not count.
fn reasons(result: &Value) -> Vec<String> {
    let invalid = result["invalid"].as_array().expect("a list");
    let reason = |sample: &Value| sample["reason"].as_str().expect("words").to_owned();
    invalid.iter().map(reason).collect()
}

#[test]
fn a_cell_that_the_kernel_cannot_build_is_left_out_with_the_reason() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let (ended, record, place) = measured(
        "name: lacking\nunderlay: { mtu: 9000 }\nencapsulation: [none, vlan, vxlan, geneve]\ndatapath: kernel\n\
         guest_mtu: 1500\nrepeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n",
    );
    let has = |label: &str| match label {
        "vlan" => kernel_has("vlan id 7 link lo"),
        "geneve" => kernel_has("geneve id 7 remote 198.18.0.2"),
        _ => true,
    };
    let mut lacking = 0;
    for sample in &record.samples {
        let label = &cell_of(&record, sample).levels["encapsulation"];
        assert_eq!(sample.invalid.is_none(), has(label), "{label}: {sample:#?}");
        lacking += u32::from(!has(label));
    }
    ended.expect_code(if lacking == 0 { 0 } else { 3 });
    let reasons = reasons(&ended.document());
    assert_eq!(reasons.len() as u32, lacking);
    for reason in &reasons {
        assert!(
            reason.contains("CONFIG_GENEVE") || reason.contains("CONFIG_VLAN_8021Q"),
            "{reason}"
        );
        assert!(reason.contains("datapath: ebpf"), "{reason}");
    }
    // The table says it as well.
    let shown = run(crate::common::wirecost(["report"]).arg(place.path().join("out")));
    for reason in &reasons {
        let words: Vec<&str> = reason.split_whitespace().take(4).collect();
        assert!(shown.stdout.contains(&words.join(" ")), "{shown:#?}");
    }
}

#[test]
fn left_to_the_run_one_datapath_builds_all_that_is_compared() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let plan = |encapsulation: &str| {
        format!(
            "name: chosen\nunderlay: {{ mtu: 9000 }}\nguest_mtu: 1500\nencapsulation: {encapsulation}\n\
             repeat: {{ rounds: 1, seconds: 0.4, warmup: 0.05 }}\n"
        )
    };
    // The kernel has the first two itself; of options only eBPF sends any.
    for (encapsulation, expected) in [
        ("[none, vxlan]", Datapath::Kernel),
        ("[none, vxlan, { geneve: { options: 8 } }]", Datapath::Ebpf),
    ] {
        let (ended, record, place) = measured(&plan(encapsulation));
        ended.expect_code(0);
        assert_eq!(record.head.experiment.plan.datapath, [expected]);
        // The same plan again is held against what the first run chose.
        let mut again = place.run_command(&place.path().join("plan.yaml"), "again");
        again.arg("--against").arg(place.path().join("out"));
        run(again.args(["--fail-on", "never"])).expect_code(0);
        for sample in &record.samples {
            let cell = cell_of(&record, sample);
            assert_eq!(sample.invalid, None, "{sample:#?}");
            assert_eq!(cell.network.datapath, expected);
            assert_eq!(cell.levels["datapath"], expected.key());
        }
        let document = ended.document();
        assert_eq!(
            document["cells"][0]["all_levels"]["datapath"],
            expected.key()
        );
    }
}

#[test]
fn the_datapath_may_be_what_is_compared() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let (ended, record, _place) = measured(
        "name: paths\nunderlay: { mtu: 9000 }\nguest_mtu: 1500\nencapsulation: [none, vxlan]\ndatapath: [kernel, ebpf]\n\
         repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n",
    );
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
    let document = ended.document();
    for effect in document["effects"].as_array().expect("effects") {
        // Headers are compared within a datapath, and nowhere else.
        let within = effect["where"]["datapath"].is_string();
        assert_eq!(within, effect["factor"] == "encapsulation", "{effect}");
    }
    let df: Vec<_> = record
        .head
        .experiment
        .cells
        .iter()
        .filter_map(|cell| match &cell.network.encapsulation {
            Encapsulation::Vxlan(vxlan) => Some((cell.network.datapath, vxlan.df.key())),
            _ => None,
        })
        .collect();
    assert_eq!(df, [(Datapath::Kernel, "unset"), (Datapath::Ebpf, "set")]);
}

#[test]
fn a_cell_that_no_machine_can_build_by_its_datapath_is_skipped_and_the_run_is_complete() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    // The first cell is such a one: the self-test takes the next.
    let (ended, record, place) = measured(
        "name: beyond\nunderlay: { mtu: 9000 }\nguest_mtu: 1500\n\
         encapsulation: [{ geneve: { options: ovn } }, vxlan, { vxlan: { df: inherit } }]\ndatapath: [kernel, ebpf]\n\
         self_test: on\nrepeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n",
    );
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["outcome"], "complete");
    let beyond = [
        ("geneve options=ovn", "kernel", "sends no options"),
        ("vxlan df=inherit", "ebpf", "does not inherit it"),
    ];
    for cell in document["cells"].as_array().expect("cells") {
        let levels = &cell["levels"];
        let is_it = |(encapsulation, datapath, _): &&(&str, &str, &str)| {
            levels["encapsulation"] == *encapsulation && levels["datapath"] == *datapath
        };
        match beyond.iter().find(is_it) {
            Some((.., why)) => {
                let skipped = cell["skipped"].as_str().expect("a reason");
                assert!(skipped.contains(why), "{cell}");
                assert_eq!(cell["valid"], 0);
            }
            None => assert_eq!(
                (&cell["skipped"], &cell["valid"]),
                (&Value::Null, &2.into())
            ),
        }
    }
    assert_eq!(document["self_test"]["cell"], 1);
    assert_eq!(
        record.head.experiment.twin.as_ref().expect("a twin").levels["datapath"],
        "ebpf"
    );
    let shown = run(crate::common::wirecost(["report"]).arg(place.path().join("out")));
    for (.., why) in beyond {
        // Once, in the sentence.
        let words: Vec<&str> = shown.stdout.split_whitespace().collect();
        assert_eq!(words.join(" ").matches(why).count(), 1, "{shown:#?}");
    }
    assert!(!shown.stdout.contains("not valid"), "{shown:#?}");
    assert!(!shown.stdout.contains(" count."), "{shown:#?}");
}

#[test]
fn a_run_leaves_no_device_behind_on_this_machine() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_machine_state();
    let devices = || -> BTreeSet<String> {
        let all = fs::read_dir(Path::new("/sys/class/net")).expect("devices");
        all.map(|entry| {
            entry
                .expect("a device")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
    };
    let before = devices();
    // A checksum needs a pair of devices of its own.
    let (ended, _, _place) = measured(
        "name: tidy\nunderlay: { mtu: 9000 }\nguest_mtu: 1500\nencapsulation: vxlan\nudp_checksum: on\ndatapath: ebpf\n\
         repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n",
    );
    ended.expect_code(0);
    assert_eq!(devices(), before);
}

/// The program in a user namespace, where nobody may load eBPF programs.
fn in_user_namespace(place: &TestDir, plan: &str) -> Ended {
    let file = place.plan(plan);
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--map-root-user"])
        .arg(crate::common::program())
        .arg("run")
        .arg(file)
        .arg("--out")
        .arg(place.path().join("out"));
    run(command.current_dir(place.path()))
}

#[test]
fn without_the_privilege_the_reason_is_told_and_all_else_is_measured() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let plan = |rest: &str| {
        format!(
            "name: small\nunderlay: {{ mtu: 9000 }}\nguest_mtu: 1500\n{rest}\n\
             repeat: {{ rounds: 1, seconds: 0.4, warmup: 0.05 }}\n"
        )
    };
    let refused = "does not let this process load eBPF programs: run as root";

    let place = TestDir::new();
    let ended = in_user_namespace(&place, &plan("encapsulation: vxlan\ndatapath: ebpf"));
    ended.expect_code(3);
    assert!(ended.stderr.contains(refused), "{ended:#?}");
    assert!(Record::read(&place.path().join("out")).is_none());

    // Left to the run, the kernel builds most; what it cannot is told with why eBPF cannot either.
    let place = TestDir::new();
    let left_open = "encapsulation: [none, vxlan, { geneve: { options: 8 } }]";
    in_user_namespace(&place, &plan(left_open)).expect_code(3);
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.head.experiment.plan.datapath, [Datapath::Kernel]);
    for sample in &record.samples {
        let label = &cell_of(&record, sample).levels["encapsulation"];
        let reason = sample
            .invalid
            .as_ref()
            .map(wirecost_model::sample::Invalid::reason);
        if label.starts_with("geneve") {
            let reason = reason.expect("the kernel sends no options");
            assert!(
                reason.contains("sends no options of its own; by eBPF:"),
                "{reason}"
            );
            assert!(reason.contains(refused), "{reason}");
        } else {
            assert_eq!(reason, None, "{sample:#?}");
        }
    }
}

/// The kernel's numbers of all programs that are loaded.
fn programs() -> BTreeSet<u32> {
    let all = aya::programs::loaded_programs().filter_map(Result::ok);
    all.map(|program| program.id()).collect()
}

/// Those that a process has a descriptor of (fdinfo of proc_pid_fdinfo(5)).
fn programs_of(pid: u32) -> BTreeSet<u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("an agent");
    let texts = descriptors
        .flatten()
        .map(|entry| fs::read_to_string(entry.path()));
    texts
        .flatten()
        .filter_map(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("prog_id:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

#[test]
fn a_killed_run_leaves_no_program_behind() {
    if !ebpf_can_be_loaded() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(
        "name: killed\nunderlay: { mtu: 9000 }\nguest_mtu: 1500\nencapsulation: geneve\nudp_checksum: on\n\
         datapath: ebpf\nrepeat: { rounds: 500, seconds: 0.2, warmup: 0.05 }\n",
    );
    let mut running = Running::start(&mut place.run_command(&plan, "out"));
    running.wait_for("a sample", |_| {
        (lines_written(&place.path().join("out")) > 0).then_some(())
    });
    let agents = running.agents();
    let during: BTreeSet<u32> = agents
        .iter()
        .flat_map(|agent| programs_of(agent.pid))
        .collect();
    assert!(during.len() >= 4, "two on each host: {during:?}");
    assert!(during.is_subset(&programs()), "{during:?}");
    running.signal(Signal::SIGKILL);
    assert!(running.wait().was_killed());
    wait_for("the agents to be gone", || {
        let gone =
            |agent: &crate::common::Agent| crate::common::state_and_start(agent.pid).is_none();
        agents.iter().all(gone).then_some(())
    });
    wait_for("their programs to be gone", || {
        programs().is_disjoint(&during).then_some(())
    });
}
