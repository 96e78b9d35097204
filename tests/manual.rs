//! Manual pages and completions, read by the programs that users read them with.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Ended, TestDir, program, run, skip, succeeds, wirecost};

/// Whether a program is there.
fn is_there(name: &str) -> bool {
    let found = succeeds(Command::new("sh").args(["-c", &format!("command -v {name}")]));
    found || skip(format!("there is no {name}"))
}

/// Writes a shell's script to a place as this name.
fn script(place: &TestDir, shell: &str, name: &str) {
    let ended = run(&mut wirecost(["completions", shell]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    fs::write(place.path().join(name), ended.stdout).expect("script");
}

/// Runs a shell in the place, with the program under test as `wirecost`.
fn shell(place: &TestDir, shell: &str, arguments: &[&str]) -> Ended {
    let directory = program().parent().expect("directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(shell);
    command
        .args(arguments)
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("HOME", place.path())
        .env("TERM", "dumb")
        .current_dir(place.path());
    let ended = run(&mut command);
    ended.expect_code(0);
    assert_eq!(ended.stderr, "", "{ended:#?}");
    ended
}

/// A place with plans, a run directory, and what is neither.
fn furnished() -> TestDir {
    let place = TestDir::new();
    place.plan("name: mine\n");
    fs::write(place.path().join("notes.txt"), "").expect("file");
    for (directory, file) in [("before", "run.json"), ("empty", "other")] {
        fs::create_dir(place.path().join(directory)).expect("directory");
        fs::write(place.path().join(directory).join(file), "{}").expect("file");
    }
    place
}

/// What bash offers for the last of these words.
fn bash_offers(place: &TestDir, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let last = words.len() - 1;
    let typed = format!(
        "source ./wirecost.bash; COMP_WORDS=({}); COMP_CWORD={last}; COMP_TYPE=9; COMP_LINE='{}'\n\
         _wirecost wirecost '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let ended = shell(place, "bash", &["--norc", "-c", &typed]);
    ended.stdout.lines().map(str::to_owned).collect()
}

/// What bash offers behind `line`, whose words it takes apart at colons and equals signs as readline does.
fn bash_offers_for(place: &TestDir, line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let mut part = String::new();
        for sign in word.chars() {
            if matches!(sign, ':' | '=') {
                words.extend((!part.is_empty()).then(|| std::mem::take(&mut part)));
                words.push(sign.to_string());
            } else {
                part.push(sign);
            }
        }
        if !part.is_empty() || word.is_empty() {
            words.push(part);
        }
    }
    let last = words.len() - 1;
    // Behind a break nothing is typed yet.
    let typed = words[last].trim_start_matches([':', '=']).to_owned();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source ./wirecost.bash; COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'; COMP_WORDS=({}); COMP_CWORD={last}; COMP_TYPE=9\n\
         COMP_LINE='{line}'; _wirecost wirecost '{typed}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
    );
    let ended = shell(place, "bash", &["--norc", "-c", &script]);
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_what_has_a_colon_in_it_and_encapsulations() {
    let place = furnished();
    script(&place, "bash", "wirecost.bash");
    let offers = |line: &str| bash_offers_for(&place, line);
    assert_eq!(offers("wirecost load ssh"), ["ssh:"]);
    assert_eq!(offers("wirecost load loc"), ["local"]);
    // Namespaces of others come and go between the two.
    let lasting = |line: &str| {
        let mut offered = offers(line);
        offered.retain(|word| !word.starts_with("netns:"));
        offered
    };
    assert_eq!(
        lasting("wirecost load netns:no-such-namespace "),
        lasting("wirecost load local ")
    );
    assert_eq!(offers("wirecost overhead gene"), ["geneve"]);
    assert_eq!(
        offers("wirecost overhead vxlan+outer-v"),
        ["vxlan+outer-vlan"]
    );
    assert!(offers("wirecost check local local --encapsulation vx").contains(&"vxlan".to_owned()));
    assert_eq!(
        offers("wirecost check local local --encapsulation=gene"),
        ["geneve"]
    );
    assert_eq!(offers("wirecost tunnel up gen"), ["geneve"]);
    if !crate::common::is_root() {
        return;
    }
    let name = format!("wct-complete-{}", std::process::id());
    let _made = crate::common::namespaces::Namespaces::new(&[&name]);
    // The part before the colon stays on the line.
    assert_eq!(
        offers(&format!(
            "wirecost load netns:wct-complete-{}",
            std::process::id()
        )),
        [&*name]
    );
    assert!(offers("wirecost load netns:").contains(&name));
    assert!(offers("wirecost load local netns:wct-comp").contains(&name));
}

#[test]
fn bash_completes_commands_options_plans_and_runs() {
    let place = furnished();
    script(&place, "bash", "wirecost.bash");
    let registered = shell(
        &place,
        "bash",
        &[
            "--norc",
            "-c",
            "source ./wirecost.bash; complete -p wirecost",
        ],
    );
    assert!(
        registered.stdout.contains("-F _wirecost wirecost"),
        "{registered:#?}"
    );

    let commands = bash_offers(&place, &["wirecost", ""]);
    for command in ["run", "report", "clean", "completions"] {
        assert!(
            commands.iter().any(|offer| offer == command),
            "{commands:?}"
        );
    }
    for hidden in ["agent", "man"] {
        assert!(
            !commands.iter().any(|offer| offer == hidden),
            "{commands:?}"
        );
    }
    assert!(bash_offers(&place, &["wirecost", "run", "--se"]).contains(&"--seed".to_owned()));
    assert_eq!(
        bash_offers(&place, &["wirecost", "run", "jumbo-or"]),
        ["jumbo-or-not"]
    );
    assert_eq!(
        bash_offers(&place, &["wirecost", "run", "pl"]),
        ["plan.yaml"]
    );
    let nothing = bash_offers(&place, &["wirecost", "run", "no"]).concat();
    assert_eq!(nothing, "", "a text file is no plan");
    let runs = bash_offers(&place, &["wirecost", "report", ""]);
    assert_eq!(
        runs.first().map(String::as_str),
        Some("before/"),
        "runs come first: {runs:?}"
    );
    assert_eq!(
        bash_offers(&place, &["wirecost", "completions", ""])[..3],
        ["bash", "zsh", "fish"]
    );
}

#[test]
fn fish_completes_the_same() {
    if !is_there("fish") {
        return;
    }
    let place = furnished();
    script(&place, "fish", "wirecost.fish");
    let offers = |line: &str| {
        let typed = format!("source ./wirecost.fish; complete --do-complete '{line}'");
        shell(&place, "fish", &["--no-config", "-c", &typed]).stdout
    };
    assert!(
        offers("wirecost re").starts_with("report\t"),
        "{}",
        offers("wirecost re")
    );
    assert_eq!(
        offers("wirecost run jumbo-or"),
        "jumbo-or-not\tbuilt-in plan\n"
    );
    assert!(offers("wirecost run --se").starts_with("--seed\t"));
}

#[test]
fn zsh_completes_at_the_first_tab_from_its_function_path() {
    if !is_there("zsh") {
        return;
    }
    let place = furnished();
    fs::create_dir(place.path().join("functions")).expect("directory");
    script(&place, "zsh", "functions/_wirecost");
    // A terminal of its own, as a user has it: one Tab, then what stands on the line.
    let typed = "zmodload zsh/zpty; zpty user zsh -f -i\n\
        zpty -w user \"PS1=; fpath=(./functions $fpath); autoload -Uz compinit; compinit -u -D; \
            printf 'ready%s\\\\n' y\"\n\
        zpty -r -m user seen '*readyy*' || exit 4\n\
        zpty -n -w user $'wirecost run jumbo-o\\t'\n\
        zpty -r -m user seen '*jumbo-or-not*' || exit 5\n\
        zpty -d user; print completed";
    let ended = shell(&place, "timeout", &["50", "zsh", "-f", "-c", typed]);
    assert!(ended.stdout.ends_with("completed\n"), "{ended:#?}");
}

#[test]
fn a_script_can_be_read_by_nobody_without_a_panic() {
    let place = TestDir::new();
    let line = "for shell in bash zsh fish; do wirecost completions $shell | true; done; echo fine";
    let ended = shell(&place, "bash", &["--norc", "-c", line]);
    assert_eq!(ended.stdout, "fine\n");
}

/// The pages, written by the program.
fn pages(place: &TestDir) -> Vec<std::path::PathBuf> {
    let directory = place.path().join("man");
    let ended = run(wirecost(["man", "--out"]).arg(&directory));
    ended.expect_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let entries = fs::read_dir(&directory).expect("pages");
    let mut pages: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    pages.sort();
    pages
}

#[test]
fn every_page_is_shown_without_a_warning() {
    if !is_there("man") {
        return;
    }
    let place = TestDir::new();
    let pages = pages(&place);
    let names: Vec<_> = pages
        .iter()
        .filter_map(|page| page.file_name()?.to_str())
        .collect();
    for name in [
        "wirecost.1",
        "wirecost-run.1",
        "wirecost-report.1",
        "wirecost-plan.5",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for page in &pages {
        let shown = shown(page);
        assert_eq!(shown.stderr, "", "{}", page.display());
        for heading in ["NAME", "SEE ALSO"] {
            assert!(
                shown.stdout.lines().any(|line| line == heading),
                "{}",
                page.display()
            );
        }
    }
}

fn shown(page: &Path) -> Ended {
    let mut man = Command::new("man");
    man.args(["--warnings=w", "--local-file", "--encoding=UTF-8"])
        .arg(page)
        .env("MANROFFOPT", "-Tutf8")
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "80")
        .env("MANPAGER", "cat");
    let ended = run(&mut man);
    ended.expect_code(0);
    ended
}

#[test]
fn pages_that_cannot_be_written_are_an_error_that_says_where() {
    let place = TestDir::new();
    fs::write(place.path().join("file"), "").expect("file");
    let ended = run(wirecost(["man", "--out", "file/man"]).current_dir(place.path()));
    ended.expect_code(3);
    assert!(ended.stderr.contains("file/man"), "{ended:#?}");
    assert!(
        ended.stderr.contains("name another directory with --out"),
        "{ended:#?}"
    );
}
