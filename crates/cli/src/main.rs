//! The `wirecost` command: arguments -> one call into the rooms.

mod agent;
mod arguments;
mod check;
mod clean;
mod compare;
mod completions;
mod definition;
mod doctor;
mod dry_run;
mod examples;
mod interrupt;
mod keeper;
mod load;
mod log;
mod man;
mod overhead;
mod plan;
mod plans;
mod progress;
mod report;
mod run;
mod screen;
mod tunnel;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};

/// Exit codes are part of the contract (docs/commands.md).
mod exit {
    use std::process::ExitCode;

    /// Nothing to complain about.
    pub(crate) const FINE: ExitCode = ExitCode::SUCCESS;

    /// A finding.
    pub(crate) fn finding() -> ExitCode {
        ExitCode::from(1)
    }

    /// A regression.
    pub(crate) fn regression() -> ExitCode {
        ExitCode::from(1)
    }

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
    let Arguments { command, talk } = definition::parse();
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
        Command::Man(arguments) => man::man(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Keeper(arguments) => keeper::keeper(&arguments),
    }
}

/// Prints an error for people, on standard error.
fn complain(error: &dyn std::error::Error) {
    screen::say(&format!("wirecost: {error}"));
}
