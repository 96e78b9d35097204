//! The `wirecost` command: arguments -> one call into the crates.

mod agent;
mod arguments;
mod candidates;
mod check;
mod clean;
mod compare;
mod completions;
mod definition;
mod doctor;
mod dry_run;
mod examples;
mod exit;
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
mod talk;
mod tunnel;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::arguments::{Arguments, Command};
use crate::definition::definition;

fn main() -> ExitCode {
    let Arguments { command, talk } = parse();
    log::start(talk.verbose);
    match command {
        Command::Run(arguments) => run::run(&arguments, talk),
        Command::Load(arguments) => load::load(&arguments, talk),
        Command::Check(arguments) => check::check(&arguments, talk),
        Command::Report(arguments) => report::report(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Plans(arguments) => plans::plans(&arguments),
        Command::Schema(arguments) => plans::schema(&arguments),
        Command::Overhead(arguments) => overhead::overhead(&arguments),
        Command::Tunnel(arguments) => tunnel::tunnel(&arguments),
        Command::Clean(arguments) => clean::clean(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments, definition()),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::SettingsGuard(arguments) => settings_guard::settings_guard(&arguments),
    }
}

/// Reads the command line. Answers `--help`, mistakes and a shell's wish for completions, and ends.
fn parse() -> Arguments {
    completions::answer_shell(definition);
    Arguments::from_arg_matches(&definition().get_matches()).unwrap_or_else(|error| error.exit())
}

/// Prints an error for people, on standard error.
fn complain(error: &dyn std::error::Error) {
    screen::say(&format!("wirecost: {error}"));
}
