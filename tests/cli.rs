//! The command line: exit codes and texts of everything that needs no lab.

#[allow(dead_code, reason = "each test program uses its part")]
mod common;

use std::fs;

use common::{Place, run, wirecost};

#[test]
fn help_names_the_commands_for_people() {
    let ended = run(&mut wirecost(["--help"]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    insta::assert_snapshot!(ended.stdout, @"
    Should we run jumbo frames, which overlay encapsulation, which offloads? Measures it

    Usage: wirecost <COMMAND>

    Commands:
      run          Build the networks of a plan, measure them, and say what pays
      report       Print the result of a run again, from its record alone
      clean        End agents whose run is gone, and say which
      completions  Print a script that lets a shell complete `wirecost`
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}

#[test]
fn help_of_run_says_what_the_exit_codes_mean() {
    let ended = run(&mut wirecost(["run", "--help"]));
    ended.expect_code(0);
    insta::assert_snapshot!(ended.stdout, @"
    Build the networks of a plan, measure them, and say what pays

    Usage: wirecost run [OPTIONS] [PLAN]

    Arguments:
      [PLAN]  A plan file, or the name of a built-in plan [default: jumbo-or-not]

    Options:
      -o, --out <DIR>      The run directory, which must not exist [default: wirecost-runs/NAME-TIME]
          --seed <NUMBER>  Seed of the random order of cells [default: the plan's, or a random one;
                           recorded]
          --json           Print the result as one JSON document
      -h, --help           Print help

    Examples:
      wirecost run                             the built-in plan
      wirecost run lan.yaml --out before       a plan of your own, recorded in before/
      wirecost run lan.yaml --json > lan.json  the result for a program

    Exit codes: 0 measured, 2 the plan or the command line is wrong, 3 the run could not be completed
    (what was measured is in the run directory).
    ");
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
        ended.stderr.contains("Usage: wirecost <COMMAND>"),
        "{ended:#?}"
    );
}

#[test]
fn a_missing_plan_names_the_plans_that_are_built_in() {
    let place = Place::new();
    let ended = run(wirecost(["run", "no-such-plan"]).current_dir(place.path()));
    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    for words in ["no plan no-such-plan", "jumbo-or-not"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

#[test]
fn every_mistake_in_a_plan_is_shown_at_once_and_nothing_is_made() {
    let place = Place::new();
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
        assert_eq!(ended.stdout, "");
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
    let place = Place::new();
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

#[test]
fn an_existing_run_directory_is_never_written_over() {
    let place = Place::new();
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
