//! The command lines that README.md and docs/ show are those that the program takes.

use std::fs;
use std::path::Path;

use clap::{Arg, Command};
use wirecost_model::host::split_words;

use super::definition;

/// Pages that are left out: one shows an option that it tells how to add, a program printed the other.
const LEFT_OUT: [&str; 2] = ["extending.md", "studies.md"];

/// README.md and the pages of docs/, by name.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("docs");
    let mut paths: Vec<_> = docs
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .filter(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)))
        .collect();
    paths.push(root.join("README.md"));
    let pages = paths.iter().map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read_to_string(path).expect("a page"))
    });
    pages.collect()
}

/// The lines of a page's blocks of code, fenced or indented by four columns, with their numbers.
fn block_lines(page: &str) -> Vec<(usize, &str)> {
    let (mut fenced, mut lines) = (false, Vec::new());
    for (at, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// The `wirecost` command of a line, without prompt, comment, redirection and pipe.
fn command_line(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let ends = [" #", " > ", " | "];
    let ends = ends.into_iter().filter_map(|end| line.find(end));
    let line = &line[..ends.min().unwrap_or(line.len())];
    line.starts_with("wirecost ").then_some(line)
}

/// The code spans of a page's text, each with single blanks.
fn spans(page: &str) -> Vec<String> {
    let mut text = String::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            text.push_str(line);
            text.push('\n');
        }
    }
    let mut spans = Vec::new();
    for paragraph in text.split("\n\n") {
        for span in paragraph.split('`').skip(1).step_by(2) {
            let words: Vec<&str> = span.split_whitespace().collect();
            spans.push(words.join(" "));
        }
    }
    spans
}

/// What a `wirecost` command names that the program does not have: a command or an option.
fn unknown(definition: &Command, span: &str) -> Option<String> {
    let mut command = definition;
    for (at, word) in span.split(' ').skip(1).enumerate() {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None if at == 0 && !word.starts_with('-') => return Some(word.to_owned()),
            None => {}
        }
    }
    let is_of_option =
        |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let mut options = span
        .split(|sign: char| !is_of_option(sign))
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|option| !option.is_empty());
    let is_known = |option: &str| {
        command.get_arguments().any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(option) || aliases.contains(&option)
        })
    };
    options.find(|option| !is_known(option)).map(str::to_owned)
}

#[test]
fn every_command_line_of_the_documents_can_be_typed() {
    let mut seen = 0;
    for (name, page) in pages() {
        for (number, line) in block_lines(&page) {
            let Some(line) = command_line(line) else {
                continue;
            };
            let words = split_words(line).expect("quotes in pairs");
            let parsed = definition().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{name}:{number}: {:?}", parsed.err());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} lines");
}

#[test]
fn every_command_and_option_in_the_text_of_the_documents_is_there() {
    let mut definition = definition();
    definition.build();
    let mut seen = 0;
    for (name, page) in pages() {
        for span in spans(&page) {
            if span.starts_with("wirecost ") {
                assert_eq!(unknown(&definition, &span), None, "{name}: `{span}`");
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen} spans");
}

/// The options of a command and of the commands in it that are not hidden.
fn options(command: &Command) -> Vec<&str> {
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let inner = command.get_subcommands().filter(|one| !one.is_hide_set());
    let own = shown.filter_map(Arg::get_long);
    own.chain(inner.flat_map(options)).collect()
}

#[test]
fn every_option_is_in_the_page_of_commands() {
    let pages = pages();
    let page = pages.iter().find(|(name, _)| name == "commands.md");
    let (_, page) = page.expect("docs/commands.md");
    let definition = definition();
    let is_of_option = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    let words: Vec<&str> = page.split(|sign: char| !is_of_option(sign)).collect();
    for option in options(&definition) {
        let option = format!("--{option}");
        assert!(words.contains(&option.as_str()), "{option} is not there");
    }
}

#[test]
fn what_the_program_does_not_have_is_found() {
    let mut definition = definition();
    definition.build();
    for (span, found) in [
        ("wirecost run [PLAN] [--seed NUMBER] [--json]", None),
        ("wirecost tunnel up vxlan --peer ADDRESS -q", None),
        ("wirecost load A B --connections 4 --quiet", None),
        ("wirecost --help", None),
        ("wirecost walk", Some("walk")),
        ("wirecost report RUN_DIR [--html|--word]", Some("word")),
        ("wirecost tunnel down --peer ADDRESS", Some("peer")),
    ] {
        assert_eq!(unknown(&definition, span).as_deref(), found, "{span}");
    }
    let line = "    $ wirecost plans NAME > plan.yaml  # a copy";
    assert_eq!(command_line(line), Some("wirecost plans NAME"));
}
