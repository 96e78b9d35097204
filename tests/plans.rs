//! Where plans come from: the built-in ones, files good and bad, standard input, the schema, the
//! dry run. None of it needs a privilege or a lab.

use std::fs::{self, File};
use std::path::Path;

use crate::common::{Ended, TestDir, run, wirecost};
use serde_json::Value;

/// A plan of four cells, one of them excluded.
const FOUR: &str = "\
name: four
underlay: { mtu: 9000 }
guest_mtu: [1500, max]
encapsulation: [none, vxlan]
exclude: [{ encapsulation: vxlan, guest_mtu: 1500 }]
repeat: { rounds: 2, seconds: 0.5, warmup: 0.1 }
";

fn dry_run(place: &TestDir, arguments: &[&str]) -> Ended {
    let mut command = wirecost(["run", "--dry-run"]);
    run(command.args(arguments).current_dir(place.path()))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("directory");
    entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn the_built_in_plans_are_listed_with_what_they_take() {
    let ended = run(&mut wirecost(["plans"]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    assert!(
        ended
            .stdout
            .contains("jumbo-or-not  8 cells x 10 rounds, about "),
        "{ended:#?}"
    );
    let document = run(&mut wirecost(["plans", "--json"])).document();
    assert_eq!(document["plans"][0]["name"], "jumbo-or-not");
    assert_eq!(document["plans"][0]["cells"], 8);
    assert!(document["plans"][0].get("text").is_none());
}

#[test]
fn a_built_in_plan_is_printed_as_it_is_shipped_and_can_be_given_back() {
    let place = TestDir::new();
    let shipped = include_str!("../plans/jumbo-or-not.yaml");
    let ended = run(&mut wirecost(["plans", "jumbo-or-not"]));
    ended.expect_code(0);
    assert_eq!(ended.stdout, shipped);
    fs::write(place.path().join("mine.yaml"), &ended.stdout).expect("saved");
    dry_run(&place, &["mine.yaml"]).expect_code(0);

    let document = run(&mut wirecost(["plans", "jumbo-or-not", "--json"])).document();
    assert_eq!(document["text"], shipped);
}

#[test]
fn an_unknown_built_in_plan_is_told_the_nearest() {
    let ended = run(&mut wirecost(["plans", "jumbo_or_knot"]));
    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    for words in [
        "no built-in plan jumbo_or_knot",
        "did you mean jumbo-or-not?",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
    let ended = run(&mut wirecost(["run", "plans/jumbo-or-not.yml"]));
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("did you mean jumbo-or-not?"),
        "{ended:#?}"
    );
}

#[test]
fn the_schema_is_one_json_document_that_names_its_version() {
    let ended = run(&mut wirecost(["schema"]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    let document = ended.document();
    assert_eq!(document["title"], "Wirecost plan");
    let comment = document["$comment"].as_str().unwrap_or_default();
    assert!(comment.contains(env!("CARGO_PKG_VERSION")), "{comment}");
}

#[test]
fn a_dry_run_shows_cells_order_and_time_and_makes_nothing() {
    let place = TestDir::new();
    place.plan(FOUR);
    let [plan] = &names(place.path())[..] else {
        panic!("one file")
    };
    let ended = dry_run(&place, &[plan, "--seed", "7", "--out", "new"]);
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(names(place.path()), std::slice::from_ref(plan));
    let page = ended
        .stdout
        .lines()
        .filter(|line| !line.starts_with("Host a on") && !line.starts_with("Both hosts"));
    insta::assert_snapshot!(page.collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_document_of_a_dry_run_holds_every_round_and_where_the_seed_is_from() {
    let place = TestDir::new();
    let plan = place.plan(FOUR);
    let plan = plan.to_str().expect("text");
    let given = dry_run(&place, &[plan, "--json", "--seed", "7"]).document();
    let counts = ["combinations", "excluded", "collapsed", "rounds"];
    assert_eq!(
        counts.map(|name| given[name].as_u64()),
        [4, 1, 0, 2].map(Some)
    );
    assert_eq!(
        (&given["seed"], &given["seed_source"]),
        (&7.into(), &"option".into())
    );
    assert_eq!(given["cells"][2]["guest_mtu"], 8950);
    let sorted = |round: &Value| {
        let cells = round.as_array().expect("a round").iter();
        let mut cells: Vec<u64> = cells.filter_map(Value::as_u64).collect();
        cells.sort_unstable();
        cells
    };
    let order = given["order"].as_array().expect("rounds");
    assert_eq!(order.iter().map(sorted).collect::<Vec<_>>(), [[0, 1, 2]; 2]);
    let again = dry_run(&place, &[plan, "--json", "--seed", "7"]).document();
    assert_eq!(again, given);
    let random = dry_run(&place, &[plan, "--json"]).document();
    assert_eq!(random["seed_source"], "random");
    assert_eq!(names(place.path()).len(), 1);
}

#[test]
fn a_dry_run_refuses_what_a_run_refuses() {
    let place = TestDir::new();
    let plan = place.plan(FOUR);
    fs::create_dir(place.path().join("taken")).expect("directory");
    let ended = dry_run(&place, &[plan.to_str().expect("text"), "--out", "taken"]);
    ended.expect_code(2);
    assert!(ended.stderr.contains("taken exists already"), "{ended:#?}");
    let wrong = place.plan("name: x\nrepeat: { rounds: 0 }\n");
    dry_run(&place, &[wrong.to_str().expect("text")]).expect_code(2);
}

#[test]
fn a_dry_run_says_which_cells_no_machine_can_build_and_counts_no_time_for_them() {
    let place = TestDir::new();
    let text = |ebpf: &str| {
        format!(
            "name: x\nunderlay: {{ mtu: 9000 }}\nencapsulation: [none, gre]\ndatapath: [kernel{ebpf}]\n\
             repeat: {{ rounds: 2, seconds: 0.5, warmup: 0.1 }}\n"
        )
    };
    let path = place.plan(&text(", ebpf"));
    let plan = path.to_str().expect("text");
    let shown = dry_run(&place, &[plan]);
    shown.expect_code(0);
    let sentence = "Skipped: cell 3 (GRE and IP in IP are the kernel's devices alone).";
    assert!(shown.stdout.contains(sentence), "{shown:#?}");
    let document = dry_run(&place, &[plan, "--json"]).document();
    let reasons = |of: &Value| {
        let cells = of["cells"].as_array().expect("cells").iter();
        cells
            .map(|cell| cell["skipped"].is_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(&document), [false, false, false, true]);
    assert_eq!(
        (
            &document["expected"]["samples"],
            &document["expected"]["skipped"]
        ),
        (&8.into(), &2.into())
    );
    assert_eq!(document["expected"]["windows_s"], 3.0);
    let path = place.plan(&text(""));
    let shown = dry_run(&place, &[path.to_str().expect("text")]);
    assert!(!shown.stdout.contains("Skipped"), "{shown:#?}");
}

#[test]
fn a_plan_can_come_from_standard_input() {
    let place = TestDir::new();
    let given = |text: &str| {
        let path = place.plan(text);
        let input = File::open(path).expect("plan");
        let mut command = wirecost(["run", "-", "--dry-run"]);
        command.stdin(input).output().expect("the program runs")
    };
    let right = given(FOUR);
    assert_eq!(right.status.code(), Some(0));
    assert!(right.stdout.starts_with(b"four: 3 cells"), "{right:?}");
    let wrong = given("name: x\nguest-mtu: 1500\n");
    assert_eq!(wrong.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(errors.contains("<standard input>:2:1"), "{errors}");
}

#[test]
fn what_is_no_plan_file_says_what_it_is() {
    let place = TestDir::new();
    fs::write(place.path().join("binary"), b"name: \xff\n").expect("file");
    fs::write(place.path().join("huge"), vec![b'#'; (1 << 20) + 1]).expect("file");
    fs::create_dir(place.path().join("plans")).expect("directory");
    for (plan, words) in [
        (
            "binary",
            "binary:1:7: not UTF-8 text: byte 0xff at offset 6",
        ),
        ("huge", "huge is larger than 1 MiB"),
        ("plans", "plans is a directory"),
        ("binary/x", "reading the plan binary/x"),
    ] {
        let ended = dry_run(&place, &[plan]);
        ended.expect_code(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

#[test]
fn a_run_directory_named_after_a_built_in_plan_does_not_hide_it() {
    let place = TestDir::new();
    fs::create_dir(place.path().join("jumbo-or-not")).expect("directory");
    dry_run(&place, &["jumbo-or-not"]).expect_code(0);
}

#[test]
fn studies_run_between_hosts_as_plans_of_their_own_where_they_can() {
    let between = |study: &str| {
        let hosts = "netns:no-a=10.0.0.1,netns:no-b=10.0.0.2";
        run(&mut wirecost([
            "study",
            study,
            "--hosts",
            hosts,
            "--dry-run",
        ]))
    };
    for (study, shown) in [
        ("vswitchzero-jumbo-vxlan", "12 cells x 10 rounds"),
        ("ovn-geneve-vs-vxlan", "48 cells x 9 rounds"),
        ("multi-nic-vmotion", "18 cells x 10 rounds"),
        ("ip-storage-jumbo", "14 cells x 12 rounds"),
    ] {
        let ended = between(study);
        ended.expect_code(0);
        for words in [
            shown,
            "Between netns:no-a=10.0.0.1 and netns:no-b=10.0.0.2",
            "as fast as they can",
        ] {
            assert!(ended.stdout.contains(words), "{words}: {ended:?}");
        }
    }
    let refused = between("vsphere51-vxlan");
    refused.expect_code(2);
    assert_eq!(refused.stdout, "");
    // Without the frame that lines of an error have.
    let words = refused.stderr.split_whitespace();
    let said: Vec<&str> = words.filter(|word| *word != "│").collect();
    assert!(
        said.join(" ")
            .contains("compares guests behind a tunnel with guests without one"),
        "{refused:?}"
    );
}
