//! The methods against values that `golden/methods.py` (SciPy, NumPy, diptest) and `golden/methods.R` (R)
//! worked out.

use serde_json::Value;
use wirecost_stats::validity::{MODIFIED_Z, dip, outliers, trend};
use wirecost_stats::{bootstrap_mean, compare, hodges_lehmann, holm, mann_whitney, rate, shift};

fn scipy(list: &str) -> Vec<Value> {
    entries(include_str!("../golden/methods.json"), list)
}

fn r(list: &str) -> Vec<Value> {
    entries(include_str!("../golden/methods_r.json"), list)
}

fn entries(text: &str, list: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(text).expect("JSON");
    golden[list].as_array().expect("a list").clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[track_caller]
fn assert_close(ours: f64, golden: &Value) {
    assert_within(ours, golden, 1e-9);
}

#[track_caller]
fn assert_within(ours: f64, golden: &Value, tolerance: f64) {
    let golden = number(golden);
    assert!(
        (ours - golden).abs() <= tolerance * golden.abs().max(1e-3),
        "{ours} is not {golden}"
    );
}

#[test]
fn the_exact_rank_sum_test_is_scipys() {
    for entry in scipy("mann_whitney") {
        let p = mann_whitney(&numbers(&entry["from"]), &numbers(&entry["to"]));
        assert_close(p.expect("values"), &entry["p"]);
    }
}

#[test]
fn the_rank_sum_test_with_ties_is_the_permutation_test() {
    for entry in scipy("mann_whitney_ties") {
        let p = mann_whitney(&numbers(&entry["from"]), &numbers(&entry["to"]));
        assert_close(p.expect("values"), &entry["p"]);
    }
}

#[test]
fn shifts_and_their_intervals_are_rs() {
    for entry in r("shifts") {
        let (from, to) = (numbers(&entry["from"]), numbers(&entry["to"]));
        let ours = shift(&from, &to, 0.05).expect("values");
        let interval = ours.interval.expect("enough");
        assert_close(ours.estimate, &entry["estimate"]);
        assert_close(interval.low, &entry["low"]);
        assert_close(interval.high, &entry["high"]);
        assert_close(mann_whitney(&from, &to).expect("values"), &entry["p"]);
    }
}

#[test]
fn hodges_lehmann_and_the_signed_rank_interval_are_rs() {
    for entry in r("signed_rank") {
        let ours = hodges_lehmann(&numbers(&entry["values"]), 0.05).expect("values");
        let interval = ours.interval.expect("enough");
        assert_close(ours.estimate, &entry["estimate"]);
        assert_close(interval.low, &entry["low"]);
        assert_close(interval.high, &entry["high"]);
    }
}

#[test]
fn welchs_interval_is_scipys_and_rs() {
    let mut all = r("welch");
    all.extend(scipy("welch"));
    for entry in all {
        let ours = compare(&numbers(&entry["from"]), &numbers(&entry["to"]));
        let interval = ours.interval.expect("enough");
        assert_close(ours.p.expect("enough"), &entry["p"]);
        assert_close(ours.freedom.expect("enough"), &entry["freedom"]);
        assert_close(interval.low, &entry["low"]);
        assert_close(interval.high, &entry["high"]);
    }
}

#[test]
fn holms_adjustment_is_rs() {
    for entry in r("holm") {
        let p: Vec<_> = numbers(&entry["p"]).into_iter().map(Some).collect();
        for (ours, golden) in holm(&p)
            .iter()
            .zip(entry["adjusted"].as_array().expect("list"))
        {
            assert_close(ours.expect("given"), golden);
        }
    }
}

#[test]
fn trends_are_scipys_with_ties_and_without() {
    for entry in scipy("trends").iter().chain(&scipy("tied_trends")) {
        let points: Vec<_> = numbers(&entry["x"])
            .into_iter()
            .zip(numbers(&entry["y"]))
            .collect();
        let ours = trend(&points).expect("points");
        assert_close(ours.tau, &entry["tau"]);
        assert_close(ours.p, &entry["p"]);
        assert_close(ours.slope, &entry["slope"]);
    }
}

#[test]
fn kendalls_exact_test_is_rs() {
    for entry in r("kendall") {
        let points: Vec<_> = numbers(&entry["y"])
            .into_iter()
            .enumerate()
            .map(|(i, y)| (i as f64, y))
            .collect();
        let ours = trend(&points).expect("points");
        assert_close(ours.tau, &entry["tau"]);
        assert_close(ours.p, &entry["p"]);
    }
}

#[test]
fn dips_are_those_of_the_diptest_package() {
    for entry in scipy("dips") {
        assert_close(
            dip(&numbers(&entry["values"])).expect("values"),
            &entry["dip"],
        );
    }
}

const SEEDS: u64 = 12;

#[test]
fn bootstrap_intervals_are_numpys_but_for_the_draws() {
    for entry in scipy("bootstraps") {
        let (low, high) = (number(&entry["low"]), number(&entry["high"]));
        // A seed's 4000 draws put an end some percent of the width off; those of many seeds do not.
        let values = numbers(&entry["values"]);
        let (mut ours_low, mut ours_high) = (0.0, 0.0);
        for seed in 0..SEEDS {
            let ours = bootstrap_mean(&values, 0.05, seed).expect("enough");
            ours_low += ours.low / SEEDS as f64;
            ours_high += ours.high / SEEDS as f64;
        }
        let tolerance = 0.02 * (high - low);
        assert!(
            (ours_low - low).abs() < tolerance && (ours_high - high).abs() < tolerance,
            "[{ours_low}, {ours_high}] is not {entry}"
        );
    }
}

#[test]
fn exact_intervals_of_counts_are_garwoods() {
    for entry in scipy("garwood") {
        let ours = rate(&[(entry["count"].as_u64().expect("a count"), 1.0)]).expect("exposure");
        assert_close(ours.interval.low, &entry["low"]);
        assert_close(ours.interval.high, &entry["high"]);
    }
}

#[test]
fn outliers_are_those_beyond_the_modified_z_score() {
    for entry in scipy("modified_z") {
        let expected: Vec<(usize, f64)> = numbers(&entry["z"])
            .into_iter()
            .enumerate()
            .filter(|(_, z)| z.abs() > MODIFIED_Z)
            .collect();
        let ours = outliers(&numbers(&entry["values"]));
        assert_eq!(ours.len(), expected.len(), "{entry}");
        for (ours, (index, z)) in ours.iter().zip(expected) {
            assert_eq!(ours.index, index);
            assert!((ours.z / z - 1.0).abs() < 1e-9);
        }
        assert!(
            !ours.is_empty(),
            "a golden case without an outlier shows nothing"
        );
    }
}
