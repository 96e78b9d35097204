//! Licences and sources of what is built here and comes from outside.

use std::collections::BTreeSet;
use std::fs;

use super::root;

/// The licences that deny.toml allows.
fn allowed_licences() -> BTreeSet<String> {
    let deny = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let list = deny
        .split("\nallow = [")
        .nth(1)
        .expect("a list of licences");
    let list = list.split(']').next().unwrap_or_default();
    list.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split(','))
        .map(|entry| entry.trim().trim_matches('"').to_owned())
        .filter(|licence| !licence.is_empty())
        .collect()
}

/// Whether a licence expression can be met with the allowed licences.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let mode = spdx::ParseMode {
        allow_slash_as_or_operator: true, // as in manifests of before 2018
        ..spdx::ParseMode::STRICT
    };
    let expression = spdx::Expression::parse_mode(expression, mode);
    expression.is_ok_and(|expression| {
        expression.evaluate(|requirement| allowed.contains(&requirement.to_string()))
    })
}

/// What cargo knows of everything that is built here: deny.toml's licences and sources, held
/// without cargo-deny and without the network. Duplicates and advisories are left to `make deny`.
#[test]
fn what_comes_from_outside_has_an_allowed_licence_and_comes_from_the_registry() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{output:?}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let used: BTreeSet<&str> = metadata["resolve"]["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let allowed = allowed_licences();
    assert!(allowed.contains("MIT"), "{allowed:?}");
    let packages = metadata["packages"].as_array().expect("packages");
    let outside = packages
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)))
        .filter(|package| package["source"].is_string());
    let (mut seen, mut wrong) = (0, Vec::new());
    for package in outside {
        let name = package["name"].as_str().expect("name");
        let source = package["source"].as_str().unwrap_or_default();
        assert!(
            source.starts_with("registry+"),
            "{name} comes from {source}"
        );
        let licence = package["license"].as_str().unwrap_or("(none)");
        if !is_met(licence, &allowed) {
            wrong.push(format!("{name} is under {licence}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "deny.toml does not allow it: {wrong:#?}");
    assert!(seen > 50, "only {seen} packages were looked at");
}

#[test]
fn a_licence_that_is_not_on_the_list_is_seen() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Unicode-3.0".to_owned()]);
    for met in [
        "MIT",
        "GPL-3.0-only OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for not in ["GPL-3.0-only", "MIT AND Zlib", "(none)", ""] {
        assert!(!is_met(not, &allowed), "{not}");
    }
}
