//! The built-in loads beside other generators: same lab, same options, same cores, same meter.
//!
//! A verdict is about the network only as long as the load's own cost does not get in the way;
//! this is where that is shown. Not here: anything that `wirecost` itself needs to run.

mod arguments;
mod bare;
mod bound;
mod comparison;
mod error;
mod guest;
mod helper;
mod lab;
mod load;
mod looper;
mod measure;
mod output;
mod peer;
mod process;
mod random;
mod report;
mod rounds;
mod row;
mod row_rounds;
mod sample;
mod traffic_counter;

use std::process::ExitCode;

use clap::Parser;
use wirecost_bench::interrupt;
use wirecost_model::plan::Cores;

use crate::arguments::{Arguments, Part};
use crate::error::BenchError;

/// A bound was missed.
const MISSED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// It could not run, or not to its end.
const INCOMPLETE: u8 = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let part = match &arguments.part {
        Some(Part::Load(load)) => Some(load::run(load)),
        Some(Part::Bare(bare)) => Some(bare::run(bare)),
        Some(Part::TrafficCounter) => Some(traffic_counter::run()),
        Some(Part::Looper) => Some(looper::run()),
        None => None,
    };
    if let Some(done) = part {
        return done.map_or_else(
            |error| {
                eprintln!("{error}");
                ExitCode::from(INCOMPLETE)
            },
            |()| ExitCode::SUCCESS,
        );
    }
    match bench(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wirecost-bench: {error}");
            ExitCode::from(match error {
                BenchError::NoRow(_) | BenchError::NoPeer { .. } => USAGE,
                _ => INCOMPLETE,
            })
        }
    }
}

fn bench(arguments: &Arguments) -> Result<ExitCode, BenchError> {
    if arguments.list {
        let rows = arguments.rows(Cores::Split)?;
        print!("{}", output::list(&rows, &arguments.peers()?));
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt =
        interrupt::register(INCOMPLETE).map_err(BenchError::machine("registering for signals"))?;
    process::look_for_starters()?;
    let (report, stopped) = rounds::run(arguments, &interrupt)?;
    if arguments.json {
        println!("{}", output::json(&report)?);
    } else if arguments.markdown {
        print!("{}", output::markdown(&report));
    } else {
        print!("{}", output::text(&report));
    }
    if let Some(error) = stopped {
        return Err(error);
    }
    let mut outcomes = report.rows.iter().flat_map(|row| &row.outcomes);
    Ok(if outcomes.all(|outcome| outcome.what.holds()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(MISSED)
    })
}
