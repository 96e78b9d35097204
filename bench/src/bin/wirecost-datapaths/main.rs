//! eBPF's tunnels beside the kernel's and Open vSwitch's: what each datapath gets through, and what it takes of the
//! processors.
//!
//! Drives the `wirecost` program as a user does, a plan for each row, and reads its records: within every round the
//! datapaths take turns in random order on labs of the same devices, so that a ratio is of one round. Not here: what a
//! header costs within one datapath, which is `plans/overlay-or-not.yaml`.

mod comparison;
mod measure;
mod print;
mod row;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use wirecost_bench::interrupt;
use wirecost_bench::program::Wirecost;
use wirecost_bench::window;

use crate::measure::Report;
use crate::row::Row;

/// Measures datapaths beside each other, in interleaved pairs on the same machine.
#[derive(Debug, Parser)]
#[command(name = "wirecost-datapaths", version)]
#[command(
    after_help = "Exit codes: 0 every bound was shown, 1 one was not, 2 the command line is wrong, 3 it could not run, \
    or not to its end."
)]
struct Arguments {
    /// Pairs of each comparison; intervals need 2
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pairs: u32,
    /// Only rows with this in their name; may be given several times
    #[arg(long = "row", value_name = "PART")]
    rows: Vec<String>,
    /// Print the rows and what has to hold, and each row's plan
    #[arg(long)]
    list: bool,
    /// Measured window of each sample, seconds
    #[arg(long, default_value_t = 1.0, value_parser = window::seconds)]
    seconds: f64,
    /// Load before the window, seconds
    #[arg(long, default_value_t = 0.3, value_parser = window::seconds)]
    warmup: f64,
    /// Seed of the order within rounds [default: a random one, printed]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// The wirecost program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print the result, every pair included, as one JSON document
    #[arg(long)]
    json: bool,
    /// Print the result as a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// A bound was not shown.
const NOT_SHOWN: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// It could not run, or not to its end.
const INCOMPLETE: u8 = 3;

impl Arguments {
    /// The rows wanted, all by default.
    ///
    /// # Errors
    /// A part that no row's name has.
    fn rows(&self) -> Result<Vec<Row>, String> {
        let mut rows = Row::all();
        let has = |row: &Row, part: &String| row.name.contains(part.as_str());
        for part in &self.rows {
            if !rows.iter().any(|row| has(row, part)) {
                return Err(format!(
                    "no row has `{part}` in its name: --list shows them"
                ));
            }
        }
        rows.retain(|row| self.rows.is_empty() || self.rows.iter().any(|part| has(row, part)));
        Ok(rows)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let rows = match arguments.rows() {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("wirecost-datapaths: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if arguments.list {
        print!("{}", print::list(&rows, &arguments));
        return ExitCode::SUCCESS;
    }
    match all(&arguments, rows) {
        Ok((report, stopped)) => {
            if arguments.json {
                println!("{:#}", print::document(&report));
            } else if arguments.markdown {
                print!("{}", print::markdown(&report));
            } else {
                print!("{}", print::text(&report));
            }
            if let Some(error) = stopped {
                eprintln!("wirecost-datapaths: {error}");
                ExitCode::from(INCOMPLETE)
            } else if report.holds() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(NOT_SHOWN)
            }
        }
        Err(error) => {
            eprintln!("wirecost-datapaths: {error}");
            ExitCode::from(INCOMPLETE)
        }
    }
}

/// Measures the rows; what ended it early comes beside what there is.
fn all(arguments: &Arguments, rows: Vec<Row>) -> Result<(Report, Option<String>), String> {
    let interrupt = interrupt::register(INCOMPLETE)
        .map_err(|error| format!("registering for signals: {error}"))?;
    let wirecost = Wirecost::find(arguments.program.as_deref(), interrupt)?;
    measure::all(&wirecost, arguments, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::try_parse_from(["bench"].iter().chain(words)).expect("fine")
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn rows_are_chosen_by_parts_of_their_names() {
        let rows = parsed(&["--row", "tcp-rr", "--row", "VLAN"]).rows();
        assert_eq!(rows.expect("some").len(), 2);
        let error = parsed(&["--row", "sctp"]).rows().expect_err("none");
        insta::assert_snapshot!(error, @"no row has `sctp` in its name: --list shows them");
    }
}
