//! The built-in TCP stream load beside iperf3: same lab, same options, same cores, same meter.
//!
//! A verdict is about the network only as long as the load's own cost does not get in the way;
//! this is where that is shown. Not here: anything that `wirecost` itself needs to run.

mod arguments;
mod comparison;
mod configuration;
mod error;
mod iperf3;
mod measure;
mod output;
mod pairs;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::arguments::Arguments;
use crate::error::BenchError;

/// A bound was missed.
const MISSED: u8 = 1;
/// It could not run, or not to its end.
const INCOMPLETE: u8 = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match bench(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wirecost-bench: {error}");
            ExitCode::from(INCOMPLETE)
        }
    }
}

fn bench(arguments: &Arguments) -> Result<ExitCode, BenchError> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A second Ctrl-C ends the program at once; the lab and iperf3 go with it.
        let code = i32::from(INCOMPLETE);
        signal_hook::flag::register_conditional_shutdown(signal, code, interrupt.clone())
            .and_then(|_| signal_hook::flag::register(signal, interrupt.clone()))
            .map_err(BenchError::machine("registering for signals"))?;
    }
    let (report, stopped) = pairs::run(arguments, &interrupt)?;
    if arguments.json {
        println!("{}", output::json(&report)?);
    } else {
        print!("{}", output::text(&report));
    }
    if let Some(error) = stopped {
        return Err(error);
    }
    let holds = report
        .comparisons
        .iter()
        .all(|comparison| comparison.judgement.holds());
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(MISSED)
    })
}
