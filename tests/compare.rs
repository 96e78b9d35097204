//! Two runs against each other, through the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Ended, Record, TestDir, lab_can_be_built, lock_shared, run, wirecost};
use crate::fixture;
use tempfile::TempDir;
use wirecost_model::plan::Cores;
use wirecost_model::record::{Run, VERSION, file};
use wirecost_model::sample::Mark;

const V1: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/report/tests/records/v1"
);

/// A run of the fabricated plan with the throughput of every cell times this.
fn measured(times: f64) -> Run {
    let mut run = fixture::run(4, Cores::Split);
    for sample in &mut run.samples {
        let stream = sample.loads[0].stream.as_mut().expect("a load");
        stream.bytes = (stream.bytes as f64 * times) as u64;
    }
    run
}

fn directories(after: &Run) -> [TempDir; 2] {
    [fixture::write(&measured(1.0)), fixture::write(after)]
}

fn compare(before: &Path, after: &Path, options: &[&str]) -> Ended {
    let mut command = wirecost(["compare"]);
    run(command.arg(before).arg(after).args(options))
}

/// A line on standard error that names what is wrong, and nothing on standard output.
#[track_caller]
fn refused(ended: &Ended, code: i32, words: &str) {
    ended.expect_code(code);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains(words), "{ended:#?}");
}

#[test]
fn no_regression_is_0_and_a_regression_is_1_in_every_form() {
    for (times, code) in [(1.001, 0), (0.8, 1)] {
        let [before, after] = directories(&measured(times));
        for form in [
            &[][..],
            &["--json"],
            &["--markdown"],
            &["--junit"],
            &["--fail-on", "costs"],
        ] {
            let ended = compare(before.path(), after.path(), form);
            ended.expect_code(code);
            assert_eq!(ended.stderr, "");
            assert!(!ended.stdout.is_empty());
        }
    }
}

#[test]
fn a_disturbed_run_cannot_tell_which_is_a_failure_only_where_that_is_asked_for() {
    let mut disturbed = measured(0.8);
    for sample in &mut disturbed.samples {
        sample.marks.push(Mark::ForeignLoad {
            cores: 0.9,
            threshold: 0.05,
        });
    }
    let [before, after] = directories(&disturbed);
    for form in [&[][..], &["--json"], &["--markdown"], &["--junit"]] {
        let ended = compare(before.path(), after.path(), form);
        ended.expect_code(0);
        assert!(ended.stdout.contains("32 of 32 samples"), "{ended:#?}");
        let strict = [form, &["--strict"]].concat();
        compare(before.path(), after.path(), &strict).expect_code(1);
    }
}

#[test]
fn what_is_a_regression_can_be_chosen() {
    let [before, after] = directories(&measured(0.8));
    let code = |options: &[&str], code| {
        compare(before.path(), after.path(), options).expect_code(code);
    };
    code(&["--fail-on", "never"], 0);
    code(&["--fail-on", "loses"], 1);
    code(&["--fail-on", "cannot-tell"], 1);
    code(&["--fail-on", "costs", "--corrected"], 1);
    let ended = compare(before.path(), after.path(), &["--fail-on", "pays"]);
    refused(
        &ended,
        2,
        "[possible values: never, costs, loses, cannot-tell]",
    );
    // The other way round it is an improvement, by any rule.
    let ended = compare(after.path(), before.path(), &["--fail-on", "cannot-tell"]);
    ended.expect_code(0);
}

#[test]
fn a_directory_that_cannot_be_read_is_2_and_is_named() {
    let [before, after] = directories(&measured(1.0));
    let nowhere = before.path().join("nowhere");
    let ended = compare(&nowhere, after.path(), &[]);
    refused(&ended, 2, "there is no directory");
    let ended = compare(before.path(), &nowhere, &["--markdown"]);
    refused(&ended, 2, "there is no directory");
    refused(&run(&mut wirecost(["compare", "one"])), 2, "<AFTER>");
}

#[test]
fn a_newer_record_is_refused_with_words() {
    let [before, after] = directories(&measured(1.0));
    fixture::edit(after.path(), file::RUN, |text| {
        text.replace(
            &format!("\"record_version\": {VERSION}"),
            "\"record_version\": 99",
        )
    });
    let ended = compare(before.path(), after.path(), &[]);
    refused(&ended, 2, "record version 99");
    assert!(ended.stderr.contains("or a newer one"), "{ended:#?}");
}

#[test]
fn runs_without_a_common_cell_are_3() {
    let after = fixture::write(&measured(1.0));
    let ended = compare(Path::new(V1), after.path(), &["--json"]);
    ended.expect_code(3);
    assert_eq!(ended.document()["conclusion"], "nothing_comparable");
    let ended = compare(Path::new(V1), after.path(), &["--junit"]);
    ended.expect_code(3);
    assert!(ended.stdout.contains("<error "), "{ended:#?}");
}

#[test]
fn a_record_of_version_1_is_compared() {
    let ended = compare(Path::new(V1), Path::new(V1), &["--json"]);
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["before"]["record_version"], 1);
    assert_eq!(document["cells"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_comparison_goes_to_a_file_and_never_over_a_record() {
    let [before, after] = directories(&measured(0.8));
    let place = TestDir::new();
    let out = place.path().join("comparison.md");
    let name = out.to_str().expect("text");
    let ended = compare(before.path(), after.path(), &["--markdown", "--out", name]);
    ended.expect_code(1);
    assert_eq!(ended.stdout, "");
    let written = fs::read_to_string(&out).expect("a file");
    let printed = compare(before.path(), after.path(), &["--markdown"]);
    assert_eq!(written, printed.stdout);

    for directory in [&before, &after] {
        let record = directory.path().join(file::SAMPLES);
        let whole = fs::read(&record).expect("samples");
        let name = record.to_str().expect("text");
        let ended = compare(before.path(), after.path(), &["--out", name]);
        refused(&ended, 2, "is part of the record");
        assert_eq!(fs::read(&record).expect("samples"), whole);
    }
    let nowhere = place.path().join("nowhere/x");
    let name = nowhere.to_str().expect("text");
    let ended = compare(before.path(), after.path(), &["--out", name]);
    refused(&ended, 3, "make its directory first");
}

#[test]
fn only_one_form_at_a_time() {
    let ended = run(&mut wirecost([
        "compare",
        "a",
        "b",
        "--markdown",
        "--junit",
    ]));
    refused(&ended, 2, "cannot be used with");
}

/// As little as can be compared.
const SHORT: &str = "\
name: short
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: none
offload: none
repeat: { rounds: 3, seconds: 0.4, warmup: 0.05, worth: 50% }
";

fn against(place: &TestDir, plan: &Path, out: &str, earlier: &Path) -> Command {
    let mut command = place.run_command(plan, out);
    command.arg("--against").arg(earlier);
    command
}

#[test]
fn what_a_run_is_to_be_compared_with_is_read_before_it_starts() {
    let place = TestDir::new();
    let plan = place.plan(SHORT);
    let nowhere = place.path().join("nowhere");
    let ended = run(&mut against(&place, &plan, "out", &nowhere));
    refused(&ended, 2, "there is no directory");
    // Another line, and no cell in common.
    let other = fixture::write(&measured(1.0));
    let ended = run(&mut against(&place, &plan, "out", other.path()));
    refused(&ended, 2, "nothing to compare with in");
    assert!(!place.path().join("out").exists());
    let ended = run(place.run_command(&plan, "out").args(["--fail-on", "loses"]));
    refused(&ended, 2, "--against");
}

/// The record of a run, every sample of it this much faster.
fn faster(place: &TestDir, from: &str, times: f64) -> PathBuf {
    let directory = place.path().join("faster");
    fs::create_dir(&directory).expect("a directory");
    let from = place.path().join(from);
    for name in [file::RUN, file::END, file::PLAN] {
        fs::copy(from.join(name), directory.join(name)).expect("copied");
    }
    let record = Record::read(&from).expect("a record");
    let lines = record.samples.into_iter().map(|mut sample| {
        let stream = sample.loads[0].stream.as_mut().expect("a load");
        stream.bytes = (stream.bytes as f64 * times) as u64;
        serde_json::to_string(&sample).expect("JSON") + "\n"
    });
    let lines: String = lines.collect();
    fs::write(directory.join(file::SAMPLES), lines).expect("written");
    directory
}

#[test]
fn a_run_is_measured_and_compared_in_one_go() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(SHORT);
    run(&mut place.run_command(&plan, "first")).expect_code(0);

    // The same again: throughput is held by the line, and nothing is known of the rest.
    let first = place.path().join("first");
    let mut again = against(&place, &plan, "second", &first);
    let ended = run(again.args(["--fail-on", "never", "--json"]));
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["outcome"], "complete");
    let comparison = &document["comparison"];
    // On a machine that others use it says so instead.
    let doubtful = ["before", "after"].map(|run| comparison[run]["trust"]["level"] == "doubtful");
    let conclusion = if doubtful.contains(&true) {
        "cannot_tell"
    } else {
        "no_regression"
    };
    assert_eq!(comparison["conclusion"], conclusion);
    assert_eq!(comparison["cells"].as_array().map(Vec::len), Some(2));
    let apart = compare(
        &first,
        &place.path().join("second"),
        &["--fail-on", "never", "--json"],
    );
    assert_eq!(apart.document()["cells"], comparison["cells"]);

    // Ten times as fast before: that is a regression, unless others use the machine, which is no success to `--strict`.
    let faster = faster(&place, "first", 10.0);
    let ended = run(against(&place, &plan, "third", &faster).arg("--strict"));
    ended.expect_code(1);
    for words in ["Record:", "Other differences"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let concluded = ["Regression:", "Cannot tell:"].map(|words| ended.stdout.contains(words));
    assert!(concluded.contains(&true), "{ended:#?}");
}
