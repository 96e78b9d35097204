//! Runs beside each other, without root, and cut short.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{
    Record, Running, TestDir, cores_of_mask, install, is_root, lab_can_be_built, lines_written,
    lock_shared, program, run, signal, skip, succeeds, wirecost,
};
use nix::sys::signal::Signal;
use wirecost_model::offload::Role;
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, file};
use wirecost_model::sample::Invalid;

/// As little as shows whether a lab can be had and is measured.
const TINY: &str = "\
name: tiny
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: none
repeat: { rounds: 1, seconds: 1, warmup: 0.05 }
";

/// Long enough to be met in the middle of it.
const LONG: &str = "\
name: long
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: none
repeat: { rounds: 100, seconds: 0.6, warmup: 0.05 }
";

/// Round, position and cell of every sample.
fn order(record: &Record) -> Vec<(u32, u32, u32)> {
    record
        .samples
        .iter()
        .map(|s| (s.round, s.position, s.cell))
        .collect()
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other_and_one_seed_is_one_order() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(&LONG.replace("rounds: 100", "rounds: 3"));
    let start = |name| {
        Running::start(
            place
                .run_command(&plan, name)
                .args(["--seed", "7", "--json"]),
        )
    };
    let runs = ["one", "two"].map(|name| (name, start(name)));
    let records = runs.map(|(name, mut running)| {
        let ended = running.wait();
        ended.expect_code(0);
        assert_eq!(ended.document()["outcome"], "complete");
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
        skip("user namespaces are not allowed to plain users here");
        return;
    }
    let _lock = lock_shared();
    let (place, program) = dir_for_everybody();
    let every_ip = TINY
        .replace("[1500, 8900]", "1500\nguest_ip: [ipv4, ipv6]")
        .replace("rate: 1gbit", "rate: 1gbit, ip: [ipv4, ipv6]");
    let plan = place.plan(&every_ip);

    let mut command = as_plain_user(program.to_str().expect("text"));
    command
        .args(["run", "--json"])
        .arg(plan)
        .arg("--out")
        .arg(place.path().join("out"));
    let ended = run(command.current_dir(place.path()));

    ended.expect_code(0);
    let result = ended.document();
    assert_eq!(result["environment"]["privilege"], "user namespace");
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 2 * (1 + 2));
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
    // Receive steering takes another way without root, and must come to the same.
    let devices = record.samples.iter().flat_map(|sample| &sample.devices);
    for device in devices.filter(|device| device.role == Role::Underlay) {
        let split = record.head.experiment.plan.cores == Cores::Split;
        if let (Some(mask), true) = (&device.rps_cpus, split) {
            let cores = &record.head.environment.hosts[&device.host].cpus;
            assert_eq!(cores_of_mask(mask), *cores, "{device:?}");
        }
    }
}

#[test]
fn where_user_namespaces_are_forbidden_the_error_names_the_setting() {
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let inside = ["--user", "--map-root-user", "sh", "-c"];
    if !succeeds(Command::new("unshare").args(inside).arg(forbid)) {
        skip("no user namespace of our own to forbid them in");
        return;
    }
    let place = TestDir::new();
    let plan = place.plan(TINY);
    // Root of that namespace, who then gives up every capability and cannot have them back.
    let script = format!(
        "{forbid} && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(inside).args([&script, "sh"]).arg(program());
    command
        .args(["run", "--json"])
        .arg(plan)
        .arg("--out")
        .arg(place.path().join("out"));

    let ended = run(&mut command);

    ended.expect_code(3);
    assert_eq!(ended.document()["error"]["kind"], "machine");
    for words in [
        "user.max_user_namespaces is 0",
        "run as root",
        "sysctl -w",
        "`wirecost doctor` says",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
    assert!(!place.path().join("out").exists(), "no record of nothing");
}

#[test]
fn an_interrupted_run_keeps_and_prints_what_there_is() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(LONG);
    let out = place.path().join("out");
    let mut running = Running::start(place.run_command(&plan, "out").arg("--json"));
    let taken = running.wait_for("a round", |_| {
        Some(lines_written(&out)).filter(|lines| *lines >= 4)
    });

    assert!(running.signal(Signal::SIGINT));
    let ended = running.wait();

    ended.expect_code(3);
    let result = ended.document();
    assert_eq!(result["outcome"], "interrupted");
    assert_eq!(running.agents(), []);
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
    let page = run(wirecost(["report", "--html"]).arg(&out));
    let written = fs::read_to_string(out.join(file::REPORT)).expect("a page");
    assert_eq!(written, page.stdout);
    assert!(written.contains("interrupted"), "{written}");
}

#[test]
fn a_killed_agent_ends_the_run_with_its_name_and_all_samples_before() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for host in ["a", "b"] {
        let place = TestDir::new();
        let plan = place.plan(LONG);
        let out = place.path().join("out");
        let mut running = Running::start(place.run_command(&plan, "out").arg("--json"));
        let taken = running.wait_for("a round", |_| {
            Some(lines_written(&out)).filter(|lines| *lines >= 4)
        });
        let agents = running.agents();
        assert_eq!(
            agents.len(),
            4,
            "two hosts for each of two labs: {agents:?}"
        );
        let victim = agents
            .iter()
            .rfind(|agent| agent.host == host)
            .expect("an agent");

        assert!(signal(victim.pid, Signal::SIGKILL));
        let ended = running.wait();

        ended.expect_code(3);
        assert_eq!(ended.document()["outcome"], "failed");
        assert_eq!(running.agents(), []);
        let record = Record::read(&out).expect("a record");
        let end = record.end.as_ref().expect("an end");
        assert_eq!(end.outcome, Outcome::Failed);
        let reason = end.reason.as_deref().unwrap_or_default();
        assert!(
            reason.contains(&format!("agent of host {host}")),
            "{reason}"
        );
        assert!(reason.contains("signal: 9"), "{reason}");
        let (last, before) = record.samples.split_last().expect("samples");
        assert!(before.len() >= taken && !record.cut);
        assert!(
            before.iter().all(|sample| sample.invalid.is_none()),
            "{before:#?}"
        );
        // The one in the air is in the record as well, with the reason why it does not count.
        let why = last.invalid.as_ref().map(Invalid::reason);
        assert_eq!(why, Some(reason));
        run(wirecost(["report"]).arg(&out)).expect_code(0);
    }
}

/// A command as a user without any privilege.
pub(crate) fn as_plain_user(program: &str) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        program,
    ]);
    command
}

/// A directory that everybody may write to, with a copy of the program that everybody can run.
pub(crate) fn dir_for_everybody() -> (TestDir, PathBuf) {
    let place = TestDir::new();
    fs::set_permissions(place.path(), Permissions::from_mode(0o777)).expect("permissions");
    let copy = place.path().join("wirecost");
    install(program(), &copy);
    (place, copy)
}

#[test]
fn root_has_no_need_of_a_user_namespace() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(
        &TINY
            .replace("[1500, 8900]", "8900")
            .replace("[none, vxlan]", "vxlan"),
    );
    let ended = run(place.run_command(&plan, "out").arg("--json"));
    ended.expect_code(0);
    assert_eq!(ended.document()["environment"]["privilege"], "root");
}
