//! Against values that `golden/golden.py` worked out with `SciPy`.

use serde_json::Value;
use wirecost_stats::{order, paired_ratio, summary};

fn entries(list: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("../golden/golden.json")).expect("JSON");
    golden[list].as_array().expect("a list").clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|v| v.as_f64().expect("a number")).collect()
}

#[track_caller]
fn assert_close(ours: Option<f64>, golden: &Value) {
    let (ours, golden) = (ours.expect("a figure"), golden.as_f64().expect("a number"));
    assert!((ours / golden - 1.0).abs() < 1e-9, "{ours} is not {golden}");
}

#[test]
fn the_order_of_a_round_is_the_one_its_description_gives() {
    for entry in entries("orders") {
        let number = |key: &str| entry[key].as_u64().expect("a number");
        let ours = order(
            number("cells") as usize,
            number("round") as u32,
            number("seed"),
        );
        assert_eq!(serde_json::json!(ours), entry["order"], "{entry}");
    }
}

#[test]
fn paired_ratios_and_their_intervals_are_as_scipy_has_them() {
    for entry in entries("ratios") {
        let ours =
            paired_ratio(&numbers(&entry["from"]), &numbers(&entry["to"])).expect("positive");
        assert_close(ours.ratio, &entry["ratio"]);
        assert_close(ours.low, &entry["low"]);
        assert_close(ours.high, &entry["high"]);
    }
}

#[test]
fn summaries_are_as_scipy_has_them() {
    for entry in entries("summaries") {
        let ours = summary(numbers(&entry["values"])).expect("values");
        assert_close(Some(ours.mean), &entry["mean"]);
        assert_close(Some(ours.median), &entry["median"]);
        assert_close(ours.sd, &entry["sd"]);
        assert_close(ours.low, &entry["low"]);
        assert_close(ours.high, &entry["high"]);
    }
}
