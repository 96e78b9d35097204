//! Verdicts on this machine where the truth is known: what differs in nothing, and what is a tenth slower.
//!
//! Drives the `wirecost` program as a user does, by plans on its standard input and its JSON, so that what is
//! judged is the whole of it. Not here: simulated experiments (`make soak-stats`).

mod known;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use wirecost_bench::interrupt;
use wirecost_bench::program::Wirecost;

/// Runs whose right answer is known: the same cell twice, and a path that is a tenth slower; and how long the
/// built-in plan takes until it is known.
#[derive(Debug, Parser)]
#[command(name = "wirecost-verdicts", version)]
#[command(
    after_help = "Exit codes: 0 as it should be, 1 not so, 2 the command line is wrong, 3 it could not run."
)]
struct Arguments {
    /// Runs in which one cell is measured twice (A/A)
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=1000))]
    same: u32,
    /// Runs of a cell beside itself behind a line of nine tenths of its throughput
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    slower: u32,
    /// Runs of the built-in plan until every verdict is known
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100))]
    until_known: u32,
    /// The wirecost program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// It could not run, or not to its end.
const INCOMPLETE: u8 = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match all(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("wirecost-verdicts: {error}");
            ExitCode::from(INCOMPLETE)
        }
    }
}

fn all(arguments: &Arguments) -> Result<bool, String> {
    let interrupt = interrupt::register(INCOMPLETE)
        .map_err(|error| format!("registering for signals: {error}"))?;
    let wirecost = Wirecost::find(arguments.program.as_deref(), interrupt)?;
    let mut good = true;
    if arguments.same > 0 {
        good &= known::same(&wirecost, arguments.same)?;
    }
    if arguments.slower > 0 {
        good &= known::slower(&wirecost, arguments.slower)?;
    }
    for _ in 0..arguments.until_known {
        known::until_known(&wirecost)?;
    }
    Ok(good)
}
