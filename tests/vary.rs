//! Anything as a factor: settings that are really in force in the samples of their level, in no others, and
//! that nothing leaves behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{
    Owner, Record, Running, TestDir, cell_of, cores_of_mask, is_root, lab_can_be_built, lacks,
    lock_machine_state, lock_shared, run, settings_guards, signal, state_and_start, wait_for,
    wirecost,
};
use nix::sys::signal::Signal;
use wirecost_model::offload::Role;
use wirecost_model::record::Outcome;
use wirecost_model::sample::{Invalid, Sample};
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

/// A small lab at a rate that any machine reaches, with nothing offloaded.
fn plan(rest: &str) -> String {
    format!(
        "name: vary\nseed: 1\nunderlay: {{ rate: 200mbit }}\nguest_mtu: 1500\noffload: none\n{rest}"
    )
}

const SHORT: &str = "repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n";

/// The samples by the label of their level.
fn by_level<'a>(record: &'a Record, factor: &str) -> BTreeMap<&'a str, Vec<&'a Sample>> {
    let mut samples: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in &record.samples {
        let levels = &record.head.experiment.cells[sample.cell as usize].levels;
        samples.entry(&levels[factor]).or_default().push(sample);
    }
    samples
}

fn in_state(pid: u32, state: char) -> Option<()> {
    let (now, _) = state_and_start(pid)?;
    (now == state).then_some(())
}

#[test]
fn settings_are_in_force_in_the_samples_of_their_level_and_in_no_others() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let file = place.path().join("seen");
    // The file is read by nobody but a shell in the guest's namespace.
    let look = |level: &str| {
        format!(
            "on: guests, before: 'echo $(wc -l < {}) {level} $WIRECOST_PLACE \
             $(cat /proc/sys/net/ipv4/tcp_no_metrics_save) >> {}', after: 'true'",
            place.path().join("out/samples.jsonl").display(),
            file.display()
        )
    };
    let text = plan(&format!(
        "vary:\n  settings:\n    - {{ label: default, {} }}\n    - {{ label: set, \
         sysctl: {{ net.ipv4.tcp_no_metrics_save: 1 }}, \
         ethtool: {{ underlay: {{ rx-gro: on }}, guest: {{ tx-generic-segmentation: on }} }}, {} }}\n\
         repeat: {{ rounds: 3, seconds: 0.4, warmup: 0.05 }}\n",
        look("default"),
        look("set")
    ));
    let ended = run(place.run_command(&place.plan(&text), "out").arg("--json"));
    ended.expect_code(0);
    assert!(
        ended.stderr.contains("this plan runs commands (2 levels)"),
        "{ended:#?}"
    );

    let seen = fs::read_to_string(&file).expect("what the guests saw");
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 3 * 2);
    // Each sample, in either guest: twice the same where a sample was taken again.
    let lines: BTreeSet<String> = seen.lines().map(str::to_owned).collect();
    let expected = record
        .samples
        .iter()
        .enumerate()
        .flat_map(|(number, sample)| {
            let level = &cell_of(&record, sample).levels["settings"];
            let value = u8::from(level == "set");
            ["a", "b"].map(|host| format!("{number} {level} the guest of host {host} {value}"))
        });
    assert_eq!(lines, expected.collect());
    for (label, samples) in by_level(&record, "settings") {
        assert_eq!(samples.len(), 3);
        for sample in samples {
            assert_eq!(sample.invalid, None);
            let set = label == "set";
            let is = |role, feature: &str| {
                let devices = sample.devices.iter().filter(|device| device.role == role);
                let states: Vec<bool> = devices.map(|device| device.features[feature]).collect();
                assert_eq!(states, [set; 2], "{label}: {feature} of {role:?}");
            };
            is(Role::Underlay, "rx-gro");
            is(Role::Guest, "tx-generic-segmentation");
        }
    }
    let document = ended.document();
    let effects = document["effects"].as_array().expect("effects");
    assert!(
        effects
            .iter()
            .all(|e| e["factor"] == "settings" && e["to"] == "set" && e["rounds"] == 3)
    );
    assert_eq!(document["vary"][0]["levels"][1]["label"], "set");
}

#[test]
fn a_feature_that_no_offload_profile_knows_is_put_back() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = plan(
        "vary:\n  copy:\n    - label: default\n    - ethtool: { underlay: { tx-nocache-copy: on } }\n\
         repeat: { rounds: 4, seconds: 0.3, warmup: 0.1 }\n",
    );
    let mut running = Running::start(&mut place.run_command(&place.plan(&text), "out"));
    // Looked at from outside: the host's namespace is its agent's.
    let mut seen = Vec::new();
    let ended = wait_for("the run's end", || {
        let host = running.agents().into_iter().find(|agent| agent.host == "a");
        let features = host
            .and_then(|agent| Netns::of(agent.pid).ok())
            .and_then(|netns| {
                let features = || Ethtool::open()?.features("underlay");
                netns.within(features).ok()?.ok()
            });
        if let Some(state) = features.as_ref().and_then(|all| all.get("tx-nocache-copy"))
            && seen.last() != Some(&state.active)
        {
            seen.push(state.active);
        }
        running.ended()
    });
    ended.expect_code(0);
    if !is_root() {
        return; // Another user's namespaces are not looked into.
    }
    println!("tx-nocache-copy over the run: {seen:?}");
    assert!(
        seen.windows(2).any(|pair| pair == [true, false]),
        "{seen:?}"
    );
}

#[test]
fn queues_and_receive_steering_are_what_the_level_says() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = plan(&format!(
        "steering: {{ queues: [1, 3], rps: [own, off, all, 0x1] }}\n{SHORT}"
    ));
    let ended = run(&mut place.run_command(&place.plan(&text), "out"));
    let record = Record::read(&place.path().join("out")).unwrap_or_else(|| panic!("{ended:#?}"));
    let environment = &record.head.environment;
    let split = environment.hosts["a"].cores == "split";
    if !environment.cpus.contains(&0) {
        lacks("this process may not use core 0");
        return;
    }
    ended.expect_code(0);
    let mut masks = 0;
    for sample in &record.samples {
        let levels = &record.head.experiment.cells[sample.cell as usize].levels;
        let veths = sample
            .devices
            .iter()
            .filter(|device| device.role != Role::Tunnel);
        for device in veths {
            let queues = [device.tx_queues, device.rx_queues];
            assert_eq!(
                queues.map(|n| n.expect("told").to_string()),
                [&*levels["steering.queues"]; 2]
            );
            let Some(mask) = &device.rps_cpus else {
                continue;
            };
            let own = &environment.hosts[&device.host].cpus;
            let wanted = match levels["steering.rps"].as_str() {
                _ if device.role != Role::Underlay => vec![],
                "own" if split => own.clone(),
                "own" | "off" => vec![],
                "all" => environment.cpus.clone(),
                _ => vec![0],
            };
            assert_eq!(cores_of_mask(mask), wanted, "{device:?}, {levels:?}");
            masks += 1;
        }
    }
    println!("{masks} steering masks were read");
    let words = "with steering.rps `off`, `all`, `0x1` the other host's cores may handle what a host receives";
    assert_eq!(
        ended
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(words),
        split
    );
}

#[test]
fn what_cannot_be_set_here_is_refused_before_anything_is_measured() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let cases: [(&str, &[&str]); 6] = [
        (
            "sysctl: { net.ipv4.no_such_thing: 1 }",
            &[
                "host a: the level `no_such_thing=1` of `x`",
                "check the name",
                "on: machine",
            ],
        ),
        // Of the machine: hidden in a namespace, or shown read-only.
        (
            "sysctl: { net.core.netdev_max_backlog: 2000 }",
            &["there is no sysctl", "on: machine"],
        ),
        (
            "on: guests, sysctl: { net.core.rmem_max: 1000000 }",
            &["the guest of host a", "on: machine"],
        ),
        (
            "sysctl: { net.ipv4.tcp_sack: many }",
            &["does not take `many`"],
        ),
        (
            "ethtool: { guest: { rx-lro: on } }",
            &["`rx-lro` of `eth0` is fixed at off"],
        ),
        (
            "ethtool: { underlay: { rx-grow: on } }",
            &["`rx-grow` of `underlay` is not known to this kernel"],
        ),
    ];
    for (level, words) in cases {
        let text = plan(&format!(
            "vary:\n  x:\n    - label: default\n    - {{ {level} }}\n{SHORT}"
        ));
        let ended = run(&mut place.run_command(&place.plan(&text), "out"));
        ended.expect_code(3);
        assert_eq!(ended.stdout, "");
        for word in words {
            assert!(ended.stderr.contains(word), "{word}: {ended:#?}");
        }
        assert!(!place.path().join("out").exists(), "{level}");
    }
    let text = plan(&format!(
        "steering: {{ rps: 0x{:x} }}\n{SHORT}",
        1u128 << 100
    ));
    let ended = run(&mut place.run_command(&place.plan(&text), "out"));
    ended.expect_code(3);
    assert!(ended.stderr.contains("steers to core 100"), "{ended:#?}");
}

#[test]
fn a_command_that_fails_makes_its_sample_invalid_by_name_and_is_undone() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let half_done = place.path().join("half-done");
    let text = plan(&format!(
        "vary:\n  x:\n    - label: default\n    - label: broken\n      on: hosts\n      \
         before: 'echo $WIRECOST_PLACE > {0}; echo so it goes >&2; exit 7'\n      after: 'rm -f {0}'\n{SHORT}",
        half_done.display()
    ));
    let ended = run(&mut place.run_command(&place.plan(&text), "out"));
    ended.expect_code(3);
    assert!(!half_done.exists(), "undone where it failed");
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(
        record.end.as_ref().expect("an end").outcome,
        Outcome::Complete
    );
    let samples = by_level(&record, "x");
    assert!(
        samples["default"]
            .iter()
            .all(|sample| sample.invalid.is_none())
    );
    for sample in &samples["broken"] {
        let Some(Invalid::Setting(reason)) = &sample.invalid else {
            panic!("{:?}", sample.invalid);
        };
        for words in [
            "host a: the level `broken` of `x`",
            "exit code 7 and said: so it goes",
        ] {
            assert!(reason.contains(words), "{words}: {reason}");
        }
        assert!(sample.loads.is_empty(), "nothing was measured");
    }
}

#[test]
fn a_setting_is_undone_where_the_sample_fails_and_the_next_sample_does_not_know_of_it() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = plan(
        "vary:\n  link:\n    - label: up\n    - label: down\n      on: guests\n      before: ip link set eth0 down\n      \
         after: ip link set eth0 up\nrepeat: { rounds: 3, seconds: 0.4, warmup: 0.05 }\n",
    );
    let ended = run(&mut place.run_command(&place.plan(&text), "out"));
    ended.expect_code(3);
    let record = Record::read(&place.path().join("out")).expect("a record");
    let samples = by_level(&record, "link");
    assert!(
        samples["down"]
            .iter()
            .all(|sample| sample.invalid.is_some())
    );
    for sample in &samples["up"] {
        assert_eq!(sample.invalid, None);
    }
}

#[test]
fn an_undo_that_fails_ends_the_run() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = plan(&format!(
        "vary:\n  x:\n    - {{ label: one, on: hosts, before: 'true', after: 'echo stuck; exit 1' }}\n{SHORT}"
    ));
    let ended = run(&mut place.run_command(&place.plan(&text), "out"));
    ended.expect_code(3);
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 1, "nothing is measured after it");
    let end = record.end.expect("an end");
    assert_eq!(end.outcome, Outcome::Failed);
    let reason = end.reason.expect("a reason");
    for words in ["could not be undone", "said: stuck", "the run ends"] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    assert!(matches!(
        &record.samples[0].invalid,
        Some(Invalid::Setting(_))
    ));
}

/// How a run may come to its end while a setting is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndOf {
    Interrupt,
    Controller,
    ControllerAndAgents,
    /// The settings guards stopped before: the kernel tells stopped processes that lose their parent to go on
    /// (kernel/exit.c, `kill_orphaned_pgrp`).
    ControllerWithStoppedGuards,
}

/// A run with one long sample whose command leaves files for as long as it is in force.
struct Held {
    place: TestDir,
    running: Running,
    files: Vec<PathBuf>,
}

fn files_in_force(place: &TestDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path().join("in force")).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

impl Held {
    fn start(on: &str, settings: &str, count: usize) -> Self {
        let place = TestDir::new();
        let mark = place.path().join("in force").join("$WIRECOST_PLACE");
        fs::create_dir(place.path().join("in force")).expect("a directory");
        let text = plan(&format!(
            "vary:\n  x:\n    - label: held\n      on: {on}\n      {settings}\n      before: 'touch \"{0}\"'\n      \
             after: 'rm \"{0}\"'\nrepeat: {{ rounds: 1, seconds: 600, warmup: 0 }}\n",
            mark.display()
        ));
        let mut running = Running::start(&mut place.run_command(&place.plan(&text), "out"));
        let files = running.wait_for("the command's files", |_| {
            Some(files_in_force(&place)).filter(|files| files.len() == count)
        });
        Self {
            place,
            running,
            files,
        }
    }

    fn left(&self) -> Vec<PathBuf> {
        files_in_force(&self.place)
    }

    fn end(&mut self, how: EndOf, owner: &str) {
        let agents = self.running.agents();
        if how == EndOf::ControllerWithStoppedGuards {
            for guard in settings_guards(owner) {
                assert!(signal(guard, Signal::SIGSTOP));
                // Asked is not stopped: the kernel looks for stopped ones at the moment the parent ends.
                wait_for("it to be stopped", || in_state(guard, 'T'));
            }
        }
        let signalled = match how {
            EndOf::Interrupt => Signal::SIGINT,
            _ => Signal::SIGKILL,
        };
        assert!(self.running.signal(signalled));
        if how == EndOf::ControllerAndAgents {
            for agent in agents {
                signal(agent.pid, Signal::SIGKILL);
            }
        }
        let ended = self.running.wait();
        match how {
            EndOf::Interrupt => {
                ended.expect_code(3);
                assert_eq!(
                    self.left(),
                    Vec::<PathBuf>::new(),
                    "undone before the run's end"
                );
            }
            _ => assert!(ended.was_killed(), "{ended:#?}"),
        }
        wait_for("everything to be undone", || {
            self.left().is_empty().then_some(())
        });
        wait_for("the settings guards to be gone", || {
            settings_guards(owner).is_empty().then_some(())
        });
    }
}

const ENDS: [EndOf; 4] = [
    EndOf::Interrupt,
    EndOf::Controller,
    EndOf::ControllerAndAgents,
    EndOf::ControllerWithStoppedGuards,
];

#[test]
fn a_command_is_undone_however_the_run_ends() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for (on, count) in [("both", 4), ("machine", 1)] {
        for how in ENDS {
            let mut held = Held::start(on, "", count);
            let owner = Owner::of(held.running.pid()).argument();
            println!("{how:?}, {on}: {:?}", held.files);
            held.end(how, &owner);
        }
    }
}

#[test]
fn a_stopped_settings_guard_whose_run_is_gone_is_told_to_go_on() {
    let _lock = lock_machine_state();
    // Nobody has this start time.
    let mut command = wirecost(["settings-guard", "--owner", "1:1", "--place", "a test"]);
    let mut guard = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a settings guard");
    assert!(signal(guard.id(), Signal::SIGSTOP));
    wait_for("it to be stopped", || in_state(guard.id(), 'T'));
    run(&mut wirecost(["clean"])).expect_code(0);
    wait_for("it to wait for orders again", || in_state(guard.id(), 'S'));
    drop(guard.stdin.take());
    assert!(guard.wait().expect("our own child").success());
}

/// Of no effect since Linux 2.4 (net/core/sysctl_net_core.c): what a test may change on a machine.
const HARMLESS: &str = "/proc/sys/net/core/warnings";

#[test]
fn a_sysctl_of_the_machine_is_put_back_however_the_run_ends() {
    if !is_root() || !lab_can_be_built() {
        return;
    }
    if !Path::new(HARMLESS).exists() {
        lacks("this kernel has no net.core.warnings, or this is a network namespace of its own");
        return;
    }
    let _lock = lock_machine_state();
    let value = || {
        fs::read_to_string(HARMLESS)
            .expect("the sysctl")
            .trim()
            .to_owned()
    };
    let before = value();
    let other = if before == "0" { "1" } else { "0" };
    for how in ENDS {
        let mut held = Held::start(
            "machine",
            &format!("sysctl: {{ net.core.warnings: {other} }}"),
            1,
        );
        assert_eq!(value(), other, "in force");
        let owner = Owner::of(held.running.pid()).argument();
        held.end(how, &owner);
        assert_eq!(value(), before, "{how:?}");
    }
}

#[test]
fn a_dry_run_shows_every_command_and_where_it_would_run() {
    let place = TestDir::new();
    let text = plan(&format!(
        "vary:\n  x:\n    - {{}}\n    - {{ label: one, on: hosts, before: 'touch here', after: 'rm here' }}\n{SHORT}"
    ));
    let file = place.plan(&text);
    let ended = run(place.run_command(&file, "out").arg("--dry-run"));
    ended.expect_code(0);
    for words in [
        "x: one (1 cell)",
        "`sh -c` as the user who runs wirecost, 2 times a sample: in the namespaces of both hosts",
        "before  touch here",
        "after   rm here",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let ended = run(place
        .run_command(&file, "out")
        .args(["--dry-run", "--json"]));
    let setting = &ended.document()["settings"][0];
    assert_eq!(setting["command"]["before"], "touch here");
    assert_eq!(
        (&setting["on"], &setting["commands_a_sample"]),
        (&"hosts".into(), &2.into())
    );
    assert!(!place.path().join("here").exists());
}

#[test]
fn a_dry_run_says_that_the_first_cell_is_measured_twice_and_counts_in_words() {
    let place = TestDir::new();
    let file = place.plan("name: x\nself_test: on\nrepeat: { rounds: 1, seconds: 0.4 }\n");
    let ended = run(place.run_command(&file, "out").arg("--dry-run"));
    ended.expect_code(0);
    for words in [
        "x: 1 + 1 cells x 1 round = 2 samples, about",
        "\nSelf-test: cell 1 is cell 0 once more, in every round.\n",
        "\n  2 windows of 0.4 s",
        "\n  1 lab ",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let file = place.plan("name: x\nrepeat: { rounds: 1 }\n");
    let ended = run(place.run_command(&file, "out").arg("--dry-run"));
    assert!(
        ended
            .stdout
            .starts_with("x: 1 cell x 1 round = 1 sample, about"),
        "{ended:#?}"
    );
    assert!(!ended.stdout.contains("Self-test"), "{ended:#?}");
}
