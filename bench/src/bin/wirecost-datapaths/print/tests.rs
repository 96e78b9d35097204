use std::collections::BTreeMap;

use super::*;
use crate::comparison::tests::{compared, row};
use crate::measure;

fn report() -> Report {
    let row = row();
    let shown = compared(&[(1.05, 0.9), (1.06, 0.91), (1.07, 0.9)]);
    let mut missed = compared(&[(0.95, 1.2), (0.96, 1.21), (0.96, 1.2)]);
    missed.disturbed_pairs = 2;
    missed.missing = Some("round 4: the path was lost".to_owned());
    let what = [
        ComparisonOutcome::Measured(Box::new(shown)),
        ComparisonOutcome::Measured(Box::new(missed)),
    ];
    let comparisons = row
        .pairs
        .iter()
        .zip(what)
        .map(|(&[ours, other], what)| measure::Compared { ours, other, what })
        .collect();
    let result = |name: &str, comparisons| RowResult {
        name: name.to_owned(),
        bound: row.bound,
        plan: "name: x\n".to_owned(),
        devices: BTreeMap::new(),
        comparisons,
    };
    let [ours, other] = row.pairs[0];
    let absent = measure::Compared {
        ours,
        other,
        what: ComparisonOutcome::CannotBeBuilt("vxlan by ovs: there is no Open vSwitch".to_owned()),
    };
    Report {
        format: 1,
        machine: Some(measure::Machine {
            kernel: "6.18".to_owned(),
            cpu_model: "a CPU".to_owned(),
            cores: Cores::Split,
            cpus: [("a".to_owned(), vec![0]), ("b".to_owned(), vec![1])].into(),
        }),
        pairs: 3,
        seconds: 4.0,
        warmup: 0.3,
        seed: 7,
        rows: vec![
            result(&row.name, comparisons),
            RowResult {
                bound: None,
                ..result("absent", vec![absent])
            },
        ],
    }
}

#[test]
fn the_table_fits_into_a_hundred_columns() {
    let text = text(&report());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn markdown_has_a_line_for_each_comparison() {
    insta::assert_snapshot!(markdown(&report()));
}

#[test]
fn the_document_holds_every_pair() {
    let document = document(&report());
    let first = &document["rows"][0]["comparisons"][0];
    assert_eq!(first["ours"]["datapath"], "ebpf");
    assert_eq!(first["measured"]["pairs"].as_array().map(Vec::len), Some(3));
    assert_eq!(first["measured"]["judgement"]["reached"], true);
    let absent = &document["rows"][1]["comparisons"][0]["cannot-be-built"];
    assert_eq!(absent, "vxlan by ovs: there is no Open vSwitch");
}

#[test]
fn what_was_not_shown_does_not_hold_and_what_nobody_judges_does() {
    let mut report = report();
    assert!(!report.holds());
    report.rows[0].comparisons.pop();
    assert!(report.holds());
    report.rows[1].bound = report.rows[0].bound;
    assert!(!report.holds());
}
