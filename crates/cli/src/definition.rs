//! What every use of the command line shares: parsing, `--help`, manual pages and completions are
//! all made from [`definition()`], so that a command says the same everywhere.

use clap::{Command, CommandFactory, FromArgMatches, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::arguments::Arguments;
use crate::{completions, examples};

/// How the part of a help text begins that says what a command's exit codes mean.
pub(crate) const EXIT_CODES: &str = "Exit codes:";
/// What they mean for a command that does not say it itself (docs/commands.md).
const USUAL_EXIT_CODES: &str = "Exit codes: 0 fine, 2 the command line is wrong, \
    3 the work could not be completed.";

/// Reads the command line. Answers `--help`, mistakes and a shell's wish for completions, and ends.
pub(crate) fn parse() -> Arguments {
    completions::answer_shell();
    Arguments::from_arg_matches(&definition().get_matches()).unwrap_or_else(|error| error.exit())
}

/// The command line as its structs declare it, with examples, the meaning of the exit codes, and
/// what a shell completes.
pub(crate) fn definition() -> Command {
    Arguments::command().mut_subcommands(|command| {
        let of_plans = command.get_name() == "plans";
        let command = command.mut_args(|argument| {
            // What a value is called says what it is.
            let called = argument.get_value_names().and_then(|names| names.first());
            match called.map(clap::builder::Str::as_str) {
                Some("NAME") if of_plans => {
                    argument.add(ArgValueCompleter::new(completions::builtin_plans))
                }
                Some("PLAN") => argument.add(ArgValueCompleter::new(completions::plans)),
                Some("FROM" | "TO") => argument.add(ArgValueCompleter::new(completions::hosts)),
                Some("RUN_DIR") => argument.add(ArgValueCompleter::new(completions::runs)),
                Some("DIR") => argument.value_hint(ValueHint::DirPath),
                Some("FILE") => argument.value_hint(ValueHint::FilePath),
                _ => argument,
            }
        });
        if command.is_hide_set() {
            command
        } else {
            let ending = ending(&command);
            command.after_help(ending)
        }
    })
}

/// A command's `after_help` as (everything else, what its exit codes mean).
pub(crate) fn split_exit_codes(after_help: &str) -> (&str, Option<&str>) {
    match after_help.find(EXIT_CODES) {
        Some(at) => (after_help[..at].trim_end(), Some(after_help[at..].trim())),
        None => (after_help.trim_end(), None),
    }
}

/// What stands below a command's options: its own words, examples, exit codes.
fn ending(command: &Command) -> String {
    let own = command.get_after_help().map(ToString::to_string);
    let own = own.unwrap_or_default();
    let (words, exit_codes) = split_exit_codes(&own);
    let examples = examples::shown(command.get_name());
    let parts = [words, &examples, exit_codes.unwrap_or(USUAL_EXIT_CODES)];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        definition().debug_assert();
    }

    #[test]
    fn every_command_for_people_says_its_exit_codes_last_and_once() {
        for command in definition().get_subcommands().filter(|c| !c.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let last = help.split("\n\n").last().unwrap_or_default();
            assert!(
                last.starts_with(EXIT_CODES),
                "{}: {help}",
                command.get_name()
            );
            assert_eq!(
                help.matches(EXIT_CODES).count(),
                1,
                "{}",
                command.get_name()
            );
        }
    }

    #[test]
    fn exit_codes_are_found_at_the_end_of_other_words() {
        let (words, exit_codes) = split_exit_codes("More.\n  x  y\nExit codes: 0 a, 2 b.");
        assert_eq!(
            (words, exit_codes),
            ("More.\n  x  y", Some("Exit codes: 0 a, 2 b."))
        );
        assert_eq!(split_exit_codes("More.\n"), ("More.", None));
    }
}
