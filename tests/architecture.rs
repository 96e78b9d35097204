//! What the structure of the sources must hold (docs/design.md): which crate may use which, no I/O in pure crates,
//! `unsafe` in one crate only, no files that import each other in a circle, typed errors in the agent, licences. A new
//! dependency is a decision, made here.

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/licences.rs"]
mod licences;
#[path = "architecture/paths.rs"]
mod paths;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and the crates that it may depend on. Every crate is listed.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("wire", &["model"]),
    ("stats", &["model"]),
    // Verdicts to sentences; the statistics behind them are none of its business.
    ("answer", &["model"]),
    ("pmtu", &[]),
    // A protocol as state machines, as `pmtu` is: `traffic` has the sockets.
    ("nbd", &[]),
    ("plan", &["model"]),
    ("sys", &[]),
    // pmtu's machines over sockets; the machines themselves stay without I/O.
    ("probe", &["pmtu", "sys"]),
    // Idle time in microseconds needs an interrupt to each core, and what a wake-up costs pinned threads.
    ("meter", &["model", "sys"]),
    // Typed messages for those who build networks, bytes for the audit: devices that no library knows.
    ("netlink", &[]),
    ("netbuild", &["model", "netlink", "sys", "wire"]),
    // A process, its monitor and its guest; what a move is, is `traffic`'s.
    ("qemu", &["model", "sys"]),
    ("traffic", &["model", "nbd", "qemu", "sys"]),
    // Headers come from `wire`: what is written here and what a capture is read with are one and the same.
    // What an encapsulation is called and has is the plan's word for it, here as everywhere.
    ("vtep", &["model", "netlink", "sys", "wire"]),
    // An Open vSwitch of a lab host's own. What is in a Geneve header is `wire`'s, a kernel's datapath is asked for
    // over netlink, daemons that die with their host are `sys`'s.
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
    ("audit", &["model", "netlink", "sys", "wire"]),
    // What probes and audits mean, together: from reports, without I/O of its own. What guests can have over a path is
    // `wire`'s arithmetic.
    ("check", &["audit", "model", "pmtu", "wire"]),
    // Labs of faults from files, for the tests and the bench; the program itself has no part of it.
    ("faults", &["sys"]),
    // How tests say that they cannot run here.
    ("skips", &[]),
    // Tries what labs are made of with the code that makes them; an agent can run it elsewhere.
    (
        "doctor",
        &["meter", "model", "netbuild", "ovs", "qemu", "sys"],
    ),
    // `wirecost check`: agents report, `check` says what it means; an encapsulation is `wire`'s.
    ("control", &["agent", "check", "model", "stats", "wire"]),
    // What control groups leave of the memory is `sys`'s.
    ("report", &["answer", "model", "stats", "sys", "wire"]),
    // `wirecost overhead` is arithmetic and nothing else: no run, no record.
    (
        "cli",
        &[
            "agent", "answer", "check", "control", "doctor", "model", "plan", "report", "sys",
            "wire",
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

/// Crates without I/O: their sources name none of the standard library's ways to it.
const PURE: &[&str] = &[
    "answer", "model", "wire", "stats", "pmtu", "nbd", "plan", "check",
];
const IO: &[&str] = &[
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
];

/// Crates whose sources may allow `unsafe`.
const UNSAFE: &[&str] = &["sys"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crates() -> Vec<(String, PathBuf)> {
    let mut crates: Vec<_> = fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("entry").path())
        // Those that are not part of the program.
        .chain(["bench", "tests/faults", "tests/skips"].map(|name| root().join(name)))
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
    crates.sort();
    crates
}

/// The workspace's crates that a manifest's `[dependencies]` name; tests may use what they like.
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

/// The code of a file without its test module.
fn production(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("source");
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    code.unwrap_or_default().to_owned()
}

#[test]
fn every_crate_uses_only_its_allowed_dependencies() {
    for (name, path) in crates() {
        let (_, allowed) = DEPENDENCIES
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("{name} has no line in DEPENDENCIES"));
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("manifest");
        for other in used(&manifest) {
            assert!(
                allowed.contains(&other.as_str()),
                "{name} must not use {other}"
            );
        }
    }
}

#[test]
fn pure_crates_do_no_io() {
    for (name, path) in crates()
        .into_iter()
        .filter(|(name, _)| PURE.contains(&name.as_str()))
    {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            let code = production(file);
            for way in IO {
                assert!(
                    !code.contains(way),
                    "{name} is pure, but {} names {way}",
                    file.display()
                );
            }
        }
    }
}

/// The types `Result<T, String>` in a source, however they are wrapped.
fn results_with_text(code: &str) -> Vec<&str> {
    const HEAD: &str = "Result<";
    let heads = code.match_indices(HEAD).map(|(start, _)| &code[start..]);
    let with_text = heads.filter_map(|rest| {
        let (mut depth, mut begins, mut arguments) = (0, HEAD.len(), Vec::new());
        for (at, sign) in rest.char_indices().skip(HEAD.len()) {
            match sign {
                '>' if rest[..at].ends_with('-') => {}
                '<' | '(' | '[' => depth += 1,
                '>' | ')' | ']' if depth > 0 => depth -= 1,
                ',' | '>' if depth == 0 => {
                    arguments.push(rest[begins..at].trim());
                    begins = at + 1;
                    if sign == '>' {
                        let has_text = arguments.len() > 1 && arguments[1] == "String";
                        return has_text.then_some(&rest[..=at]);
                    }
                }
                _ => {}
            }
        }
        None
    });
    with_text.collect()
}

/// A caller tells errors apart by their type; an error becomes text where it leaves the process.
#[test]
fn errors_of_the_agent_are_typed() {
    let mut files = Vec::new();
    sources(&root().join("crates/agent/src"), &mut files);
    assert!(files.len() > 10, "{files:?}");
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        let code = production(file);
        let found = results_with_text(&code);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}

#[test]
fn a_result_with_text_is_seen_however_it_is_wrapped() {
    for text in [
        "fn f() -> Result<(), String> {",
        "Option<Result<(Entry, [u8; 4]), String>>",
        "fn f() -> Result<Vec<Result<Left, String>>, Error>",
        "std::result::Result<Box<dyn Fn(u8) -> u8>, String>",
        "Result<\n    BTreeMap<String, Entry>,\n    String,\n>",
    ] {
        assert_eq!(results_with_text(text).len(), 1, "{text}");
    }
    for text in [
        "fn f() -> io::Result<String> {",
        "Result<String, Error>",
        "Result<BTreeMap<String, String>, Error>",
        "Result<Option<String>>",
    ] {
        assert!(results_with_text(text).is_empty(), "{text}");
    }
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    for (name, path) in crates() {
        let source = path.join("src");
        let mut files = Vec::new();
        sources(&source, &mut files);
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).expect("source");
            (path, text)
        };
        let files: Vec<_> = files.into_iter().map(read).collect();
        let circles = circles::circles(&source, &files);
        assert!(
            circles.is_empty(),
            "{name}: these files import each other in a circle, move what they share into one that imports none of \
             them: {circles:?}"
        );
    }
}

/// What a result is does not depend on how it is printed: the record's document is a contract of its own.
#[test]
fn result_of_reports_imports_nothing_of_render() {
    let result = root().join("crates/report/src/result");
    let mut files = Vec::new();
    sources(&result, &mut files);
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("source");
        assert!(
            !text.contains("crate::render") && !text.contains("crate::{"),
            "{} is of `result` and imports `render`",
            file.display()
        );
    }
}

#[test]
fn every_command_of_the_hosted_ci_is_a_target_of_the_makefile() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let (workflow, makefile) = (read(".github/workflows/ci.yml"), read("Makefile"));
    let commands: Vec<&str> = workflow
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- run: "))
        .collect();
    assert!(commands.len() > 5, "{commands:?}");
    assert_eq!(
        commands.len(),
        workflow.matches("run:").count() - 1,
        "one comment"
    );
    for command in commands {
        let target = command
            .strip_prefix("make ")
            .unwrap_or_else(|| panic!("`{command}`"));
        let target = target.split(' ').next().unwrap_or_default();
        let rule = format!("\n{target}:");
        assert!(makefile.contains(&rule), "the Makefile has no `{target}`");
    }
}

#[test]
fn every_job_of_the_hosted_ci_runs_with_the_rust_of_the_workspace() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let (workflow, manifest) = (read(".github/workflows/ci.yml"), read("Cargo.toml"));
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
        .expect("a version");
    let container =
        format!("container: {{ image: \"rust:{version}-bookworm\", options: --privileged }}");
    let jobs = workflow.matches("runs-on:").count();
    assert!(jobs > 0, "no jobs");
    assert_eq!(workflow.matches(&container).count(), jobs, "{container}");
}

/// Tables, headings of commands and a link on a line of its own cannot be wrapped; docs/studies.md is what a program
/// printed.
#[test]
fn prose_of_the_documents_has_lines_of_at_most_120() {
    const WIDTH: usize = 120;
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    files.push(root().join("CHANGELOG.md"));
    for directory in ["docs", "docs/decisions", "bench"] {
        let entries = fs::read_dir(root().join(directory)).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    files.retain(|path| !path.ends_with("docs/studies.md"));
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a document");
        for (number, line) in text.lines().enumerate() {
            let is_link = line.starts_with('[') && !line.contains("] ") && !line.contains(") ");
            let is_bound = line.starts_with(['|', '#', '<']) || is_link;
            let columns = line.chars().count();
            let place = format!("{}:{}", file.display(), number + 1);
            assert!(is_bound || columns <= WIDTH, "{place}: {columns} columns");
        }
    }
}

#[test]
fn unsafe_is_allowed_in_one_crate_only() {
    for (name, path) in crates()
        .into_iter()
        .filter(|(name, _)| !UNSAFE.contains(&name.as_str()))
    {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("source");
            assert!(!text.contains("unsafe_code"), "{name}: {}", file.display());
        }
    }
}

#[test]
fn the_manifest_reader_sees_crates_however_they_are_written() {
    let manifest = "[package]\nname = \"wirecost-x\"\n[dependencies]\nwirecost-control.workspace = true\n\
                    wirecost-sys = { path = \"../sys\" }\nserde = \"1\"\n[dev-dependencies]\nwirecost-plan.workspace = true\n";
    assert_eq!(
        used(manifest),
        BTreeSet::from(["control".to_owned(), "sys".to_owned()])
    );
}

#[test]
fn every_crate_inherits_the_lints_of_the_workspace() {
    for (name, path) in crates() {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("manifest");
        let inherits = manifest.contains("\n[lints]\nworkspace = true\n");
        assert!(
            inherits,
            "{name}'s Cargo.toml needs [lints] workspace = true"
        );
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("manifest");
    for table in ["rust", "rustdoc", "clippy"] {
        let heading = format!("\n[workspace.lints.{table}]\n");
        assert!(workspace.contains(&heading), "no lints for {table}");
    }
}
