//! Files that are wrong: file and key are named.

use std::collections::BTreeSet;

use super::*;

const GOOD: &str = "about: A wire between two hosts, and nothing wrong.
wires:
  - { ends: [a.eth0, b.eth0] }
namespaces:
  a: { addresses: { eth0: [10.0.0.1/24] } }
  b: { addresses: { eth0: [10.0.0.2/24] } }
check: [netns:a=10.0.0.1, netns:b=10.0.0.2]
expect:
  exit: 0
  paths: [{ from: a, to: b, mtu: 1500, kind: device }]
  findings: []
";

#[track_caller]
fn refused(change: (&str, &str), words: &[&str]) {
    assert!(GOOD.contains(change.0), "{change:?}");
    let text = GOOD.replacen(change.0, change.1, 1);
    let error = parse(Path::new("catalogue/some.yaml"), &text).expect_err("wrong");
    let said = error.to_string();
    for word in ["catalogue/some.yaml"].iter().chain(words) {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_key_that_is_not_known_or_missing_or_of_another_kind_is_named_with_its_place() {
    refused(("wires:", "wire:"), &["wire", "line 2"]);
    refused(("ends:", "end:"), &["`end`", "line 3"]);
    refused(("{ addresses", "{ adresses"), &["adresses", "line 5"]);
    refused(("  exit: 0\n", ""), &["exit"]);
    refused(("exit: 0", "exit: none"), &["line 9"]);
    refused(("[a.eth0, b.eth0]", "[a.eth0]"), &["line 3"]);
    refused(("findings: []", "findings: [x"), &["line"]);
}

#[test]
fn what_does_not_fit_together_is_named_by_its_key() {
    refused(
        ("a.eth0", "c.eth0"),
        &["`wires[0].ends`", "no namespace `c`: there are a, b"],
    );
    refused(("a.eth0", "eth0"), &["`wires[0].ends`", "NAMESPACE.DEVICE"]);
    refused(
        ("b.eth0", "a.eth0"),
        &["`wires[0].ends`", "a has two devices eth0"],
    );
    refused(
        ("eth0: [10.0.0.1", "eth1: [10.0.0.1"),
        &[
            "`namespaces.a.addresses`",
            "a has no device `eth1`: it has eth0",
        ],
    );
    refused(("netns:b", "netns:c"), &["`check`", "no namespace `c`"]);
    refused(
        ("a: { addr", "a: { hidden: true, addr"),
        &["`check`", "a is hidden"],
    );
    refused(
        ("kind: device", "kind: divice"),
        &["`expect.paths[0].kind`", "silent"],
    );
    refused(("mtu: 1500", "mtu: ~"), &["`expect.paths[0].mtu`"]);
    refused(
        ("findings: []", "findings: [{ id: x, at: a, device: eth7 }]"),
        &["`expect.findings[0].device`", "no device `eth7`"],
    );
    refused(
        ("check:", "fault: [{ at: d, run: 'true' }]\ncheck:"),
        &["`fault[0].at`", "no namespace `d`"],
    );
    refused(
        (
            "check:",
            "equal_paths: { between: [a, b], members: 2, leading_to: [x, y] }\ncheck:",
        ),
        &["`equal_paths.between`", "a has to forward"],
    );
    refused(
        (
            "about: A wire between two hosts, and nothing wrong.",
            "about: x",
        ),
        &["`about`"],
    );
    refused(("check:", "not_yet: no\ncheck:"), &["`not_yet`"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read(Path::new("/none/such.yaml")).expect_err("not there");
    assert!(error.to_string().contains("/none/such.yaml"), "{error}");
}

#[test]
fn every_file_of_the_catalogue_is_good_and_no_two_are_the_same() {
    let faults = catalogue().unwrap_or_else(|error| panic!("{error}"));
    let abouts: BTreeSet<&str> = faults.iter().map(|fault| fault.about.as_str()).collect();
    assert_eq!(
        abouts.len(),
        faults.len(),
        "two files say the same of themselves"
    );
}
