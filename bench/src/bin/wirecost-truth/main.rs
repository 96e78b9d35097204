//! Whether verdicts are about the network: what the lab alone makes different has none, and what the network makes
//! different by a tenth and more is found.
//!
//! Drives the `wirecost` program as a user does, by plans and its JSON. Not here: how often intervals hold the truth
//! (`wirecost-verdicts`, `make soak-stats`).

mod artefacts;
mod case;
mod effects;
mod judge;
mod print;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use wirecost_bench::interrupt;
use wirecost_bench::program::Wirecost;

use crate::case::Case;
use crate::run::Outcome;

/// Runs plans whose right answer is known: planted artefacts, of which no pays and costs may be spoken, and true
/// effects of a tenth and more, which have to be found.
#[derive(Debug, Parser)]
#[command(name = "wirecost-truth", version)]
#[command(
    after_help = "Exit codes: 0 every case holds, 1 one does not, 2 the command line is wrong, 3 it could not run, or not \
    to its end."
)]
struct Arguments {
    /// Only the case of this name, or those with this in their name; may be given several times
    #[arg(long = "row", value_name = "PART")]
    rows: Vec<String>,
    /// Print the cases, why their answers are right, and their plans
    #[arg(long)]
    list: bool,
    /// The wirecost program [default: WIRECOST_BINARY, or the one beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

/// A case does not hold.
const FALSE: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// It could not run, or not to its end.
const INCOMPLETE: u8 = 3;

impl Arguments {
    /// The cases wanted, all by default: the one of this name, or all with this in theirs.
    ///
    /// # Errors
    /// A part that no case's name has.
    fn cases(&self) -> Result<Vec<&'static Case>, String> {
        let all = || artefacts::CASES.iter().chain(effects::CASES);
        let means = |part: &str, case: &Case| {
            case.name == part || case.name.contains(part) && !all().any(|case| case.name == part)
        };
        for part in &self.rows {
            if !all().any(|case| means(part, case)) {
                return Err(format!(
                    "no case has `{part}` in its name: --list shows them"
                ));
            }
        }
        let wanted =
            |case: &&Case| self.rows.is_empty() || self.rows.iter().any(|part| means(part, case));
        Ok(all().filter(wanted).collect())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let cases = match arguments.cases() {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("wirecost-truth: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if arguments.list {
        print!("{}", print::list(&cases));
        return ExitCode::SUCCESS;
    }
    let (outcomes, stopped) = all(&arguments, &cases);
    if arguments.json {
        println!("{:#}", json!({ "cases": outcomes }));
    } else {
        print!("{}", print::counts(&outcomes));
    }
    if let Some(error) = stopped {
        eprintln!("wirecost-truth: {error}");
        ExitCode::from(INCOMPLETE)
    } else if outcomes.iter().all(|outcome| outcome.holds) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FALSE)
    }
}

/// Measures the cases, each told as it ends; what ended it early comes beside what there is.
fn all(arguments: &Arguments, cases: &[&'static Case]) -> (Vec<Outcome>, Option<String>) {
    let mut outcomes = Vec::new();
    let named = arguments
        .program
        .clone()
        .or_else(|| std::env::var_os("WIRECOST_BINARY").map(PathBuf::from));
    let mut measure = || {
        let interrupt = interrupt::register(INCOMPLETE)
            .map_err(|error| format!("registering for signals: {error}"))?;
        let wirecost = Wirecost::find(named.as_deref(), interrupt)?;
        for case in cases {
            let outcome = run::case(&wirecost, case)?;
            let told = print::outcome(&outcome);
            if arguments.json {
                eprint!("{told}");
            } else {
                print!("{told}");
            }
            outcomes.push(outcome);
        }
        Ok(())
    };
    let stopped: Result<(), String> = measure();
    (outcomes, stopped.err())
}

#[cfg(test)]
mod tests;
