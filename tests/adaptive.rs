//! Adaptive runs, in a lab.

use crate::common::{
    Record, TestDir, lab_can_be_built, lock_exclusive, lock_shared, run, wirecost,
};
use wirecost_model::record::{Outcome, StopReason};

/// Two cells that hardly differ on a line that sets their pace.
fn plan(repeat: &str) -> String {
    format!(
        "name: until\nunderlay: {{ rate: 1gbit }}\nguest_mtu: [1450, 1500]\noffload: none\n\
         repeat: {{ seconds: 0.2, warmup: 0.05, {repeat} }}\n"
    )
}

/// Runs a plan to its end, and returns its record and its result.
fn record(repeat: &str) -> (Record, serde_json::Value) {
    let place = TestDir::new();
    let path = place.plan(&plan(repeat));
    let out = place.path().join("out");
    let ended = run(place.run_command(&path, "out").arg("--json"));
    ended.expect_code(0);
    let again = run(wirecost(["report", "--json"]).arg(&out));
    again.expect_code(0);
    assert_eq!(again.stdout, ended.stdout, "the record alone says the same");
    let record = Record::read(&out).expect("a record");
    let end = record.end.as_ref().expect("an end");
    assert_eq!(end.outcome, Outcome::Complete);
    let rounds = ended.document()["rounds_done"].as_u64().expect("rounds");
    assert_eq!(record.samples.len() as u64, 2 * rounds, "no round is cut");
    (record, ended.document())
}

fn why(record: &Record) -> StopReason {
    let until = record.end.as_ref().and_then(|end| end.until);
    until.expect("it stopped by its rule").why
}

/// Where other programs use the cores no effect is comparable, none is waited for, and the run ends after its least
/// rounds: checks that, and returns whether it is so. The rule itself is tested on samples (`control`,
/// `adaptive/tests.rs`).
fn is_disturbed(record: &Record, result: &serde_json::Value, least: u64) -> bool {
    let asked = result["until"]["asked"].as_u64().expect("a number");
    if asked == 0 {
        assert_eq!(why(record), StopReason::Known);
        assert!(result["rounds_done"].as_u64() >= Some(least), "{result:#}");
        assert_eq!(result["trust"]["level"], "doubtful", "{result:#}");
    }
    asked == 0
}

#[test]
fn steady_cells_are_known_after_few_rounds() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();

    let (record, result) = record("precision: 10%, worth: 25%, max_rounds: 100, ask: throughput");

    assert_eq!(why(&record), StopReason::Known);
    assert!(record.samples.len() < 200);
    let until = &result["until"];
    assert_eq!(until["stopped"], "known");
    // None is asked for where other programs use the machine: cells that cannot be compared are not waited for.
    assert_eq!(until["known"], until["asked"]);
    assert_eq!(until["intervals"], "reported");
    assert_eq!(result["rounds_planned"], result["rounds_done"]);
}

#[test]
fn what_cannot_be_known_ends_by_the_most_rounds() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();

    // CPU time is told in steps of 10 ms: it is never that sure.
    let (record, result) =
        record("precision: 0.01%, worth: 0.01%, min_rounds: 4, max_rounds: 5, ask: cpu");

    if is_disturbed(&record, &result, 4) {
        return;
    }
    assert_eq!(why(&record), StopReason::MaxRounds);
    assert_eq!(result["rounds_done"], 5);
    assert_eq!(result["until"]["stopped"], "max-rounds");
}

#[test]
fn the_budget_ends_a_run_after_its_least_rounds() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();

    let (record, result) = record(
        "precision: 0.01%, worth: 0.01%, budget: 1s, min_rounds: 4, max_rounds: 1000, ask: cpu",
    );

    if is_disturbed(&record, &result, 4) {
        return;
    }
    assert_eq!(why(&record), StopReason::Budget);
    let rounds = result["rounds_done"].as_u64().expect("rounds");
    assert!((4..1000).contains(&rounds), "{rounds}");
}

#[test]
fn a_self_test_measures_the_first_cell_twice_in_every_round() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = plan("rounds: 3").replace("seconds: 0.2", "seconds: 0.5");
    let path = place.plan(&format!("{text}self_test: on\n"));

    let ended = run(place.run_command(&path, "out").arg("--json"));

    ended.expect_code(0);
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 3 * 3);
    for round in 0..3 {
        let of_round = record.samples.iter().filter(|sample| sample.round == round);
        let mut cells: Vec<u32> = of_round.map(|sample| sample.cell).collect();
        cells.sort_unstable();
        assert_eq!(cells, [0, 1, 2]);
    }
    let twins = |cell| {
        record
            .samples
            .iter()
            .filter(move |sample| sample.cell == cell)
    };
    for (first, twin) in twins(0).zip(twins(2)) {
        assert_eq!((&first.invalid, &twin.invalid), (&None, &None));
        assert_eq!(first.proofs[0].size, twin.proofs[0].size);
    }
    let result = ended.document();
    assert_eq!(result["rounds_done"], 3);
    assert_eq!(result["cells"].as_array().map(Vec::len), Some(2));
    assert_eq!(result["self_test"]["twin"]["valid"], 3);
    assert_eq!(result["self_test"]["metrics"][0]["metric"], "throughput");
}

#[test]
fn a_dry_run_tells_the_rounds_that_it_may_take_and_what_that_assumes() {
    let place = TestDir::new();
    let path = place.plan(&plan("precision: 2%"));
    let text = run(wirecost(["run", "--dry-run", "--seed", "1"]).arg(&path));
    text.expect_code(0);
    for words in ["6 to 60 rounds, adaptive", "the time above assumes 3%"] {
        let one_line = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(words), "{text:#?}");
    }
    let json = run(wirecost(["run", "--dry-run", "--json", "--seed", "1"]).arg(&path));
    let document = json.document();
    let rounds = document["expected"]["rounds"].as_u64().expect("rounds");
    let by_sd = document["until"]["rounds_by_sd"]
        .as_array()
        .expect("a list");
    assert!(
        by_sd.iter().any(|by| by["rounds"] == rounds),
        "{document:#}"
    );
    assert_eq!(document["rounds"], 60);
}
