//! The catalogue of faults (tests/faults/catalogue): each is built in namespaces of its own, checked by the program,
//! and named as its file says, with nothing besides.

#[allow(dead_code, reason = "each test program uses its part")]
mod common;

use std::collections::BTreeSet;

use common::{run, wirecost};
use wirecost_check::catalogue as findings;
use wirecost_faults::{
    Answer, ExpectedFinding, ExpectedPath, Fault, Finding, Lab, LabError, Path, catalogue,
    directory,
};

/// Only these files, by a part of their names, for whoever writes one.
const ONLY: &str = "WIRECOST_FAULTS";

fn faults() -> Vec<Fault> {
    catalogue().unwrap_or_else(|error| panic!("{error}"))
}

/// Set where every device has to be there: in machines with Debian's kernels.
const EVERY_DEVICE: &str = "WIRECOST_EVERY_DEVICE";

/// Whether this machine lets us; says why not.
fn is_allowed<T>(built: Result<T, LabError>) -> Option<T> {
    match built {
        Ok(value) => Some(value),
        Err(LabError::Unprivileged(why)) => {
            common::skip(format!("labs of faults need root: {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn checked(fault: &Fault) -> Result<Answer, LabError> {
    Lab::with(fault, |_| {
        let words = ["check"].into_iter().map(str::to_owned);
        let words = words
            .chain(fault.check.iter().cloned())
            .chain(["--json".to_owned()]);
        let words: Vec<String> = words.collect();
        let ended = run(&mut wirecost(words.iter().map(String::as_str)));
        Answer::read(ended.status.code(), &ended.document())
            .unwrap_or_else(|error| panic!("{}: {error}: {ended:#?}", fault.name))
    })
}

/// What is wrong with the answer to one file; `None`: nothing.
fn judged(fault: &Fault, answer: &Answer) -> Option<String> {
    let differences = answer.differs_from(fault);
    match &fault.not_yet {
        None if differences.is_empty() => None,
        None => Some(differences.join("\n  ")),
        Some(_) if differences.is_empty() => {
            Some("it is named now: take the line `not_yet` out of its file".to_owned())
        }
        Some(_) => None,
    }
}

#[test]
fn every_fault_of_the_catalogue_is_named_and_nothing_besides() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let faults: Vec<Fault> = faults()
        .into_iter()
        .filter(|fault| fault.name.contains(&only))
        .collect();
    let mut wrong = Vec::new();
    // One after the other: a check's probes are timed, and this machine may have two cores.
    for fault in &faults {
        let checked = checked(fault);
        if let Err(error @ LabError::Lacks { .. }) = &checked {
            common::lacks(error);
            assert!(std::env::var_os(EVERY_DEVICE).is_none(), "{error}");
            continue;
        }
        let Some(answer) = is_allowed(checked) else {
            return;
        };
        let judged = judged(fault, &answer);
        let verdict = if judged.is_some() { "WRONG" } else { "right" };
        println!("{:32} {verdict} {:.2} s", fault.name, answer.seconds);
        wrong.extend(judged.map(|why| format!("{}:\n  {why}", fault.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table of the catalogue's README: a fault, its files, its recorded hosts.
fn table() -> Vec<(String, Vec<String>, Vec<String>)> {
    let text = std::fs::read_to_string(directory().join("README.md")).expect("README.md");
    let names = |cell: &str| {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let table = text.split("## Which file").nth(1).expect("the table");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    rows.skip(1)
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            assert_eq!(cells.len(), 3, "{row}");
            (cells[0].trim().to_owned(), names(cells[1]), names(cells[2]))
        })
        .collect()
}

#[test]
fn every_fault_that_a_check_must_name_is_a_lab_or_a_recorded_host() {
    let table = table();
    assert!(table.len() >= 30, "{} rows", table.len());
    for (fault, labs, recorded) in &table {
        assert!(!labs.is_empty() || !recorded.is_empty(), "{fault}: neither");
        for name in recorded {
            let file = directory().join(format!("../../../crates/audit/fixtures/{name}.json"));
            assert!(file.is_file(), "{fault}: there is no {}", file.display());
        }
    }
    let listed: BTreeSet<String> = table.iter().flat_map(|(_, labs, _)| labs.clone()).collect();
    let there: BTreeSet<String> = faults().into_iter().map(|fault| fault.name).collect();
    assert_eq!(listed, there, "the table of README.md and the files");
}

#[test]
fn findings_that_files_expect_are_in_the_catalogue_of_findings() {
    let known: BTreeSet<&str> = findings().map(|kind| kind.id).collect();
    for fault in faults() {
        let expect = &fault.expect;
        for finding in expect.findings.iter().chain(&expect.by_chance) {
            let is_known = known.contains(finding.id.as_str()) || fault.not_yet.is_some();
            assert!(
                is_known,
                "{}: there is no finding `{}`",
                fault.name, finding.id
            );
        }
    }
}

/// One file, and the answer that it expects.
fn expected() -> (Fault, Answer) {
    let named = |fault: &Fault| fault.name == "switch-8950";
    let fault = faults().into_iter().find(named).expect("a file");
    let expect = &fault.expect;
    let path = |path: &ExpectedPath| Path {
        from: path.from.clone(),
        to: path.to.clone(),
        mtu: path.mtu,
        kind: path.kind.clone(),
    };
    let finding = |finding: &ExpectedFinding| Finding {
        id: finding.id.clone(),
        host: finding.at.clone(),
        device: finding.device.clone(),
        evidence: String::new(),
        fix: Vec::new(),
    };
    let answer = Answer {
        exit: Some(expect.exit),
        paths: expect.paths.iter().map(path).collect(),
        findings: expect.findings.iter().map(finding).collect(),
        seconds: 0.1,
    };
    (fault, answer)
}

#[test]
fn a_fault_that_is_not_named_yet_fails_the_test_once_it_is() {
    let (mut fault, answer) = expected();
    let unnamed = Answer {
        findings: Vec::new(),
        ..answer.clone()
    };
    assert_eq!(judged(&fault, &answer), None);
    let why = judged(&fault, &unnamed).expect("two findings are missing");
    assert_eq!(why.matches("not found: path-drops-silently").count(), 2);
    fault.not_yet = Some("nothing looks at it".into());
    assert_eq!(judged(&fault, &unnamed), None);
    let why = judged(&fault, &answer).expect("it is named now");
    assert!(why.contains("`not_yet`"), "{why}");
}
