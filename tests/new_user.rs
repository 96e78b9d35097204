//! Small things that a new user meets: a factor on one host, a congestion control that is not there, names in
//! sentences.

use crate::common::{Record, TestDir, is_root, lab_can_be_built, lock_shared, run, wirecost};

/// Two levels that differ on host b alone.
const ON_B: &str = "name: one-host\nguest_mtu: 1500\noffload: none\n\
    vary:\n  gro:\n    - label: gro off\n    - label: gro on\n      on: b\n      ethtool: { underlay: { rx-gro: on } }\n      \
    sysctl: { net.ipv4.tcp_no_metrics_save: 1 }\n\
    repeat: { rounds: 2, seconds: 1, warmup: 0.05 }\n";

#[test]
fn a_factor_is_set_on_one_host_alone_and_read_back_there() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let ended = run(&mut place.run_command(&place.plan(ON_B), "out"));
    ended.expect_code(0);
    assert!(!ended.stdout.contains("gro gro"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("gro on instead of gro off"),
        "{}",
        ended.stdout
    );
    let record = Record::read(&place.path().join("out")).expect("a record");
    let cells = &record.head.experiment.cells;
    for sample in &record.samples {
        let level = cells[sample.cell as usize].levels["gro"].as_str();
        for device in &sample.devices {
            let Some(gro) = device.features.get("rx-gro") else {
                continue;
            };
            let of_level = device.host == "b" && device.name == "underlay" && level == "gro on";
            assert_eq!(*gro, of_level, "{level}: {device:?}");
        }
    }
}

#[test]
fn a_dry_run_says_on_which_host_and_drops_nothing_in_words() {
    let place = TestDir::new();
    let plan = place.plan(ON_B);
    let ended = run(wirecost(["run", "--dry-run"]).arg(&plan));
    ended.expect_code(0);
    for words in [
        "ethtool underlay rx-gro on, on host b",
        "in the namespaces of host b",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("`exclude`"), "{}", ended.stdout);
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_ends_a_run_before_its_first_sample() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan("name: x\nload: { tcp-stream: { congestion: nosuch } }\n");
    let ended = run(place.run_command(&plan, "out").arg("--json"));
    ended.expect_code(3);
    let message = ended.document()["error"]["message"].clone();
    let message = message.as_str().expect("a message");
    for words in ["`nosuch` is not in this kernel", "modprobe tcp_nosuch"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(!place.path().join("out").exists(), "nothing was measured");
}

#[test]
fn a_namespace_that_is_not_there_does_not_list_all_that_are() {
    if !is_root() {
        return;
    }
    let id = std::process::id();
    let names: Vec<String> = (0..9)
        .map(|number| format!("wct-many-{id}-{number}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let _made = crate::common::namespaces::Namespaces::new(&names);
    let wanted = format!("netns:wct-many-{id}");
    let ended = run(&mut wirecost(["load", &wanted, "local"]));
    ended.expect_code(3);
    let told = ended.stderr.matches("wct-many-").count();
    assert!(
        (7..9).contains(&told),
        "five of nine, and the one asked for: {ended:#?}"
    );
    assert!(
        ended.stderr.contains(" more, which `ip netns list` shows"),
        "{ended:#?}"
    );
}
