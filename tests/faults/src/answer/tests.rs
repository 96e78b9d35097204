//! Answers that are right, and wrong in one way each.

use serde_json::json;

use super::*;
use crate::read::parse;

const FILE: &str = "
about: Two hosts, and a guest whose veth is narrow.
wires: [{ ends: [a.eth0, b.eth0] }]
namespaces: { a: {}, b: {} }
check: [netns:a=10.0.0.1, netns:b=10.0.0.2]
expect:
  exit: 1
  paths:
    - { from: a, to: b, mtu: 1450, kind: silent }
    - { from: b, to: a, mtu: ~, kind: dead }
  findings:
    - { id: path-drops-silently, at: a }
    - { id: veth-ends-differ, at: b, device: eth0 }
  by_chance:
    - { id: few-flows, at: a }
";

fn fault() -> Fault {
    parse(std::path::Path::new("x.yaml"), FILE).expect("a fault")
}

fn document() -> Value {
    let finding = |id: &str, host: &str, device: Option<&str>| json!({ "id": id, "host": host, "device": device, "evidence": "seen", "fix": [], "severity": "error" });
    json!({
        "seconds": 0.2,
        "directions": [
            { "from": "netns:a", "to": "netns:b", "mtu": 1450, "kind": "silent" },
            { "from": "netns:b", "to": "netns:a", "mtu": null, "kind": "dead" },
        ],
        "findings": [
            finding("path-drops-silently", "netns:a", None),
            finding("veth-ends-differ", "netns:a (b)", Some("eth0")),
        ],
    })
}

fn differences(document: &Value) -> Vec<String> {
    let answer = Answer::read(Some(1), document).expect("a document");
    answer.differs_from(&fault())
}

#[test]
fn what_is_as_expected_has_no_difference_whoever_saw_it() {
    assert!(differences(&document()).is_empty());
    let mut with_chance = document();
    with_chance["findings"]
        .as_array_mut()
        .expect("a list")
        .push(
            json!({ "id": "few-flows", "host": "netns:a", "device": null, "evidence": "few", "fix": [] }),
        );
    assert!(differences(&with_chance).is_empty());
}

#[test]
fn each_difference_is_told() {
    let with = |pointer: &str, value: Value| {
        let mut document = document();
        *document.pointer_mut(pointer).expect("a value") = value;
        differences(&document)
    };
    for (pointer, value, said) in [
        (
            "/directions/0/mtu",
            json!(1449),
            "a to b: 1449 pass, silent; not 1450 pass, silent",
        ),
        ("/directions/1/from", json!("c"), "nothing about b to a"),
        (
            "/findings/0/id",
            json!("path-dead"),
            "not found: path-drops-silently a -",
        ),
        (
            "/findings/1/host",
            json!("netns:a"),
            "not found: veth-ends-differ b eth0",
        ),
        (
            "/findings/1/device",
            json!("eth1"),
            "found and not there: veth-ends-differ netns:a (b) eth1: seen",
        ),
    ] {
        let told = with(pointer, value);
        assert!(told.iter().any(|line| line == said), "{told:?}");
    }
    let answer = Answer::read(Some(0), &document()).expect("a document");
    assert_eq!(answer.differs_from(&fault()), ["exit code Some(0), not 1"]);
}

#[test]
fn a_finding_told_twice_is_one_too_many() {
    let mut twice = document();
    let findings = twice["findings"].as_array_mut().expect("a list");
    findings.push(findings[0].clone());
    assert_eq!(
        differences(&twice),
        ["found and not there: path-drops-silently netns:a -: seen"]
    );
}

#[test]
fn something_else_is_no_document_of_a_check() {
    let error = Answer::read(Some(0), &json!({ "findings": [] })).expect_err("no directions");
    assert!(error.contains("directions"), "{error}");
}
