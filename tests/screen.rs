//! What a run tells while it goes on, and what it says when the disk is full.

use std::fs;
use std::process::Command;

use crate::common::{TestDir, is_root, lab_can_be_built, lock_shared, program, run};

const TWO_ROUNDS: &str = "\
name: two-rounds
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
offload: none
repeat: { rounds: 2, seconds: 1, warmup: 0.05 }
";

#[test]
fn each_round_is_told_with_its_throughput_and_the_time_left_and_quiet_tells_nothing() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(TWO_ROUNDS);

    let told = run(&mut place.run_command(&plan, "told"));
    told.expect_code(0);
    // On a machine that others keep busy a sample may not count, which has a line of its own.
    let of_a_sample =
        |line: &&str| line.starts_with("sample ") && line.contains(" does not count: ");
    let lines: Vec<&str> = told
        .stderr
        .lines()
        .filter(|line| !of_a_sample(line))
        .collect();
    assert!(
        lines[0].starts_with("built none over an underlay"),
        "{told:#?}"
    );
    assert!(lines[1].starts_with("4 samples, about "), "{told:#?}");
    for (line, round) in lines[2..].iter().zip(1..) {
        let begins = format!("round {round} of 2 measured at ");
        assert!(line.starts_with(&begins), "{told:#?}");
        assert!(
            line.contains("bit/s, ") && line.ends_with(" left"),
            "{told:#?}"
        );
    }
    assert_eq!(lines.len(), 4, "{told:#?}");

    let quiet = run(place.run_command(&plan, "quiet").arg("--quiet"));
    quiet.expect_code(0);
    assert_eq!(quiet.stderr, "");
    assert!(
        quiet
            .stdout
            .lines()
            .any(|line| line.starts_with("two-rounds: 2 cells")),
        "{quiet:#?}"
    );

    let both = run(place
        .run_command(&plan, "both")
        .args(["--quiet", "--verbose"]));
    both.expect_code(2);
    assert!(both.stderr.contains("cannot be used with"), "{both:#?}");
}

#[test]
fn verbose_tells_the_steps_of_both_hosts_on_standard_error_alone() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(TWO_ROUNDS);

    let ended = run(place.run_command(&plan, "out").args(["-vv", "--json"]));
    ended.expect_code(0);
    assert_eq!(ended.document()["outcome"], "complete");
    for words in [
        "DEBUG wirecost_agent::link: proving the path host=\"a\"",
        "DEBUG wirecost_agent::link: counting host=\"b\"",
        // The agents' own.
        "TRACE wirecost_agent::serve: done building its network",
        "sample 4 of 4, round 2, guest mtu ",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

/// Runs a plan with a directory on a file system of that size, which goes with the program.
fn on_a_disk_of(kilobytes: u32, place: &TestDir, plan: &std::path::Path) -> crate::common::Ended {
    let disk = place.path().join("disk");
    fs::create_dir_all(&disk).expect("mount point");
    let script = format!("mount -t tmpfs -o size={kilobytes}k wirecost-test \"$0\" && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(&disk);
    command.arg(program()).args(["run", "--json", "--quiet"]);
    run(command.arg(plan).arg("--out").arg(disk.join("out")))
}

#[test]
fn on_a_full_disk_the_samples_so_far_are_the_result() {
    if !is_root() || !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(&TWO_ROUNDS.replace("rounds: 2, seconds: 1", "rounds: 20, seconds: 0.1"));

    let ended = on_a_disk_of(48, &place, &plan);

    ended.expect_code(3);
    let samples = ended.document()["samples"].as_u64().expect("a number");
    assert!((1..40).contains(&samples), "{ended:#?}");
    let kept = match samples {
        1 => "the one sample written before is kept in".to_owned(),
        _ => format!("the {samples} samples written before are kept in"),
    };
    for words in ["samples.jsonl: No space left", "make room", "--out", &kept] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

#[test]
fn a_disk_without_room_for_a_record_is_told_before_anything_is_measured() {
    if !is_root() || !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(TWO_ROUNDS);

    let ended = on_a_disk_of(4, &place, &plan);

    ended.expect_code(3);
    assert_eq!(ended.document()["error"]["kind"], "output");
    assert!(
        ended.stderr.contains("run.json: No space left"),
        "{ended:#?}"
    );
    assert!(!ended.stderr.contains("kept"), "{ended:#?}");
}
