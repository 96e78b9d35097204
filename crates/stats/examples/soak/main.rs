//! Reruns every simulation that docs/statistics.md rests on, from fixed seeds, and prints its tables.
//!
//!     cargo run --release -p wirecost-stats --example soak [-- EXPERIMENTS | dip]
//!
//! EXPERIMENTS (4000) is the number per line; with 4000 and more, a bound that does not hold is named
//! and the exit code is 1. `dip` prints the table of the dip's quantiles instead.

mod candidates;
mod experiment;
mod fixed;
mod noise;
mod others;
mod page;
mod rule;
mod several;
mod validity;

use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("dip") {
        validity::dip_table();
        return ExitCode::SUCCESS;
    }
    let experiments = match argument.as_deref().unwrap_or("4000").parse() {
        Ok(experiments) if experiments > 0 => experiments,
        _ => {
            eprintln!("soak: the number of experiments must be a whole number above 0, or `dip`");
            return ExitCode::from(2);
        }
    };
    println!("{experiments} experiments a line.");
    rule::rules(experiments);
    let mut broken = rule::null(experiments);
    rule::truths(experiments);
    rule::several(experiments);
    rule::lopsided(experiments);
    rule::aims(experiments);
    others::power(experiments);
    rule::forecast(experiments);
    others::methods(experiments);
    broken.extend(others::family(experiments));
    others::checks(experiments);
    others::figures(experiments);
    if experiments >= 4000 && !broken.is_empty() {
        for bound in broken {
            eprintln!("soak: {bound}");
        }
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
