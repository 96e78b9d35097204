//! docs/kernels.md, from what ran: which kernel has what, which step ran where.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::features::Features;
use crate::machine::downloads_dir;
use crate::steps::{OWN_MACHINE_STEPS, STEPS};
use crate::{KernelResult, Outcome, REQUIRED};

const PLACE: &str = "docs/kernels.md";

/// Names of steps in the order of the tables.
pub(crate) fn names(all: &[KernelResult]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, _) in all.iter().flat_map(|ran| &ran.outcomes) {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    names
}

pub(crate) fn outcome(ran: &KernelResult, name: &str) -> Option<Outcome> {
    let found = ran.outcomes.iter().find(|(known, _)| *known == name);
    found.map(|(_, outcome)| *outcome)
}

/// `6.1` of `6.1.0-56-cloud-amd64`: an update of Debian's changes no table.
fn line(release: &str) -> String {
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// A header row with one column a kernel.
fn header(first: &[&str], all: &[KernelResult]) -> String {
    let kernels = all.iter().map(|ran| line(&ran.release));
    let columns: Vec<String> = first
        .iter()
        .map(ToString::to_string)
        .chain(kernels)
        .collect();
    let rule = vec!["---"; columns.len()].join("|");
    format!("| {} |\n|{rule}|\n", columns.join(" | "))
}

/// Which step ended how on which kernel.
pub(crate) fn outcomes(all: &[KernelResult]) -> String {
    let mut table = header(&["step", "looks at", "needs"], all);
    for name in names(all) {
        let steps = STEPS.iter().map(|s| (s.name, s.looks_at, s.needs));
        let own_machine = OWN_MACHINE_STEPS
            .iter()
            .map(|s| (s.name, s.looks_at, s.needs));
        let mut all_steps = steps.chain(own_machine);
        let found = all_steps.find(|(known, ..)| *known == name);
        let (_, looks_at, needs) = found.unwrap_or_default();
        let _ = write!(table, "| {name} | {looks_at} | {} |", needs.join(", "));
        for ran in all {
            let _ = match outcome(ran, name) {
                None => write!(table, " not run |"),
                Some(Outcome::Right) => write!(table, " passed |"),
                Some(Outcome::Wrong) => write!(table, " FAILED |"),
                Some(Outcome::Lacks(feature)) => write!(table, " no {feature} |"),
            };
        }
        table.push('\n');
    }
    table
}

fn features(all: &[KernelResult]) -> String {
    let mut table = header(&["feature", "needed for"], all);
    let known: &Features = &all[0].features;
    for (name, feature) in known {
        let _ = write!(table, "| {} | {} |", feature.title, feature.needed_for);
        for ran in all {
            let of_this = ran.features.iter().find(|(other, _)| other == name);
            let status = of_this.map_or("unknown", |(_, feature)| &feature.status);
            let _ = write!(table, " {status} |");
        }
        table.push('\n');
    }
    table
}

fn text(all: &[KernelResult]) -> String {
    let oldest = line(&all[0].release);
    let releases: BTreeSet<&str> = all.iter().map(|ran| ran.release.as_str()).collect();
    let releases: Vec<&str> = releases.into_iter().collect();
    let mut by_name = "| step | looks at |\n|---|---|\n".to_owned();
    for step in OWN_MACHINE_STEPS.iter().filter(|step| step.by_name) {
        let _ = writeln!(by_name, "| {} | {} |", step.name, step.looks_at);
    }
    format!(
        "# Kernels\n\n\
The oldest kernel on which the program is tested is Linux {oldest}; no older kernel was tried. The eBPF datapath needs 5.17 \
for `bpf_loop`. `UPDATE_DOCS=1 make test-kernels` writes these tables from the results on {releases}.\n\n\
`make test-kernels` boots Debian's kernels, `linux-image-cloud-amd64` and `linux-image-6.12-cloud-amd64` (of Debian 12's security updates), \
in QEMU and runs the program there. QEMU uses KVM where the kernels boot with it, and emulation elsewhere. The packages come \
from the machine's own apt sources; they are downloaded once and kept in the directory `kernels` of `target` (remove it to get \
newer ones). Tests with two machines need root: a bridge in a network namespace joins the machines. A missing program or \
privilege is named; it is a failure where `WIRECOST_REQUIRE_ROOT=1`, as in `.ci/run`, and otherwise the test is skipped. Figures \
measured under emulation say nothing about performance; the tests check what was built, sent, found and left behind.\n\n\
## What each has\n\n\
The first rows are the output of `wirecost doctor` as root, the last ones devices that the tests make themselves. For \
`limited`, `doctor` prints what to do. The tests fail on a feature that no kernel has. A kernel without BTF \
(`CONFIG_DEBUG_INFO_BTF`) was not tried: both of these have it, and no function of the eBPF programs needs it.\n\n{}\n\
## What needs a later kernel than the oldest\n\n\
| what | since | before |\n\
|---|---|---|\n\
| tcx, by which eBPF programs are attached | 6.6 | clsact, by itself |\n\
| `net.core.rps_default_mask`, by which a plain user steers what a host receives | 6.3 | `doctor` says `limited`; labs \
without root are built all the same, and the record and the report say that they are not steered |\n\n\
## What is tried on each\n\n\
Each step is a file in `tests/kernels`. A step runs on the kernels that have what it needs, and must run on at least one.\n\n{}\n\
The following steps take some minutes each and run only where `WIRECOST_STEP` is part of their name. All five steps of `diagnose` \
passed on 6.1 and 6.12. Run GRO off alone: beside other emulated machines it failed twice on 6.12.\n\n{by_name}\n\
Two cases of `diagnose` cannot be tested in an emulated machine: a full receiving core that receive steering relieves, because \
its processors share those of the emulating machine; and a line of 1 Gbit/s, which it may not fill. The line there has 100 \
Mbit/s.\n\n\
To run all steps or some:\n\n    \
make test-kernels                                  # all\n    \
WIRECOST_STEP='by eBPF' make test-kernels          # steps whose name contains it\n    \
WIRECOST_KERNEL=6.1 make test-kernels              # one kernel\n",
        features(all),
        outcomes(all),
        releases = releases.join(" and "),
    )
}

/// Paragraphs in lines of 118 letters at most; tables and commands as they are.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with(['|', ' ']) {
            out.push_str(line);
        }
        let mut column = 0;
        let words = line.split(' ').filter(|_| !line.starts_with(['|', ' ']));
        for word in words {
            if column > 0 && column + 1 + word.len() > 118 {
                out.push('\n');
                column = 0;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += word.len();
        }
        out.push('\n');
    }
    out
}

/// Compares the document with what ran; `UPDATE_DOCS=1` writes it. What is there is in `target/kernels`, too.
pub(crate) fn is_up_to_date(all: &[KernelResult]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(PLACE);
    let text = wrapped(&text(all));
    let made = downloads_dir().join("kernels.md");
    fs::write(&made, &text).expect("room on the disk");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).expect(PLACE);
        return;
    }
    // The tables alone: neither Debian's next update is a change of the document, nor are other words for what a
    // feature is needed for.
    let plain = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| {
                let columns = line.split('|').enumerate();
                let kept = columns.filter(|(at, _)| *at != 2);
                kept.map(|(_, column)| column).collect()
            })
            .collect()
    };
    let in_docs = fs::read_to_string(&path).expect(PLACE);
    if plain(&in_docs) == plain(&text) {
        return;
    }
    let how = format!(
        "{PLACE} is not what ran ({}): `UPDATE_DOCS=1 make test-kernels` writes it",
        made.display()
    );
    // What a kernel has may differ from machine to machine.
    assert!(std::env::var_os(REQUIRED).is_none(), "{how}");
    println!("{how}");
}
