//! What other programs read: failures as JSON, figures with their units, two loads compared, formats of other tools;
//! and a standard output that takes nothing.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{
    Ended, TestDir, is_root, lock_exclusive, program, run, skip, succeeds, wirecost,
};
use crate::fixture;
use crate::pair::Pair;
use serde_json::{Value, json};
use wirecost_model::plan::Cores;

/// Checks a document against what `wirecost schema NAME` prints.
#[track_caller]
fn fits(name: &str, document: &Value) {
    let printed = run(&mut wirecost(["schema", name]));
    printed.expect_code(0);
    let validator = jsonschema::validator_for(&printed.document()).expect("a schema");
    let wrong: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The error of a command that failed as it should.
#[track_caller]
fn error(ended: &Ended, code: i32, kind: &str) -> (String, Option<String>) {
    ended.expect_code(code);
    let document = ended.document();
    fits("error", &document);
    let error = &document["error"];
    assert_eq!(error["kind"], kind, "{ended:#?}");
    assert!(!ended.stderr.is_empty(), "people are told, too: {ended:#?}");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    (
        text(&error["message"]).expect("a message"),
        text(&error["fix"]),
    )
}

/// Arguments, exit code, kind of error, and words of its message.
type Case = (&'static [&'static str], i32, &'static str, &'static str);

const FAILURES: &[Case] = &[
    (
        &["run", "no-such-plan", "--json"],
        2,
        "plan",
        "no plan no-such-plan",
    ),
    (
        &["run", "--out", "empty", "--json"],
        2,
        "usage",
        "exists already",
    ),
    (
        &["run", "--out", "empty", "--dry-run", "--json"],
        2,
        "usage",
        "exists already",
    ),
    (
        &["run", "--against", "gone", "--json"],
        2,
        "record",
        "no directory gone",
    ),
    (
        &["report", "gone", "--json"],
        2,
        "record",
        "no directory gone",
    ),
    (
        &["report", "empty", "--json"],
        2,
        "record",
        "not a run directory",
    ),
    (
        &["compare", "gone", "away", "--json"],
        2,
        "record",
        "no directory away",
    ),
    (
        &["compare", "file", "empty", "--json"],
        2,
        "usage",
        "is a file",
    ),
    (
        &["compare", "file", "newer", "--json"],
        2,
        "record",
        "reads up to 1",
    ),
    (
        &["load", "netns:wct-gone", "local", "--json"],
        3,
        "host",
        "wct-gone",
    ),
    (
        &[
            "load", "local", "local", "tcp-rr", "--rate", "fast", "--json",
        ],
        2,
        "usage",
        "`fast`",
    ),
    (
        &["check", "netns:wct-gone", "local", "--json"],
        3,
        "host",
        "wct-gone",
    ),
    (
        &["check", "local", "local", "--simulate", "--json"],
        2,
        "usage",
        "--simulate",
    ),
    (
        &["clean", "--host", "netns:wct-gone", "--json"],
        3,
        "host",
        "wct-gone",
    ),
    (
        &["plans", "jumbo", "--json"],
        2,
        "usage",
        "no built-in plan jumbo",
    ),
    (&["overhead", "vxlun", "--json"], 2, "usage", "vxlun"),
    (&["tunnel", "up", "vxlun", "--json"], 2, "usage", "vxlun"),
    (&["doctor", "--jsn", "--json"], 2, "usage", "'--jsn'"),
];

#[test]
fn every_command_that_fails_prints_one_document_with_the_same_exit_code() {
    let place = TestDir::new();
    fs::write(place.path().join("file"), "{}").expect("file");
    fs::write(place.path().join("newer"), "{\"format\": 99}").expect("file");
    fs::create_dir(place.path().join("empty")).expect("directory");
    for (arguments, code, kind, words) in FAILURES {
        let ended = run(wirecost(arguments.iter().copied()).current_dir(place.path()));
        let (message, fix) = error(&ended, *code, kind);
        assert!(message.contains(words), "{arguments:?}: {message}");
        assert!(fix.is_some(), "{arguments:?}: what to do? {message}");
    }
    let ended = run(wirecost(["tunnel", "down", "nope", "--json"]).current_dir(place.path()));
    error(&ended, 3, "machine");
    // Without it, and behind `--`, there is none.
    for arguments in [&["report", "gone"][..], &["report", "--", "--json"]] {
        let ended = run(wirecost(arguments.iter().copied()).current_dir(place.path()));
        ended.expect_code(2);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn every_mistake_of_a_plan_is_a_line_of_the_message_and_has_its_fix() {
    let place = TestDir::new();
    let plan = place.plan("name: x\nofload: none\nrepeat: { rounds: 0 }\n");
    let ended = run(wirecost(["run", "--json"]).arg(&plan));
    let (message, fix) = error(&ended, 2, "plan");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].contains("plan.yaml:2:1: "), "{message}");
    let fix = fix.expect("a fix");
    assert!(
        fix.lines().count() == 2 && fix.contains("did you mean `offload`"),
        "{fix}"
    );
}

#[test]
fn a_long_line_of_a_plan_is_not_printed_whole() {
    let place = TestDir::new();
    let long = "x".repeat(100_000);
    for text in [
        format!("name: x\nencapsulation: {long}\n"),
        format!("name: x\n{long}: 1\n"),
        format!("name: {long}\n"),
        format!("name: x\nrepeat: {{ rounds: 0 }}  # {long}\n"),
        format!(
            "name: x\nencapsulation: [{}gre, nonsense]\n",
            "vxlan,   ".repeat(9_000)
        ),
    ] {
        let plan = place.plan(&text);
        let ended = run(wirecost(["run"]).arg(&plan));
        ended.expect_code(2);
        assert!(ended.stderr.contains("plan.yaml:"), "{:.300}", ended.stderr);
        // The last of these has an error for each level that stands twice.
        let most = if text.contains("nonsense") {
            100_000_000
        } else {
            3_000
        };
        let longest = ended.stderr.lines().map(str::len).max().unwrap_or_default();
        assert!(longest < 1_000, "a line of {longest} bytes");
        assert!(ended.stderr.len() < most, "{} bytes", ended.stderr.len());
    }
}

/// A record that nobody's run made.
fn recorded() -> tempfile::TempDir {
    fixture::write(&fixture::run(3, Cores::Split))
}

/// The same with factors that have the names of other labels.
fn recorded_with_taken_names() -> tempfile::TempDir {
    let mut run = fixture::run(3, Cores::Split);
    fixture::also_vary(&mut run, &["load", "estimate"]);
    fixture::write(&run)
}

/// Runs a line of sh with the program as `$0` and a run directory as `$1`.
fn shell(line: &str, directory: &Path) -> Ended {
    let mut command = Command::new("sh");
    run(command.args(["-c", line]).arg(program()).arg(directory))
}

#[test]
fn what_cannot_be_printed_is_said_and_is_no_success() {
    let directory = recorded();
    for (line, words) in [
        ("\"$0\" report \"$1\" >&-", "it is closed"),
        ("\"$0\" report --json \"$1\" >&-", "it is closed"),
        ("\"$0\" report \"$1\" >/dev/full", "No space left"),
        ("\"$0\" --help >/dev/full", "No space left"),
        ("\"$0\" plans >&-", "it is closed"),
    ] {
        let ended = shell(line, directory.path());
        ended.expect_code(3);
        assert!(ended.stderr.contains(words), "{line}: {ended:#?}");
        assert!(
            ended.stderr.contains("the result is lost"),
            "what is lost: {ended:#?}"
        );
        assert!(
            ended.stderr.contains("write it to another place"),
            "{ended:#?}"
        );
    }
    // To /dev/null on purpose.
    for line in [
        "\"$0\" report \"$1\" >/dev/null",
        "\"$0\" report \"$1\" 1<>/dev/null",
    ] {
        let ended = shell(line, directory.path());
        ended.expect_code(0);
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn promtool_takes_the_gauges_of_a_run() {
    let found = succeeds(Command::new("promtool").arg("--version"));
    if !found {
        skip("there is no promtool (Debian: prometheus)");
        return;
    }
    for directory in [recorded(), recorded_with_taken_names()] {
        let printed = run(wirecost(["report", "--openmetrics"]).arg(directory.path()));
        printed.expect_code(0);
        let mut child = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(printed.stdout.as_bytes()).expect("read");
        drop(input);
        let output = child.wait_with_output().expect("ended");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}

/// `wirecost load --json` in rounds, kept as a file of the place.
fn measured(place: &TestDir, pair: &Pair, name: &str, more: &[&str]) -> Value {
    let [a, b] = [&pair.a, &pair.b].map(|name| format!("netns:{name}"));
    let short = ["--time", "1s", "--warmup", "0.5s", "--json"];
    let ended = run(wirecost(["load", &a, &b]).args(more).args(short));
    ended.expect_code(0);
    let mut document = ended.document();
    // Where all samples are marked, by other programs or by steal, nothing can be compared.
    for sample in document["samples"].as_array_mut().into_iter().flatten() {
        sample["marks"] = json!([]);
    }
    fs::write(place.path().join(name), document.to_string()).expect("file");
    document
}

#[test]
fn a_load_in_rounds_has_figures_with_intervals_and_is_compared_with_another() {
    if !is_root() {
        return;
    }
    let _alone = lock_exclusive();
    let (place, pair) = (TestDir::new(), Pair::new("rounds"));
    let one = measured(&place, &pair, "one.json", &["tcp-stream"]);
    fits("load", &one);
    let figures = &one["loads"][0]["figures"];
    let gbit = figures["gbit_per_s"].as_f64().expect("a figure");
    let same = one["loads"][0]["stream"]["gbps"]
        .as_f64()
        .expect("a figure");
    assert!((gbit / same - 1.0).abs() < 1e-6, "{gbit} {same}");
    assert!(figures["cpu_percent_per_gbit"].as_f64().expect("a figure") > 0.0);
    assert!(one["loads"][0]["spread"].is_null());

    // A slow path before, and a faster one after; without a rate the load's own threads would be the limit.
    let paced = |name: &str, rate: &str| {
        let options = ["tcp-stream", "--rate", rate, "--rounds", "3"];
        measured(&place, &pair, name, &options)
    };
    let before = paced("before.json", "100mbit");
    let after = paced("after.json", "1gbit");
    for document in [&before, &after] {
        fits("load", document);
        assert_eq!(document["samples"].as_array().map(Vec::len), Some(3));
        let spread = &document["loads"][0]["spread"]["gbit_per_s"];
        assert_eq!(spread["n"], 3);
        let end = |name: &str| spread[name].as_f64().expect("an end");
        assert!(
            end("low") <= end("mean") && end("mean") <= end("high"),
            "{spread}"
        );
    }
    let compare = |files: [&str; 2], form: &str| {
        run(wirecost(["compare", form])
            .args(files)
            .current_dir(place.path()))
    };
    let better = compare(["before.json", "after.json"], "--json");
    better.expect_code(0);
    // Of CPU and latency three short rounds on a busy machine may tell nothing: no conclusion about all figures.
    let document = better.document();
    let figure = &document["cells"][0]["figures"][0];
    assert_eq!(figure["metric"], "throughput");
    assert!(
        figure["ratio"].as_f64().expect("a ratio") > 2.0,
        "{figure:#}"
    );
    let differs = document["differences"].as_array().expect("a list");
    assert_eq!(
        differs[0]["key"], "loads.tcp-stream.rate.bits-per-second",
        "{differs:#?}"
    );
    let worse = compare(["after.json", "before.json"], "--markdown");
    worse.expect_code(1);
    let single = compare(["one.json", "after.json"], "--json");
    single.expect_code(0);
    assert!(single.stdout.contains("--rounds 5"), "{single:#?}");
}
