//! The arrows of the house: who may depend on whom (docs/design.md). A new arrow is a decision, made here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room -> the rooms it may use. Every room is listed.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("wire", &["model"]),
    ("stats", &["model"]),
    ("pmtu", &[]),
    ("plan", &["model"]),
    ("sys", &[]),
    // pmtu's machines over sockets; the machines themselves stay without I/O.
    ("probe", &["pmtu", "sys"]),
    // Idle time in microseconds needs an interrupt to each core, and what a wake-up costs pinned threads.
    ("meter", &["model", "sys"]),
    // One connection for those who build networks; the audit has its own, for devices that no library knows.
    ("netlink", &[]),
    ("netbuild", &["model", "netlink", "sys", "wire"]),
    ("traffic", &["model", "sys"]),
    // Headers come from `wire`: what is written here and what a capture is read with are one and the same.
    // What an encapsulation is called and has is the plan's word for it, here as everywhere.
    ("vtep", &["model", "netlink", "sys", "wire"]),
    // An Open vSwitch of a lab host's own. What is in a Geneve header is `wire`'s, a kernel's datapath is asked for over
    // netlink, daemons that die with their host are `sys`'s.
    ("ovs", &["model", "netlink", "sys", "wire"]),
    // Which datapath a network has is the agent's to choose: netbuild makes devices, vtep programs on them.
    // Probes of a lab's guests and of hosts as they are: one prober, one responder (`probe`). A host's devices are read
    // where they are (`audit`), and what came of it travels as `check`'s reports.
    (
        "agent",
        &[
            "audit", "check", "meter", "model", "netbuild", "ovs", "pmtu", "probe", "sys",
            "traffic", "vtep", "wire",
        ],
    ),
    // Reads a host and judges what it read; an agent can run it elsewhere. Overheads are `wire`'s.
    ("audit", &["model", "sys", "wire"]),
    // What probes and audits mean, together: from reports, without I/O of its own. What guests can have over a path is
    // `wire`'s arithmetic.
    ("check", &["audit", "model", "pmtu", "wire"]),
    // Labs of faults from files, for the tests and the bench; the program itself has no part of it.
    ("faults", &["sys"]),
    // Tries what labs are made of with the code that makes them; an agent can run it elsewhere.
    ("doctor", &["meter", "model", "netbuild", "ovs", "sys"]),
    // `wirecost check`: agents report, `check` says what it means; an encapsulation is `wire`'s.
    ("control", &["agent", "check", "model", "stats", "wire"]),
    ("report", &["model", "stats", "wire"]),
    // `wirecost overhead` is arithmetic and nothing else: no run, no record.
    (
        "cli",
        &[
            "agent", "check", "control", "doctor", "model", "plan", "report", "sys", "wire",
        ],
    ),
    // Its own load runs in a process of its own in the guest, started as the peers beside it are. Records of runs are
    // read with what reads them for reports.
    (
        "bench",
        &[
            "agent", "control", "faults", "model", "report", "stats", "sys", "traffic",
        ],
    ),
];

/// Rooms that do no I/O: their sources name none of the standard library's ways to it.
const PURE: &[&str] = &["model", "wire", "stats", "pmtu", "plan", "check"];
const IO: &[&str] = &[
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
];

/// Rooms whose sources may switch `unsafe` on.
const UNSAFE: &[&str] = &["sys"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rooms() -> Vec<(String, PathBuf)> {
    let mut rooms: Vec<_> = fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("entry").path())
        .chain([root().join("bench")]) // the one room that is not part of the program
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            (
                path.file_name()
                    .expect("name")
                    .to_string_lossy()
                    .into_owned(),
                path,
            )
        })
        .collect();
    rooms.sort();
    rooms
}

/// The rooms that a manifest's `[dependencies]` name; tests may use what they like.
fn used(manifest: &str) -> BTreeSet<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.trim().strip_prefix("wirecost-"))
        .map(|rest| {
            rest.split(['.', ' ', '='])
                .next()
                .unwrap_or(rest)
                .to_owned()
        })
        .collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("directory") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_room_uses_only_the_rooms_its_arrows_allow() {
    for (room, path) in rooms() {
        let (_, allowed) = ARROWS
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("{room} has no line in ARROWS"));
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("manifest");
        for other in used(&manifest) {
            assert!(
                allowed.contains(&other.as_str()),
                "{room} must not use {other}"
            );
        }
    }
}

#[test]
fn pure_rooms_do_no_io() {
    for (room, path) in rooms()
        .into_iter()
        .filter(|(room, _)| PURE.contains(&room.as_str()))
    {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            let text = fs::read_to_string(file).expect("source");
            // What follows the test module is not the room's.
            let code = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            for way in IO {
                assert!(
                    !code.contains(way),
                    "{room} is pure, but {} names {way}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_is_switched_on_in_one_room_only() {
    for (room, path) in rooms()
        .into_iter()
        .filter(|(room, _)| !UNSAFE.contains(&room.as_str()))
    {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("source");
            assert!(!text.contains("unsafe_code"), "{room}: {}", file.display());
        }
    }
}

#[test]
fn the_manifest_reader_sees_rooms_however_they_are_written() {
    let manifest = "[package]\nname = \"wirecost-x\"\n[dependencies]\nwirecost-control.workspace = true\n\
                    wirecost-sys = { path = \"../sys\" }\nserde = \"1\"\n[dev-dependencies]\nwirecost-plan.workspace = true\n";
    assert_eq!(
        used(manifest),
        BTreeSet::from(["control".to_owned(), "sys".to_owned()])
    );
}

#[test]
fn every_room_obeys_the_lints_of_the_workspace() {
    for (room, path) in rooms() {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("manifest");
        let inherits = manifest.contains("\n[lints]\nworkspace = true\n");
        assert!(
            inherits,
            "{room}'s Cargo.toml needs [lints] workspace = true"
        );
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("manifest");
    for table in ["rust", "rustdoc", "clippy"] {
        let heading = format!("\n[workspace.lints.{table}]\n");
        assert!(workspace.contains(&heading), "no lints for {table}");
    }
}

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
