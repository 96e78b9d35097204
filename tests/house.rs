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
    ("meter", &["model"]),
    ("netbuild", &["model", "sys", "wire"]),
    ("traffic", &["model", "sys"]),
    (
        "agent",
        &[
            "meter", "model", "netbuild", "pmtu", "sys", "traffic", "wire",
        ],
    ),
    // Tries what labs are made of with the code that makes them; an agent can run it elsewhere.
    ("doctor", &["meter", "netbuild", "sys"]),
    ("run", &["agent", "model", "stats"]),
    ("report", &["model", "stats", "wire"]),
    // `wirecost overhead` is arithmetic and nothing else: no run, no record.
    (
        "cli",
        &[
            "agent", "doctor", "model", "plan", "report", "run", "sys", "wire",
        ],
    ),
    ("bench", &["agent", "model", "run", "stats"]),
];

/// Rooms that do no I/O: their sources name none of the standard library's ways to it.
const PURE: &[&str] = &["model", "wire", "stats", "pmtu", "plan"];
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
    let manifest = "[package]\nname = \"wirecost-x\"\n[dependencies]\nwirecost-run.workspace = true\n\
                    wirecost-sys = { path = \"../sys\" }\nserde = \"1\"\n[dev-dependencies]\nwirecost-plan.workspace = true\n";
    assert_eq!(
        used(manifest),
        BTreeSet::from(["run".to_owned(), "sys".to_owned()])
    );
}
