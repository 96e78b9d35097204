//! `wirecost report`: from the record alone.

use std::path::{Path, PathBuf};

use clap::Args;
use wirecost_model::record::file;
use wirecost_report::{Detail, FormatError, Json, ReadError, RunResult, Text};

use crate::failure::{Cause, CommandResult, Failure};
use crate::output::{self, Output};
use crate::screen;
use crate::verbosity::Verbosity;

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    directory: PathBuf,
    #[command(flatten)]
    detail: DetailOption,
    #[command(flatten)]
    output: Output<RunResult>,
}

/// How much of a result is printed as text.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct DetailOption {
    /// Print everything as text: intervals, second opinions, outliers, rules of others, legends (--quiet: the answer
    /// alone)
    #[arg(long)]
    pub(crate) full: bool,
}

impl DetailOption {
    /// With `--quiet` the answer alone, unless everything is asked for.
    pub(crate) const fn detail(self, verbosity: Verbosity) -> Detail {
        match (self.full, verbosity.quiet) {
            (true, _) => Detail::Full,
            (false, true) => Detail::Answer,
            (false, false) => Detail::Usual,
        }
    }
}

pub(crate) fn report(arguments: &Report, verbosity: Verbosity) -> CommandResult {
    let result = read(&arguments.directory)?;
    let detail = arguments.detail.detail(verbosity);
    arguments
        .output
        .print(&result, &[&arguments.directory], detail)
}

/// Reads a run directory, or says why not.
pub(crate) fn read(directory: &Path) -> Result<RunResult, Failure> {
    RunResult::read(directory).map_err(|error| {
        let cause = match error {
            ReadError::TooLarge { .. } => Cause::Machine,
            _ => Cause::Record,
        };
        Failure::of(cause, &error)
    })
}

/// Prints a run's result on standard output, and where its page is.
pub(crate) fn print(
    result: &RunResult,
    page: Option<&Path>,
    json: bool,
    detail: Detail,
) -> CommandResult {
    if json {
        return output::print(&Json, result, detail);
    }
    let printed = output::print(&Text, result, detail)?;
    match page {
        Some(page) if detail != Detail::Answer => {
            screen::print(&format!("Report: {}", page.display()))
        }
        _ => Ok(printed),
    }
}

/// Writes a run's page into its directory and returns where. The result stands without it: what
/// goes wrong is a warning.
pub(crate) fn write_page(result: &RunResult, directory: &Path) -> Option<PathBuf> {
    let path = directory.join(file::REPORT);
    let warn = |error: &dyn std::fmt::Display| {
        screen::print_stderr(&format!(
            "wirecost: warning: there is no {}: {error}; `wirecost report --html` makes the page from the record",
            file::REPORT
        ));
    };
    let page = wirecost_report::html(&result.reading, &result.document);
    let written = output::write(&path, |to| {
        let page = page.map_err(|error| FormatError::Made(Box::new(error)))?;
        to.write_all(page.as_bytes()).map_err(FormatError::Output)
    });
    match written {
        Ok(()) => return Some(path),
        Err(error) => warn(&error),
    }
    None
}
