//! Manual pages of section 1: one for the program, and one for each of its commands.

use clap::Command;
use roff::{bold, roman};

use super::Page;
use super::text::Text;
use crate::examples::{self, Example};
use crate::exit::{EXIT_CODES, split_exit_codes};

const DESCRIPTION: &[&str] = &[
    "Measures which frame size, which overlay encapsulation and which offloads a network should run, in networks that \
     it builds on this machine, or between existing hosts.",
    "`wirecost run` builds the networks of a plan out of network namespaces, proves that the path \
     carries the frames, loads it, measures throughput and CPU per Gbit/s, and says what pays, with a confidence \
     interval. It removes everything that it made when it ends, also when it is killed.",
    "It needs no root where the kernel allows user namespaces. Results go to standard output, \
     progress and errors to standard error.",
];

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Fine."),
    ("1", "A finding or a regression."),
    (
        "2",
        "The command line, the plan or the record is wrong; nothing is changed.",
    ),
    (
        "3",
        "The work could not be completed; what was measured is in the run directory.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[(
    "NO_COLOR",
    "If set and not empty, results have no colour. Without a terminal they never have colour.",
)];

const FILES: &[(&str, &str)] = &[(
    "wirecost-runs/NAME-TIME/",
    "A run directory, in the directory that `wirecost run` was started in: `run.json` (plan, \
         cells, seed, environment), `plan.yaml` (the plan as it was given), `samples.jsonl` (a line \
         per sample, written when it was taken) and `end.json` (how the run ended).",
)];

/// The pages of the program and of its commands, except hidden ones.
pub(super) fn pages(definition: Command) -> Vec<Page> {
    let mut program = definition.disable_help_subcommand(true);
    program.build();
    let commands: Vec<Command> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let mut pages = vec![page_of_program(program, &commands)];
    pages.extend(commands.into_iter().map(page_of_command));
    pages
}

fn page_of_program(mut program: Command, commands: &[Command]) -> Page {
    let name = program.get_name().to_owned();
    let mut text = Text::page(&name, 1);
    let what = env!("CARGO_PKG_DESCRIPTION");
    text.heading("NAME")
        .line([roman(format!("{name} - {}", lowercase_first(what)))]);
    synopsis(&mut text, &mut program);
    text.heading("DESCRIPTION");
    for words in DESCRIPTION {
        text.paragraph(words);
    }
    text.heading("COMMANDS");
    for command in commands {
        text.item(&format!("{}(1)", page_name(command)), &about(command));
    }
    options(&mut text, program);
    items(&mut text, "EXIT STATUS", EXIT_STATUS);
    items(&mut text, "ENVIRONMENT", ENVIRONMENT);
    items(&mut text, "FILES", FILES);
    text.heading("EXAMPLES");
    for Example { line, why } in commands
        .iter()
        .filter_map(|command| examples::of(command.get_name()).first())
        .filter(|example| example.line.starts_with(&name))
    {
        text.paragraph(&format!("{}:", uppercase_first(why)))
            .verbatim(&indented(line));
    }
    let others: Vec<String> = commands.iter().map(page_name).collect();
    see_also(&mut text, others.iter().map(String::as_str));
    Page {
        name,
        section: 1,
        text: text.end(),
    }
}

fn page_of_command(mut command: Command) -> Page {
    let name = page_name(&command);
    let mut text = Text::page(&name, 1);
    text.heading("NAME");
    let about = about(&command);
    let short = about.trim_end_matches('.');
    text.line([roman(format!("{name} - {}", lowercase_first(short)))]);
    synopsis(&mut text, &mut command);
    let after_help = command.get_after_help().map(ToString::to_string);
    let after_help = after_help.unwrap_or_default();
    let (words, exit_codes) = split_exit_codes(&after_help);
    let examples = examples::shown(command.get_name());
    let words = words.strip_suffix(examples.as_str()).unwrap_or(words);
    text.heading("DESCRIPTION").paragraph(&about).help(words);
    let examples = examples::of(command.get_name());
    let others: Vec<Command> = command.get_subcommands().cloned().collect();
    options(&mut text, command);
    for other in others.into_iter().filter(|other| !other.is_hide_set()) {
        subcommand(&mut text, other);
    }
    text.heading("EXIT STATUS");
    for (code, meaning) in exit_codes.map(exit_statuses).unwrap_or_default() {
        text.item(code, &format!("{}.", uppercase_first(meaning)));
    }
    if !examples.is_empty() {
        text.heading("EXAMPLES");
    }
    for Example { line, why } in examples {
        text.paragraph(&format!("{}:", uppercase_first(why)))
            .verbatim(&indented(line));
    }
    see_also(&mut text, ["wirecost"]);
    Page {
        name,
        section: 1,
        text: text.end(),
    }
}

/// Splits `Exit codes: 0 measured, 2 the plan is wrong.` into codes and meanings.
fn exit_statuses(text: &str) -> Vec<(&str, &str)> {
    let text = text
        .trim_start_matches(EXIT_CODES)
        .trim()
        .trim_end_matches('.');
    let begins = |part: &str| {
        part.split_once(' ')
            .is_some_and(|(code, _)| code.parse::<u8>().is_ok())
    };
    let starts = text.match_indices(", ").map(|(comma, _)| comma + 2);
    let mut starts: Vec<usize> = starts.filter(|start| begins(&text[*start..])).collect();
    starts.insert(0, 0);
    let ends = starts
        .iter()
        .skip(1)
        .map(|start| start - 2)
        .chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| text[*start..end].split_once(' '))
        .collect()
}

fn synopsis(text: &mut Text, command: &mut Command) {
    text.heading("SYNOPSIS");
    usage(text, command);
}

fn usage(text: &mut Text, command: &mut Command) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    for line in usage.lines().map(str::trim) {
        let rest = line.strip_prefix(name).unwrap_or(line);
        text.line([bold(name), roman(rest)]);
    }
}

fn options(text: &mut Text, command: Command) {
    let mut rendered = Vec::new();
    let written = clap_mangen::Man::new(command).render_options_section(&mut rendered);
    written.expect("writing to memory");
    text.roff(&String::from_utf8_lossy(&rendered));
}

/// Adds a section for a subcommand of a command, with all of its options.
fn subcommand(text: &mut Text, mut command: Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    text.heading(&name.to_uppercase());
    usage(text, &mut command);
    text.paragraph(&about(&command));
    let mut rendered = Vec::new();
    let written = clap_mangen::Man::new(command).render_options_section(&mut rendered);
    written.expect("writing to memory");
    text.roff(&String::from_utf8_lossy(&rendered).replace(".SH OPTIONS\n", ""));
}

fn items(text: &mut Text, heading: &str, items: &[(&str, &str)]) {
    text.heading(heading);
    for (term, meaning) in items {
        text.item(term, meaning);
    }
}

fn see_also<'a>(text: &mut Text, pages: impl IntoIterator<Item = &'a str>) {
    let pages = pages.into_iter().map(|page| format!("`{page}`(1)"));
    let pages: Vec<String> = pages.chain(["`wirecost-plan`(5)".to_owned()]).collect();
    text.heading("SEE ALSO").line([roman(pages.join(", "))]);
}

fn page_name(command: &Command) -> String {
    let name = command.get_display_name();
    name.unwrap_or_else(|| command.get_name()).to_owned()
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    format!("{}.", about.trim_end_matches('.'))
}

fn indented(line: &str) -> String {
    format!("    {line}")
}

fn lowercase_first(text: &str) -> String {
    changed_first(text, |first| first.to_lowercase().collect())
}

fn uppercase_first(text: &str) -> String {
    changed_first(text, |first| first.to_uppercase().collect())
}

fn changed_first(text: &str, change: impl Fn(char) -> String) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(change).unwrap_or_default();
    first + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::definition;

    #[test]
    fn exit_codes_with_commas_in_their_meanings_are_told_apart() {
        assert_eq!(
            exit_statuses("Exit codes: 0 fine, or so, 2 wrong, 3 not done (1 of 2 remains)."),
            [
                ("0", "fine, or so"),
                ("2", "wrong"),
                ("3", "not done (1 of 2 remains)")
            ]
        );
    }

    #[test]
    fn every_command_says_what_it_ends_with_in_words_that_can_be_told_apart() {
        for command in definition().get_subcommands().filter(|c| !c.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let (_, exit_codes) = split_exit_codes(&help);
            let codes = exit_statuses(exit_codes.unwrap_or_default());
            assert!(codes.len() >= 2, "{}: {codes:?}", command.get_name());
            for (code, _) in codes {
                assert!(
                    EXIT_STATUS.iter().any(|(known, _)| *known == code),
                    "{code}"
                );
            }
        }
    }

    #[test]
    fn every_command_for_people_has_a_page_that_says_all_of_it() {
        let definition = definition();
        let pages = pages(definition.clone());
        for command in definition.get_subcommands() {
            let name = format!("wirecost-{}", command.get_name());
            let page = pages.iter().find(|page| page.name == name);
            if command.is_hide_set() {
                assert!(page.is_none(), "{name}");
                continue;
            }
            let page = page.unwrap_or_else(|| panic!("no page {name}"));
            let below = command
                .get_subcommands()
                .filter(|one| one.get_name() != "help");
            for option in command
                .get_arguments()
                .chain(below.flat_map(Command::get_arguments))
                .filter(|argument| !argument.is_hide_set())
            {
                let shown = option
                    .get_long()
                    .map(|long| format!("\\-\\-{}", long.replace('-', "\\-")));
                let shown = shown
                    .unwrap_or_else(|| option.get_value_names().expect("named")[0].to_string());
                assert!(page.text.contains(&shown), "{name}: {shown}");
            }
            for heading in [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "\"EXIT STATUS\"",
                "EXAMPLES",
                "\"SEE ALSO\"",
            ] {
                assert!(
                    page.text.contains(&format!(".SH {heading}\n")),
                    "{name}: {heading}"
                );
            }
        }
    }

    #[test]
    fn a_page_reads_so() {
        let pages = pages(definition());
        let page = pages.iter().find(|page| page.name == "wirecost-clean");
        let text = &page.expect("page").text;
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(text);
    }
}
