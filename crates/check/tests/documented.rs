//! docs/check.md and the catalogue of findings tell of the same.

use std::collections::BTreeMap;

use wirecost_check::catalogue;

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md");
    std::fs::read_to_string(path).expect("docs/check.md")
}

/// What is below each heading of the form ### `id`.
fn sections(text: &str) -> BTreeMap<&str, &str> {
    text.split("\n### `")
        .skip(1)
        .map(|section| {
            let (id, rest) = section.split_once('`').expect("an id");
            (id, rest.split("\n## ").next().unwrap_or(rest))
        })
        .collect()
}

#[test]
fn every_finding_has_a_section_and_every_section_a_finding() {
    let text = document();
    let written: Vec<&str> = sections(&text).into_keys().collect();
    let mut known: Vec<&str> = catalogue().map(|kind| kind.id).collect();
    known.sort_unstable();
    assert_eq!(written, known);
}

#[test]
fn a_section_says_how_bad_it_is_how_it_is_proven_and_how_to_fix_it() {
    let text = document();
    let sections = sections(&text);
    for kind in catalogue() {
        let section = sections[kind.id];
        let severity = format!("Severity: {}.", kind.severity.word());
        for part in [severity.as_str(), "**Proven by**: ", "**Fix**: "] {
            assert!(section.contains(part), "{}: no {part}", kind.id);
        }
        assert!(section.len() > 150, "{}: {section}", kind.id);
    }
}
