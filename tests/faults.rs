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
    Lab::with(fault, |_| check(fault))
}

/// To be called inside of the file's network.
fn check(fault: &Fault) -> Answer {
    let words = ["check"].into_iter().map(str::to_owned);
    let words = words
        .chain(fault.check.iter().cloned())
        .chain(["--json".to_owned()]);
    let words: Vec<String> = words.collect();
    let ended = run(&mut wirecost(words.iter().map(String::as_str)));
    Answer::read(ended.status.code(), &ended.document())
        .unwrap_or_else(|error| panic!("{}: {error}: {ended:#?}", fault.name))
}

/// Parts of lines that only read the state.
const LOOKS: [&str; 8] = [
    "#",
    " route get ",
    " link show",
    " neigh show",
    " neigh list",
    "list ruleset",
    "nstat",
    "ovs-vsctl get",
];

/// The lines of a fix that change something.
fn changes(finding: &Finding) -> Vec<&str> {
    // An offload that computes them wrongly is one of several, and here it is none: a rule spoils them.
    if finding.id == "bad-checksums" {
        return Vec::new();
    }
    let lines = finding.fix.iter().map(String::as_str);
    lines
        .filter(|line| !LOOKS.iter().any(|look| line.contains(look)))
        .collect()
}

fn shell(command: &str) -> String {
    let ended = std::process::Command::new("sh")
        .args(["-c", command])
        .env(
            "PATH",
            format!(
                "{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap_or_default()
            ),
        )
        .output()
        .expect("sh");
    String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr)
}

/// How packets of others leave: from every namespace to every address of the network, by every source that it has, but
/// for those of the asked pair.
fn bystanders(fault: &Fault) -> Vec<String> {
    let plain = |address: &str| address.split('/').next().unwrap_or_default().to_owned();
    let addresses = |name: &str| -> Vec<String> {
        let all = fault.namespaces[name].addresses.values().flatten();
        all.map(|address| plain(address)).collect()
    };
    let asked: Vec<String> = fault
        .check
        .iter()
        .map(|word| word.rsplit('=').next().unwrap_or(word).to_owned())
        .collect();
    let mut ways = Vec::new();
    for (name, namespace) in fault.namespaces.iter().filter(|(_, it)| !it.hidden) {
        let own = addresses(name);
        let others = fault.namespaces.keys().filter(|other| *other != name);
        for to in others.flat_map(|other| addresses(other)) {
            let sources = own
                .iter()
                .filter(|from| from.contains(':') == to.contains(':'));
            for from in sources
                .map(|from| format!(" from {from}"))
                .chain([String::new()])
            {
                // Without a source, packets between the two may leave as well, where there is one way only.
                let between = asked.contains(&to)
                    && (from.is_empty() && namespace.addresses.len() < 2
                        || asked.iter().any(|it| from == format!(" from {it}")));
                if !between {
                    let way = shell(&format!(
                        "ip -n {name} route get {to}{from} | grep -o 'dev [^ ]*\\|mtu [0-9]*' | tr '\\n' ' '"
                    ));
                    ways.push(format!("{name}: {to}{from}: {way}"));
                }
            }
        }
    }
    ways
}

/// What is wrong with the fixes of one file.
fn fixes(fault: &Fault) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut tried = BTreeSet::new();
    let mut answer = check(fault);
    let key = |it: &Finding| (it.id.clone(), it.host.clone(), it.device.clone());
    loop {
        let next = answer
            .findings
            .iter()
            .find(|it| !changes(it).is_empty() && !tried.contains(&key(it)));
        let Some(finding) = next else { return wrong };
        tried.insert(key(finding));
        let before = bystanders(fault);
        let said: Vec<String> = changes(finding).into_iter().map(shell).collect();
        let after = bystanders(fault);
        let again = check(fault);
        // What helps meanwhile has the host send less, and not the path carry what is expected.
        let meanwhile = finding.id == "path-drops-silently"
            && fault.check.iter().any(|word| word == "--expect");
        // Where the same command of two findings, or an alternative, was typed twice, it may complain.
        if !meanwhile && again.findings.iter().any(|it| key(it) == key(finding)) {
            wrong.push(format!(
                "{:?} is there still: {said:?} {:#?}",
                key(finding),
                changes(finding)
            ));
        }
        if before != after {
            let moved: Vec<_> = before
                .iter()
                .zip(&after)
                .filter(|(one, other)| one != other)
                .collect();
            wrong.push(format!("{:?} moves others: {moved:#?}", changes(finding)));
        }
        answer = again;
    }
}

#[test]
fn every_fix_of_the_catalogue_fixes_what_it_is_for_and_moves_nobody_else() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut wrong = Vec::new();
    for fault in faults()
        .iter()
        .filter(|it| it.name.contains(&only) && !it.expect.findings.is_empty())
    {
        match Lab::with(fault, |_| fixes(fault)) {
            Err(error @ LabError::Lacks { .. }) => println!("skipped: {error}"),
            tried => {
                let Some(found) = is_allowed(tried) else {
                    return;
                };
                println!(
                    "{:32} {}",
                    fault.name,
                    if found.is_empty() { "right" } else { "WRONG" }
                );
                wrong.extend(
                    found
                        .into_iter()
                        .map(|why| format!("{}: {why}", fault.name)),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
