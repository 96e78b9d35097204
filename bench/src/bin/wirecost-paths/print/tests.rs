//! A table and a document of what was not measured.

use std::collections::BTreeMap;

use wirecost_faults::{Answer, ExpectedFinding, Finding, Path, catalogue};

use super::*;
use crate::run::Check;
use crate::tool::Tool;

fn measured(mtu: u32, seconds: &[f64]) -> Measured {
    let faults = catalogue().expect("a catalogue");
    let fault = faults.into_iter().find(|fault| fault.name == "switch-8950");
    let fault = fault.expect("switch-8950");
    let path = |from: &str, to: &str| Path {
        from: from.into(),
        to: to.into(),
        mtu: Some(mtu),
        kind: "silent".into(),
    };
    let finding = |expected: &ExpectedFinding| Finding {
        id: expected.id.clone(),
        host: expected.at.clone(),
        device: expected.device.clone(),
        evidence: String::new(),
        fix: Vec::new(),
    };
    let findings: Vec<_> = fault.expect.findings.iter().map(finding).collect();
    let check = |seconds: &f64| Check {
        seconds: *seconds,
        answer: Answer {
            exit: Some(1),
            paths: vec![path("a", "b"), path("b", "a")],
            findings: findings.clone(),
            seconds: *seconds,
        },
    };
    let result = ToolResult {
        mtu: Some(9000),
        seconds: 91.0,
        exit: Some(0),
    };
    Measured {
        fault,
        checks: seconds.iter().map(check).collect(),
        others: BTreeMap::from([(Tool::Tracepath, vec![[result.clone(), result]])]),
    }
}

#[test]
fn a_median_lies_between() {
    assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    assert_eq!(
        median(vec![4.0, 1.0, 2.0, 3.0]).to_bits(),
        2.5_f64.to_bits()
    );
    assert!(median(Vec::new()).is_nan());
}

#[test]
fn a_table_says_who_was_right_and_after_how_long() {
    let text = text(&[measured(8950, &[0.1, 0.2, 0.12])], 0.25);
    assert_eq!(
        text,
        "switch-8950: 8950 / 8950\n  \
         wirecost check 8950 / 8950   right    0.120 s (0.100 to 0.200, 3 runs), within 0.25 s\n  \
         tracepath      9000 / 9000   wrong   91.000 s (91.000 to 91.000, 2 runs), exit 0 / 0\n"
    );
}

#[test]
fn a_wrong_answer_and_a_slow_one_are_not_good() {
    assert!(measured(8950, &[0.2]).is_good(0.25));
    assert!(!measured(8950, &[0.3]).is_good(0.25));
    assert!(!measured(9000, &[0.2]).is_good(0.25));
    assert!(!measured(8950, &[]).is_good(0.25), "nothing was measured");
    let told = text(&[measured(9000, &[0.3, 0.3])], 0.25);
    assert!(
        told.contains("WRONG 2 times") && told.contains("NOT within 0.25 s"),
        "{told}"
    );
    let document = document(&[measured(9000, &[0.2])], 0.25);
    assert_eq!(document["networks"][0]["good"], false);
    assert_eq!(
        document["networks"][0]["others"]["tracepath"][0]["right"],
        false
    );
}
