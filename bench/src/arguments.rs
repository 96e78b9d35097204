//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::error::BenchError;

/// Measures the built-in TCP stream load beside iperf3, in interleaved pairs on the same lab.
#[derive(Debug, Parser)]
#[command(name = "wirecost-bench", version)]
#[command(after_help = "Exit codes: 0 every bound held, 1 a bound was missed, \
    2 the command line is wrong, 3 it could not run, or not to its end.")]
pub(crate) struct Arguments {
    /// Pairs in each configuration; intervals need 2
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) pairs: u32,
    /// Measured window of each sample, seconds
    #[arg(long, default_value_t = 1.0, value_parser = window)]
    pub(crate) seconds: f64,
    /// Load before the window, seconds, not measured
    #[arg(long, default_value_t = 0.4, value_parser = window)]
    pub(crate) warmup: f64,
    /// Seed of the order within the pairs [default: a random one, printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u32>,
    /// The wirecost program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print the result, every sample included, as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl Arguments {
    /// The `wirecost` program.
    pub(crate) fn program(&self) -> Result<PathBuf, BenchError> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()
                .map_err(BenchError::machine("looking for this program"))?
                .with_file_name("wirecost"),
        };
        if program.is_file() {
            Ok(program)
        } else {
            Err(BenchError::NoProgram(program))
        }
    }
}

fn window(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("write seconds between 0.1 and 60".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_single_pair_and_an_endless_window_are_refused() {
        for words in [["--pairs", "1"], ["--seconds", "inf"], ["--seconds", "0"]] {
            assert!(Arguments::try_parse_from(["bench"].iter().chain(&words)).is_err());
        }
    }
}
