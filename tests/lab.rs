//! Whole runs in labs on this machine: what is printed, what is kept, and that it is true.

#[allow(dead_code, reason = "each test program uses its part")]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{
    Ended, Place, Record, Running, alone, is_root, lab_can_be_built, lines_written, program, run,
    signal, succeeds, wait_for, wirecost,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use wirecost_model::cell::Cell;
use wirecost_model::metric::{Metric, segments_per_packet, wire_frames_per_second};
use wirecost_model::offload::{Feature, Profile, Role};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, file};
use wirecost_model::sample::{ProofTime, Sample};

/// Every offload, tunnel and MTU that has to be told apart, at a rate that any machine reaches.
const SMALL: &str = "\
name: small
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: [none, tunnel]
repeat: { rounds: 2, seconds: 0.2, warmup: 0.05 }
";

/// As little as shows whether a lab can be had and is measured.
const TINY: &str = "\
name: tiny
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: none
repeat: { rounds: 1, seconds: 0.1, warmup: 0.05 }
";

/// Long enough to be met in the middle of it.
const LONG: &str = "\
name: long
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: none
repeat: { rounds: 100, seconds: 0.1, warmup: 0.05 }
";

/// TCP and IPv4 headers of a segment with timestamps, bytes (RFC 9293, RFC 7323).
const HEADERS: u32 = 52;

/// One JSON document, and nothing before or behind it.
#[track_caller]
fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// The samples with their cells.
fn with_cells(record: &Record) -> impl Iterator<Item = (&Sample, &Cell)> {
    let cells = &record.head.experiment.cells;
    record.samples.iter().map(|sample| (sample, &cells[sample.cell as usize]))
}

/// Round, position and cell of every sample.
fn order(record: &Record) -> Vec<(u32, u32, u32)> {
    record.samples.iter().map(|s| (s.round, s.position, s.cell)).collect()
}

#[test]
fn a_run_prints_one_document_and_keeps_a_record_that_is_true() {
    if !lab_can_be_built() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let plan = place.plan(SMALL);
    let out = place.path().join("out");

    let ended = run(place.run_command(&plan, "out").arg("--json"));

    ended.expect_code(0);
    let result = document(&ended);
    the_document_has_what_the_issue_asks_for(&result, &out);
    let record = Record::read(&out).expect("a record");
    the_directory_is_whole(&out, &record);
    the_path_was_proven(&record);
    offloads_are_as_planned_on_every_device(&record);
    nothing_is_aggregated_where_nothing_is_offloaded(&record);
    frames_on_the_wire_agree_with_the_links_counters(&record);
    no_throughput_is_above_the_lines(&record, &result);
    each_host_keeps_to_its_cores(&record);
    the_report_says_the_same(&out, &ended);
}

fn the_document_has_what_the_issue_asks_for(result: &Value, out: &Path) {
    assert_eq!(result["run_dir"], out.to_str().expect("text"));
    assert_eq!(result["outcome"], "complete");
    assert_eq!(result["cells"].as_array().expect("cells").len(), 8);
    let effects = result["effects"].as_array().expect("effects");
    // Three factors of two levels, four combinations of the others each.
    let metrics = if result["cores"] == "split" { 3 } else { 2 };
    assert_eq!(effects.len(), 3 * 4 * metrics);
    let wanted = [
        "factor", "from", "to", "where", "load", "metric", "ratio", "low", "high", "verdict",
        "rounds",
    ];
    for effect in effects {
        let keys = keys(effect);
        assert!(wanted.iter().all(|key| keys.contains(key)), "{effect}");
        assert_eq!(effect["rounds"], 2, "{effect}");
        assert!(effect["ratio"].is_f64(), "{effect}");
        assert_eq!(self::keys(&effect["where"]).len(), 2, "{effect}");
    }
    let factors: BTreeSet<_> = effects.iter().map(|effect| effect["factor"].as_str()).collect();
    let varied = ["encapsulation", "guest_mtu", "offload"].map(Some);
    assert_eq!(factors, BTreeSet::from(varied));
}

fn the_directory_is_whole(out: &Path, record: &Record) {
    assert_eq!(fs::read_to_string(out.join(file::PLAN)).expect("plan"), SMALL);
    let files = fs::read_dir(out).expect("directory").count();
    assert_eq!(files, 4, "{} holds something else too", out.display());
    assert!(!record.cut);
    assert_eq!(lines_written(out), record.samples.len());
    let end = record.end.as_ref().expect("an end");
    assert_eq!((end.outcome, &end.reason), (Outcome::Complete, &None));
    let windows: f64 = record.samples.iter().filter_map(|s| Some(s.stream.as_ref()?.seconds)).sum();
    assert!((end.measured_s - windows).abs() < 1e-6 && windows < end.seconds, "{end:?}");

    let taken: BTreeSet<_> = record.samples.iter().map(|s| (s.round, s.cell)).collect();
    let all: BTreeSet<_> = (0..2).flat_map(|round| (0..8).map(move |cell| (round, cell))).collect();
    assert_eq!(taken, all, "every cell once a round");
    let places: Vec<_> = record.samples.iter().map(|s| (s.round, s.position)).collect();
    let in_turn: Vec<_> = (0..2).flat_map(|round| (0..8).map(move |at| (round, at))).collect();
    assert_eq!(places, in_turn);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
}

fn the_path_was_proven(record: &Record) {
    let mut seen = BTreeMap::new();
    for (sample, cell) in with_cells(record) {
        let proofs: BTreeSet<_> =
            sample.proofs.iter().map(|p| (p.when == ProofTime::Before, p.from.as_str())).collect();
        let both_ways = [(false, "a"), (false, "b"), (true, "a"), (true, "b")];
        assert_eq!(proofs, BTreeSet::from(both_ways), "{sample:#?}");
        for proof in &sample.proofs {
            assert!(proof.proven && proof.reason.is_none(), "{proof:?}");
            assert_eq!(proof.size, cell.guest_mtu);
        }
        let overhead = if cell.levels["encapsulation"] == "vxlan" { 50 } else { 0 };
        let key = (cell.levels["encapsulation"].clone(), cell.guest_mtu);
        let first = seen.insert(key, ()).is_none();
        for proof in sample.proofs.iter().filter(|proof| proof.when == ProofTime::Before && first) {
            let frame = proof.seen.as_ref().unwrap_or_else(|| panic!("not looked for: {proof:?}"));
            assert_eq!(frame.outer_ip_bytes, cell.guest_mtu + overhead, "{cell:?}");
            assert_eq!(frame.frame_bytes, frame.outer_ip_bytes + 14);
            assert!(!frame.fragment);
        }
    }
    assert_eq!(seen.len(), 4, "two labs, two guest MTUs");
}

fn offloads_are_as_planned_on_every_device(record: &Record) {
    for (sample, cell) in with_cells(record) {
        let tunnelled = cell.levels["encapsulation"] == "vxlan";
        let mut roles = BTreeSet::from([Role::Underlay, Role::Guest, Role::GuestPort]);
        roles.extend(tunnelled.then_some(Role::Tunnel));
        for host in ["a", "b"] {
            let devices = || sample.devices.iter().filter(|device| device.host == host);
            assert_eq!(devices().map(|device| device.role).collect::<BTreeSet<_>>(), roles);
            for device in devices() {
                let all_on = cell.offload.profile == Profile::Tunnel;
                for (feature, on) in &device.features {
                    let checksum = Feature::Checksum.ethtool().contains(&feature.as_str());
                    assert_eq!(*on, all_on || checksum, "{feature}: {device:?}, {cell:?}");
                }
                // Each device has these, so that a missing one was not read.
                for name in ["rx-gro", "tx-tcp-segmentation", "tx-generic-segmentation"] {
                    assert!(device.features.contains_key(name), "{name}: {device:?}");
                }
                let mtu = match device.role {
                    Role::Guest | Role::GuestPort => cell.guest_mtu,
                    Role::Tunnel => 8950,
                    _ => 9000,
                };
                assert_eq!(device.mtu, mtu, "{device:?}");
            }
        }
    }
}

fn nothing_is_aggregated_where_nothing_is_offloaded(record: &Record) {
    for (sample, cell) in with_cells(record) {
        let per_packet = segments_per_packet(sample).expect("segments");
        if cell.offload.profile == Profile::None {
            assert!(per_packet < 1.05, "{per_packet} segments per packet: {cell:?}");
        } else {
            assert!(per_packet > 2.0, "{per_packet} segments per packet: {cell:?}");
        }
        for flow in &sample.stream.as_ref().expect("a stream").flows {
            assert_eq!(flow.sender.snd_mss, cell.guest_mtu - HEADERS, "{cell:?}");
            assert_eq!(flow.sender.pmtu, cell.guest_mtu, "{cell:?}");
            assert_eq!((flow.sender.congestion.as_str(), flow.bytes > 0), ("cubic", true));
        }
    }
}

fn frames_on_the_wire_agree_with_the_links_counters(record: &Record) {
    let mut ratios: Vec<f64> = with_cells(record)
        .filter(|(_, cell)| cell.offload.profile == Profile::None)
        .map(|(sample, _)| {
            let sender = sample.sender.as_ref().expect("host a");
            let link = &sender.links["underlay"];
            let counted = (link.rx_packets + link.tx_packets) as f64 / sender.window_s;
            wire_frames_per_second(sample).expect("frames") / counted
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    // The counters are read one after the other: a reader that was preempted in between shifts
    // one window against the other, in single samples.
    let median = f64::midpoint(ratios[ratios.len() / 2 - 1], ratios[ratios.len() / 2]);
    assert!((median - 1.0).abs() < 0.01, "frames by TCP_INFO to frames by the link: {ratios:?}");
    assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.10), "{ratios:?}");
}

fn no_throughput_is_above_the_lines(record: &Record, result: &Value) {
    for (sample, cell) in with_cells(record) {
        let limit = result["cells"][sample.cell as usize]["line_limit_gbps"].as_f64();
        let gbps = Metric::Throughput.value(sample).expect("throughput") / 1e9;
        // Who is preempted just before a window reads within it what had come before.
        let slack = if sample.marks.is_empty() { 1.02 } else { 1.10 };
        assert!(gbps <= limit.expect("a rate") * slack, "{gbps} of {limit:?}: {cell:?}");
    }
}

fn each_host_keeps_to_its_cores(record: &Record) {
    let environment = &record.head.environment;
    let of = |host: &str| environment.hosts[host].cpus.clone();
    let all: BTreeSet<u32> = [of("a"), of("b")].concat().into_iter().collect();
    assert_eq!(environment.cpus, all.into_iter().collect::<Vec<_>>(), "cores of the run");
    if record.head.experiment.plan.cores == Cores::Shared {
        println!("one core: nothing is steered");
        return;
    }
    let own_sysfs = "mount -t sysfs sysfs /sys";
    let flags = ["--map-root-user", "--net", "--mount", "sh", "-c", own_sysfs];
    let readable = succeeds(Command::new("unshare").args(flags));
    for (sample, _) in with_cells(record) {
        for device in sample.devices.iter().filter(|device| device.role == Role::Underlay) {
            let Some(mask) = &device.rps_cpus else {
                assert!(!readable, "the steering mask was not read: {device:?}");
                continue;
            };
            let mask = u128::from_str_radix(&mask.replace(',', ""), 16).expect("a mask");
            let cores = of(&device.host).iter().fold(0u128, |bits, cpu| bits | 1 << cpu);
            assert_eq!(mask, cores, "{device:?}");
        }
        let usage = [("a", &sample.sender), ("b", &sample.receiver)];
        for (host, usage) in usage {
            let counted: Vec<u32> =
                usage.as_ref().expect("usage").cores.iter().map(|core| core.cpu).collect();
            assert_eq!(counted, of(host), "cores that were counted for {host}");
        }
    }
}

fn the_report_says_the_same(out: &Path, ended: &Ended) {
    let again = run(wirecost(["report", "--json"]).arg(out));
    again.expect_code(0);
    assert_eq!(again.stdout, ended.stdout);

    let words = run(wirecost(["report"]).arg(out));
    words.expect_code(0);
    for part in ["Gbit/s", "What each change does", "guest MTU 8900 instead of 1500"] {
        assert!(words.stdout.contains(part), "{part}: {words:#?}");
    }
    assert!(!words.stdout.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other_and_one_seed_is_one_order() {
    if !lab_can_be_built() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let plan = place.plan(&LONG.replace("rounds: 100", "rounds: 3"));
    let start = |name| Running::start(place.run_command(&plan, name).args(["--seed", "7", "--json"]));
    let runs = ["one", "two"].map(|name| (name, start(name)));
    let records = runs.map(|(name, running)| {
        let ended = running.wait();
        ended.expect_code(0);
        assert_eq!(document(&ended)["outcome"], "complete");
        let record = Record::read(&place.path().join(name)).expect("a record");
        assert_eq!(record.head.seed, 7);
        assert_eq!(record.samples.len(), 12);
        for sample in &record.samples {
            assert_eq!(sample.invalid, None, "{sample:#?}");
        }
        record
    });
    assert_eq!(order(&records[0]), order(&records[1]));
}

#[test]
fn a_plain_user_gets_a_lab_in_a_user_namespace() {
    if !lab_can_be_built() {
        return;
    }
    if !succeeds(as_plain_user("unshare").args(["--user", "--net", "--mount", "true"])) {
        common::skip("user namespaces are not allowed to plain users here");
        return;
    }
    let _alone = alone();
    let (place, program) = place_for_everybody();
    let plan = place.plan(TINY);

    let mut command = as_plain_user(program.to_str().expect("text"));
    command.args(["run", "--json"]).arg(plan).arg("--out").arg(place.path().join("out"));
    let ended = run(command.current_dir(place.path()));

    ended.expect_code(0);
    let result = document(&ended);
    assert_eq!(result["environment"]["privilege"], "user namespace");
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
    each_host_keeps_to_its_cores(&record);
}

#[test]
fn where_user_namespaces_are_forbidden_the_error_names_the_setting() {
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let inside = ["--user", "--map-root-user", "sh", "-c"];
    if !succeeds(Command::new("unshare").args(inside).arg(forbid)) {
        common::skip("no user namespace of our own to forbid them in");
        return;
    }
    let place = Place::new();
    let plan = place.plan(TINY);
    // Root of that namespace, who then gives up every capability and cannot have them back.
    let script = format!(
        "{forbid} && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(inside).args([&script, "sh"]).arg(program());
    command.args(["run", "--json"]).arg(plan).arg("--out").arg(place.path().join("out"));

    let ended = run(&mut command);

    ended.expect_code(3);
    assert_eq!(ended.stdout, "");
    for words in ["user.max_user_namespaces is 0", "run as root", "sysctl -w"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
    assert!(!place.path().join("out").exists(), "no record of nothing");
}

#[test]
fn an_interrupted_run_keeps_and_prints_what_there_is() {
    if !lab_can_be_built() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let plan = place.plan(LONG);
    let out = place.path().join("out");
    let mut running = Running::start(place.run_command(&plan, "out").arg("--json"));
    let taken = wait_for("a round", || {
        assert!(running.ended().is_none(), "it ended by itself");
        Some(lines_written(&out)).filter(|lines| *lines >= 4)
    });

    assert!(signal(running.pid(), Signal::SIGINT));
    let (owner, ended) = (running.owner(), running.wait());

    ended.expect_code(3);
    let result = document(&ended);
    assert_eq!(result["outcome"], "interrupted");
    assert_eq!(common::agents_of(owner), []);
    let record = Record::read(&out).expect("a record");
    let end = record.end.as_ref().expect("an end");
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert!(record.samples.len() >= taken && !record.cut);
    assert_eq!(result["samples"], record.samples.len());
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
    let again = run(wirecost(["report", "--json"]).arg(&out));
    again.expect_code(0);
    assert_eq!(again.stdout, ended.stdout);
}

#[test]
fn a_killed_agent_ends_the_run_with_its_name_and_all_samples_before() {
    if !lab_can_be_built() {
        return;
    }
    let _alone = alone();
    for host in ["a", "b"] {
        let place = Place::new();
        let plan = place.plan(LONG);
        let out = place.path().join("out");
        let mut running = Running::start(place.run_command(&plan, "out").arg("--json"));
        let taken = wait_for("a round", || {
            assert!(running.ended().is_none(), "it ended by itself");
            Some(lines_written(&out)).filter(|lines| *lines >= 4)
        });
        let agents = running.agents();
        assert_eq!(agents.len(), 4, "two hosts for each of two labs: {agents:?}");
        let victim = agents.iter().rfind(|agent| agent.host == host).expect("an agent");

        assert!(signal(victim.pid, Signal::SIGKILL));
        let (owner, ended) = (running.owner(), running.wait());

        ended.expect_code(3);
        assert_eq!(document(&ended)["outcome"], "failed");
        assert_eq!(common::agents_of(owner), []);
        let record = Record::read(&out).expect("a record");
        let end = record.end.as_ref().expect("an end");
        assert_eq!(end.outcome, Outcome::Failed);
        let reason = end.reason.as_deref().unwrap_or_default();
        assert!(reason.contains(&format!("agent of host {host}")), "{reason}");
        assert!(reason.contains("signal: 9"), "{reason}");
        let (last, before) = record.samples.split_last().expect("samples");
        assert!(before.len() >= taken && !record.cut);
        assert!(before.iter().all(|sample| sample.invalid.is_none()), "{before:#?}");
        // The one in the air is in the record as well, with the reason why it does not count.
        let why = last.invalid.as_ref().map(|invalid| invalid.reason());
        assert_eq!(why, Some(reason));
        run(wirecost(["report"]).arg(&out)).expect_code(0);
    }
}

/// A command as a user without any privilege.
fn as_plain_user(program: &str) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program]);
    command
}

/// A directory that everybody may write to, with a copy of the program that everybody can run.
fn place_for_everybody() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    fs::set_permissions(place.path(), Permissions::from_mode(0o777)).expect("permissions");
    let copy = place.path().join("wirecost");
    fs::copy(program(), &copy).expect("a copy of the program");
    (place, copy)
}

#[test]
fn root_has_no_need_of_a_user_namespace() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let plan = place.plan(&TINY.replace("[1500, 8900]", "8900").replace("[none, vxlan]", "vxlan"));
    let ended = run(place.run_command(&plan, "out").arg("--json"));
    ended.expect_code(0);
    assert_eq!(document(&ended)["environment"]["privilege"], "root");
}
