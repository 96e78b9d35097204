//! The examples of `--help` and the manual pages.

use std::fmt::Write as _;

/// A command line, and what it is for.
pub(crate) struct Example {
    /// The command line as typed.
    pub(crate) line: &'static str,
    /// What it does, for a reader who knows what the command is for.
    pub(crate) why: &'static str,
}

/// Examples by command. A command that is not listed has none.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "run",
        &[
            example("wirecost run", "the built-in plan"),
            example(
                "wirecost run lan.yaml --out before",
                "a plan of your own, recorded in before/",
            ),
            example(
                "wirecost run lan.yaml --json > lan.json",
                "the result for a program",
            ),
            example(
                "wirecost run lan.yaml --against before",
                "measure again and compare with before/",
            ),
        ],
    ),
    (
        "load",
        &[
            example("wirecost load netns:a netns:b", "a TCP stream for 10 s"),
            example(
                "wirecost load local ssh:root@b=10.0.0.2 tcp-rr --bound 500us",
                "latency to another machine",
            ),
            example(
                "wirecost load local \"exec:docker exec -i c1\" udp-stream",
                "into a container",
            ),
            example(
                "wirecost load netns:a netns:b --streams 4 --beside tcp-rr",
                "latency under a bulk stream",
            ),
        ],
    ),
    (
        "check",
        &[
            example(
                "wirecost check local ssh:root@b=10.0.0.2",
                "both directions, agents on both hosts",
            ),
            example(
                "wirecost check local 10.0.0.2 --expect 9000",
                "from one side, without an agent",
            ),
            example(
                "wirecost check netns:a netns:b --encapsulation geneve:ovn",
                "the MTU of guests behind OVN",
            ),
            example(
                "wirecost check ssh:a ssh:b --flows 64 --json",
                "every equal path, for programs",
            ),
        ],
    ),
    (
        "report",
        &[
            example("wirecost report before", "print the result again"),
            example("wirecost report before --json", "for a program"),
        ],
    ),
    (
        "compare",
        &[
            example(
                "wirecost compare before after",
                "exit code 1 on a regression",
            ),
            example(
                "wirecost compare before after --markdown --out pr.md",
                "for a pull request",
            ),
            example(
                "wirecost compare before after --fail-on cannot-tell --junit",
                "strict, for CI",
            ),
        ],
    ),
    (
        "study",
        &[
            example("wirecost study", "list them"),
            example(
                "wirecost study ip-storage-jumbo --quick",
                "one of them, in about three minutes",
            ),
            example(
                "wirecost study vsphere51-vxlan --out theirs",
                "recorded in theirs/",
            ),
        ],
    ),
    (
        "plans",
        &[
            example("wirecost plans", "list the built-in plans"),
            example("wirecost plans jumbo-or-not > lan.yaml", "a copy to change"),
        ],
    ),
    (
        "diagnose",
        &[
            example(
                "wirecost diagnose ssh:db1 ssh:db2",
                "changes nothing on either",
            ),
            example(
                "wirecost diagnose ssh:root@db1 ssh:root@db2 --allow-host-changes",
                "tries their settings",
            ),
        ],
    ),
    (
        "schema",
        &[
            example(
                "wirecost schema > plan.schema.json",
                "for an editor that checks YAML",
            ),
            example("wirecost schema check", "for a program that reads a check"),
        ],
    ),
    (
        "overhead",
        &[
            example("wirecost overhead", "every encapsulation at MTU 1500"),
            example(
                "wirecost overhead vxlan --underlay-mtu 9000 --rate 10gbit",
                "part by part, and what a line carries",
            ),
        ],
    ),
    (
        "doctor",
        &[example("wirecost doctor", "before the first run")],
    ),
    (
        "tunnel",
        &[
            example(
                "wirecost tunnel up geneve options=ovn",
                "between two new namespaces",
            ),
            example(
                "wirecost tunnel up vxlan --peer 192.0.2.2 --address 10.0.0.1/24",
                "to another host",
            ),
            example("wirecost tunnel down", "remove it"),
        ],
    ),
    (
        "clean",
        &[example("wirecost clean", "after a run was killed")],
    ),
    (
        "completions",
        &[
            example("source <(wirecost completions bash)", "in ~/.bashrc"),
            example("source <(wirecost completions zsh)", "in ~/.zshrc"),
            example(
                "wirecost completions fish | source",
                "in ~/.config/fish/config.fish",
            ),
        ],
    ),
];

const fn example(line: &'static str, why: &'static str) -> Example {
    Example { line, why }
}

/// The examples of a command.
pub(crate) fn of(command: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(name, _)| *name == command);
    found.map_or(&[], |(_, examples)| examples)
}

/// The examples of a command as part of a help text; empty where there are none.
pub(crate) fn shown(command: &str) -> String {
    let examples = of(command);
    let width = examples.iter().map(|example| example.line.len()).max();
    let mut text = String::new();
    for Example { line, why } in examples {
        let width = width.unwrap_or_default();
        let start = if text.is_empty() { "Examples:" } else { "" };
        let _ = write!(text, "{start}\n  {line:width$}  {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::definition;

    /// The `wirecost` command in a line for a shell.
    fn words(line: &str) -> Vec<String> {
        let command = line.split_once("<(").map_or(line, |(_, inside)| inside);
        let command = command.split(['|', '>', ')']).next().unwrap_or_default();
        wirecost_model::host::split_words(command).expect("quotes in pairs")
    }

    #[test]
    fn every_command_for_people_has_an_example() {
        for command in definition().get_subcommands().filter(|c| !c.is_hide_set()) {
            assert!(!of(command.get_name()).is_empty(), "{}", command.get_name());
        }
    }

    #[test]
    fn every_example_can_be_typed_and_fits_a_terminal() {
        for command in definition().get_subcommands() {
            for Example { line, why } in of(command.get_name()) {
                let words = words(line);
                let matches = definition().try_get_matches_from(&words);
                let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert_eq!(
                    matches.subcommand_name(),
                    Some(command.get_name()),
                    "{line}"
                );
                assert!(!why.is_empty(), "{line}");
            }
            for line in shown(command.get_name()).lines() {
                assert!(line.len() <= 100, "{line}");
            }
        }
    }

    #[test]
    fn a_line_for_a_shell_is_read_up_to_its_redirection() {
        assert_eq!(words("wirecost plans x > y"), ["wirecost", "plans", "x"]);
        assert_eq!(words("source <(wirecost a b)"), ["wirecost", "a", "b"]);
    }
}
