//! What emulates a lab's line on this machine, and that it is told before a run, in its record and in its result.

use std::fs;

use crate::common::{Record, TestDir, is_root, lab_can_be_built, lock_shared, run, wirecost};
use wirecost_model::line::{LineQdisc, LineRelease};

const PLAN: &str = "\
name: line
underlay: { mtu: 1500, rate: [none, 1gbit] }
load: { tcp-stream: { rate: 100mbit } }
repeat: { rounds: 2, seconds: 1, warmup: 0.05 }
";

/// Whether this kernel has fq, by its own list of what it is made of; `None` where that is not readable.
fn kernel_has_fq() -> Option<bool> {
    let symbols = fs::read_to_string("/proc/kallsyms").ok()?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let modules = format!("/lib/modules/{}/modules.dep", release.trim());
    let modules = fs::read_to_string(modules).unwrap_or_default();
    let there = symbols.contains(" fq_enqueue") || modules.contains("/sch_fq.ko");
    symbols.contains(" veth_newlink").then_some(there)
}

#[test]
fn a_lab_says_how_its_line_releases() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(PLAN);
    let ended = run(&mut place.run_command(&plan, "out"));
    ended.expect_code(0);
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.head.experiment.plan.underlay.release_us, Some(100));
    let line = record.head.environment.line.expect("a line");
    let expected = match kernel_has_fq() {
        Some(true) if is_root() => LineQdisc::Fq,
        _ => LineQdisc::Tbf,
    };
    assert_eq!(line.by, expected, "{line}");
    match line.by {
        LineQdisc::Fq => assert_eq!(line, LineRelease::in_steps(100)),
        LineQdisc::Tbf | LineQdisc::Htb => {
            assert!(line.why.is_some() && line.step_us.is_none(), "{line:?}");
        }
    }
    if kernel_has_fq() == Some(false) {
        let why = line.why.as_deref().unwrap_or_default();
        assert!(why.starts_with("this kernel has no fq"), "{why}");
    }
    let full = run(wirecost(["report", "--full"]).arg(place.path().join("out")));
    full.expect_code(0);
    let words: Vec<&str> = full.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(&line.to_string()), "{full:#?}");

    let before = run(place
        .run_command(&plan, "dry")
        .args(["--dry-run", "--json"]));
    before.expect_code(0);
    if kernel_has_fq().is_some() {
        let by = serde_json::to_value(line.by).expect("a word");
        assert_eq!(before.document()["line"]["by"], by, "{before:#?}");
    }
}

#[test]
fn without_a_line_nothing_is_said_of_one() {
    let place = TestDir::new();
    let plan = place.plan("name: none\n");
    let dry = run(wirecost(["run", "--dry-run"]).arg(&plan));
    dry.expect_code(0);
    assert!(!dry.stdout.contains("line releases"), "{dry:#?}");
}
