//! The command line: exit codes and texts of everything that needs no lab.

use std::fs;
use std::process::Command;

use crate::common::{TestDir, program, run, wirecost};
use crate::fixture;
use wirecost_model::plan::Cores;

#[test]
fn help_names_the_commands_for_people() {
    let ended = run(&mut wirecost(["--help"]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn help_of_run_says_what_the_exit_codes_mean() {
    let ended = run(&mut wirecost(["run", "--help"]));
    ended.expect_code(0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn an_unknown_command_is_a_mistake_on_the_command_line() {
    let ended = run(&mut wirecost(["measure"]));
    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    assert!(
        ended.stderr.contains("unrecognized subcommand 'measure'"),
        "{ended:#?}"
    );
}

#[test]
fn no_command_at_all_shows_the_help() {
    let ended = run(&mut wirecost([]));
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("Usage: wirecost [OPTIONS] <COMMAND>"),
        "{ended:#?}"
    );
}

#[test]
fn a_missing_plan_names_the_plans_that_are_built_in() {
    let place = TestDir::new();
    let ended = run(wirecost(["run", "no-such-plan"]).current_dir(place.path()));
    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    for words in ["no plan no-such-plan", "jumbo-or-not"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

#[test]
fn every_mistake_in_a_plan_is_shown_at_once_and_nothing_is_made() {
    let place = TestDir::new();
    let plan = place.plan(
        "name: mistakes\n\
         underlay: { mtu: 9000, rate: fast }\n\
         guest_mtu: [1500, 100, 1500]\n\
         encapsulation: []\n\
         ofload: none\n\
         repeat: { rounds: 0 }\n",
    );
    for out in [None, Some("kept")] {
        let mut command = wirecost(["run", "--json"]);
        command
            .arg(&plan)
            .args(out.map(|name| format!("--out={name}")));
        let ended = run(command.current_dir(place.path()));
        ended.expect_code(2);
        assert_eq!(ended.document()["error"]["kind"], "plan");
        let errors = [
            "6 errors in",
            ":2:", // the rate
            ":3:", // an MTU too small, and one twice
            ":4:", // no encapsulation
            ":5:", // an unknown key
            ":6:", // no rounds
            "did you mean `offload`",
        ];
        for error in errors {
            assert!(ended.stderr.contains(error), "{error}: {}", ended.stderr);
        }
    }
    let left: Vec<_> = fs::read_dir(place.path()).expect("place").collect();
    assert_eq!(left.len(), 1, "only the plan is there: {left:?}");
}

#[test]
fn a_report_of_no_directory_and_of_no_run_says_what_to_give() {
    let place = TestDir::new();
    for (directory, words) in [
        ("gone", "there is no directory gone"),
        (".", "is not a run"),
    ] {
        let ended = run(wirecost(["report", directory]).current_dir(place.path()));
        ended.expect_code(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(words), "{ended:#?}");
        assert!(ended.stderr.contains("give the"), "what to do: {ended:#?}");
    }
}

/// A run directory made by nobody's run, with a plan of one's own.
fn recorded() -> tempfile::TempDir {
    fixture::write(&fixture::run(3, Cores::Split))
}

#[test]
fn a_report_comes_in_one_form_at_a_time() {
    let directory = recorded();
    for forms in [
        ["--html", "--json"],
        ["--csv", "--markdown"],
        ["--html", "--csv"],
    ] {
        let ended = run(wirecost(["report"]).arg(directory.path()).args(forms));
        ended.expect_code(2);
        assert_eq!(
            ended.stdout.is_empty(),
            !forms.contains(&"--json"),
            "{ended:#?}"
        );
        assert!(ended.stderr.contains("cannot be used with"), "{ended:#?}");
    }
}

#[test]
fn every_form_is_the_same_on_standard_output_and_in_a_file() {
    let directory = recorded();
    for (form, begin) in [
        ("--html", "<!DOCTYPE html>\n"),
        ("--markdown", "## jumbo-or-not"),
        ("--csv", "round,position,cell"),
        ("--json", "{\n"),
    ] {
        let printed = run(wirecost(["report", form]).arg(directory.path()));
        printed.expect_code(0);
        assert!(printed.stdout.starts_with(begin), "{form}");
        assert!(printed.stdout.ends_with('\n') && !printed.stdout.ends_with("\n\n"));
        assert_eq!(printed.stderr, "");
        let file = directory.path().join("out of wirecost");
        fs::write(&file, "something older").expect("written");
        let mut command = wirecost(["report", form, "--out"]);
        let written = run(command.arg(&file).arg(directory.path()));
        written.expect_code(0);
        assert_eq!(written.stdout + &written.stderr, "");
        let text = fs::read_to_string(&file).expect("a file");
        assert_eq!(text, printed.stdout, "{form}");
    }
    let names = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(
        names.count(),
        4,
        "the record, and the one file that was named"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_what_to_do() {
    let directory = recorded();
    for (file, words) in [
        ("gone/report.html", "make its directory first"),
        (".", "name a file in it"),
    ] {
        let mut command = wirecost(["report", "--html", "--out"]);
        let path = directory.path().join(file);
        let ended = run(command.arg(&path).arg(directory.path()));
        ended.expect_code(3);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains("cannot write"), "{ended:#?}");
        assert!(ended.stderr.contains(words), "{ended:#?}");
    }
}

#[test]
fn a_record_is_never_written_over_by_its_report() {
    let directory = recorded();
    for file in ["run.json", "samples.jsonl", "end.json", "plan.yaml"] {
        let before = fs::read(directory.path().join(file)).ok();
        let mut command = wirecost(["report", "--json", "--out"]);
        let path = directory.path().join(".").join(file);
        let ended = run(command.arg(&path).arg(directory.path()));
        ended.expect_code(2);
        assert!(ended.stderr.contains("part of the record"), "{ended:#?}");
        assert_eq!(fs::read(directory.path().join(file)).ok(), before);
    }
}

#[test]
fn a_reader_that_has_gone_has_read_enough_of_a_page() {
    let directory = recorded();
    let mut command = Command::new("sh");
    let script = "\"$0\" report --html \"$1\" | head -c 10";
    let ended = run(command
        .args(["-c", script])
        .arg(program())
        .arg(directory.path()));
    ended.expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("<!DOCTYPE ", "")
    );
}

#[test]
fn an_existing_run_directory_is_never_written_over() {
    let place = TestDir::new();
    let plan = place.plan("name: tiny\nrepeat: { rounds: 1, seconds: 0.05 }\n");
    fs::create_dir(place.path().join("out")).expect("directory");
    let treasure = place.path().join("out/run.json");
    fs::write(&treasure, "an earlier run").expect("file");

    let ended = run(&mut place.run_command(&plan, "out"));

    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("exists already"), "{ended:#?}");
    assert!(
        ended.stderr.contains("name a new directory with --out"),
        "{ended:#?}"
    );
    assert_eq!(
        fs::read_to_string(&treasure).expect("file"),
        "an earlier run"
    );
    assert_eq!(
        fs::read_dir(place.path().join("out"))
            .expect("directory")
            .count(),
        1
    );
}
