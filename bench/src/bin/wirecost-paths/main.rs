//! `wirecost check` beside Debian's tracepath and scamper on the same black holes: what each says of the path, and how
//! long it takes to say so.
//!
//! The networks are files of the catalogue of faults (tests/faults), built in namespaces of this process's own. Not
//! here: whether every fault of the catalogue is named; that is a test. `--catalogue` shows how long each takes.

mod print;
mod run;
mod tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use wirecost_bench::program;
use wirecost_faults::{Fault, catalogue};

use crate::run::Measured;
use crate::tool::Tool;

/// Two hosts on one subnet, and a switch between them that drops without a word: what `wirecost check`, tracepath and
/// scamper say of it, and after how long.
#[derive(Debug, Parser)]
#[command(name = "wirecost-paths", version)]
#[command(
    after_help = "Exit codes: 0 every answer of `wirecost check` was right and its median within the bound, 1 not so, 2 \
    the command line is wrong, 3 it could not run."
)]
struct Arguments {
    /// Rounds: in each, every tool measures every network
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Checks of `wirecost` in a round and network
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    checks: u32,
    /// `wirecost check` only: the others take minutes
    #[arg(long)]
    alone: bool,
    /// Every file of the catalogue instead, with `wirecost check` only
    #[arg(long)]
    catalogue: bool,
    /// The wirecost program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The black holes: hosts at 9000 and a path of 8950, 9000 and 1450, 1500 and 1450.
const NETWORKS: [&str; 3] = ["switch-8950", "switch-1450-of-9000", "switch-1450-of-1500"];
/// What a check may take, agents' start included: median of wall time, seconds.
const BOUND: f64 = 0.25;
/// The same for any file of the catalogue.
const CATALOGUE_BOUND: f64 = 1.5;

fn main() -> ExitCode {
    match all(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("wirecost-paths: {error}");
            ExitCode::from(3)
        }
    }
}

fn all(arguments: &Arguments) -> Result<bool, String> {
    let program = program::find(arguments.program.as_deref())?;
    let mut every = catalogue().map_err(|error| error.to_string())?;
    // What not every kernel has: the same networks on every machine.
    every.retain(|fault| {
        fault
            .namespaces
            .values()
            .all(|made| made.devices.is_empty())
    });
    let (networks, bound): (Vec<Fault>, f64) = if arguments.catalogue {
        (every, CATALOGUE_BOUND)
    } else {
        let named = |name: &&str| every.iter().find(|fault| fault.name == **name).cloned();
        let networks: Option<Vec<Fault>> = NETWORKS.iter().map(named).collect();
        (
            networks.ok_or("the catalogue lacks a network of this bench")?,
            BOUND,
        )
    };
    let tools: &[Tool] = if arguments.alone || arguments.catalogue {
        &[]
    } else {
        &Tool::ALL
    };
    for tool in tools {
        tool.look_for()?;
    }
    let mut measured: Vec<Measured> = networks.into_iter().map(Measured::new).collect();
    for round in 1..=arguments.rounds {
        for network in &mut measured {
            network.measure(&program, arguments.checks, tools)?;
            eprintln!(
                "round {round} of {}: {}",
                arguments.rounds, network.fault.name
            );
        }
    }
    if arguments.json {
        println!("{:#}", print::document(&measured, bound));
    } else {
        print!("{}", print::text(&measured, bound));
    }
    Ok(measured.iter().all(|network| network.is_good(bound)))
}
