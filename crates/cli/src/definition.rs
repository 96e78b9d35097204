//! The definition of the command line. Parsing, `--help`, manual pages and completions all use [`definition()`], so
//! that they agree.

use clap::{Command, CommandFactory, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::arguments::Arguments;
use crate::exit::{EXIT_CODES_USUALLY, split_exit_codes};
use crate::{candidates, examples};

/// The command line as its structs declare it, with examples, exit codes and completion candidates.
pub(crate) fn definition() -> Command {
    Arguments::command().mut_subcommands(|command| {
        let command = completed(command).mut_subcommands(completed);
        if command.is_hide_set() {
            command
        } else {
            let ending = ending(&command);
            command.after_help(ending)
        }
    })
}

/// Adds the completion candidates of a command's arguments, chosen by the arguments' value names.
fn completed(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|argument| {
        let called = argument.get_value_names().and_then(|names| names.first());
        let of = match (name.as_str(), called.map(clap::builder::Str::as_str)) {
            ("plans", Some("NAME")) => candidates::builtin_plans,
            (_, Some("STUDY")) => candidates::studies,
            ("up", Some("ENCAPSULATION")) => candidates::tunnel_words,
            ("down", Some("NAME")) => candidates::tunnels,
            (_, Some("ENCAPSULATION" | "FORMAT")) => candidates::stacks,
            (_, Some("PLAN")) => candidates::plans,
            (_, Some("FROM" | "TO")) => candidates::hosts,
            (_, Some("RUN_DIR" | "BEFORE" | "AFTER")) => candidates::runs,
            (_, Some("DIR")) => return argument.value_hint(ValueHint::DirPath),
            (_, Some("FILE")) => return argument.value_hint(ValueHint::FilePath),
            _ => return argument,
        };
        argument.add(ArgValueCompleter::new(of))
    })
}

/// The text below a command's options: its own text, examples, exit codes.
fn ending(command: &Command) -> String {
    let own = command.get_after_help().map(ToString::to_string);
    let own = own.unwrap_or_default();
    let (words, exit_codes) = split_exit_codes(&own);
    let examples = examples::shown(command.get_name());
    let parts = [words, &examples, exit_codes.unwrap_or(EXIT_CODES_USUALLY)];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod documents;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::EXIT_CODES;

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
}
