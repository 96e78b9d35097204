//! The `wirecost` command: arguments -> one call into the rooms.

mod agent;
mod arguments;
mod clean;
mod completions;
mod definition;
mod examples;
mod man;
mod progress;
mod report;
mod run;
mod screen;

use std::process::ExitCode;

use crate::arguments::Command;

/// Exit codes are part of the contract (docs/commands.md).
mod exit {
    use std::process::ExitCode;

    /// Nothing to complain about.
    pub(crate) const FINE: ExitCode = ExitCode::SUCCESS;

    /// The command line, a plan or a record cannot be used as it is.
    pub(crate) fn usage() -> ExitCode {
        ExitCode::from(2)
    }

    /// The work could not be completed.
    pub(crate) fn incomplete() -> ExitCode {
        ExitCode::from(3)
    }
}

fn main() -> ExitCode {
    match definition::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Clean(arguments) => clean::clean(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
    }
}

/// Prints an error for people, on standard error.
fn complain(error: &dyn std::error::Error) {
    screen::say(&format!("wirecost: {error}"));
}
