//! The `wirecost` command: arguments -> one call into the crates.

mod agent;
mod arguments;
mod binaries;
mod candidates;
mod check;
mod clean;
mod compare;
mod completions;
mod definition;
mod diagnose;
mod doctor;
mod dry_run;
mod examples;
mod existing;
mod exit;
mod failure;
mod interrupt;
mod load;
mod log;
mod man;
mod output;
mod overhead;
mod plan;
mod plans;
mod progress;
mod report;
mod run;
mod screen;
mod settings_guard;
mod study;
mod tunnel;
mod verbosity;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::arguments::{Arguments, Command};
use crate::definition::definition;
use crate::failure::Failure;

fn main() -> ExitCode {
    let Arguments { command, verbosity } = match parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    log::start(verbosity.verbose);
    let done = match command {
        Command::Run(arguments) => run::run(&arguments, verbosity),
        Command::Load(arguments) => load::load(&arguments, verbosity),
        Command::Check(arguments) => check::check(&arguments, verbosity),
        Command::Diagnose(arguments) => diagnose::diagnose(&arguments, verbosity),
        Command::Report(arguments) => report::report(&arguments, verbosity),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Study(arguments) => study::study(&arguments, verbosity),
        Command::Plans(arguments) => plans::plans(&arguments),
        Command::Schema(arguments) => plans::schema(&arguments),
        Command::Overhead(arguments) => overhead::overhead(&arguments),
        Command::Tunnel(arguments) => tunnel::tunnel(&arguments),
        Command::Clean(arguments) => clean::clean(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments, definition()),
        Command::Agent(arguments) => return agent::agent(&arguments),
        Command::SettingsGuard(arguments) => return settings_guard::settings_guard(&arguments),
    };
    done.unwrap_or_else(|failure| screen::report_failure(&failure, wants_json()))
}

/// Parses the command line. Answers a shell's request for completions, and exits. Prints `--help` or errors, and
/// returns the exit code.
fn parse() -> Result<Arguments, ExitCode> {
    completions::answer_shell(definition);
    let matches = definition().try_get_matches();
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.map_err(|error| {
        if !error.use_stderr() {
            let text = match error.render() {
                text if screen::terminal().colour => text.ansi().to_string(),
                text => text.to_string(),
            };
            let printed = screen::print_as_is(&text);
            return printed.unwrap_or_else(|failure| screen::report_failure(&failure, false));
        }
        // clap prints the error in colour where that is wanted.
        let _ = error.print();
        if wants_json() {
            let text = error.render().to_string();
            screen::print_failure(&Failure::of_command_line(&text));
        }
        exit::usage()
    })
}

/// Whether the command line asks for JSON, also where it cannot be parsed.
fn wants_json() -> bool {
    let mut words = std::env::args_os().take_while(|word| word != "--");
    words.any(|word| word == "--json")
}
