//! `wirecost report`: from the record alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirecost_model::record::file;
use wirecost_report::{Json, RunResult, Text};

use crate::output::{self, Output};
use crate::{complain, exit, screen};

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    directory: PathBuf,
    #[command(flatten)]
    output: Output<RunResult>,
}

pub(crate) fn report(arguments: &Report) -> ExitCode {
    match read(&arguments.directory) {
        Ok(result) => arguments.output.print(&result, &[&arguments.directory]),
        Err(code) => code,
    }
}

/// Reads a run directory, or says why not.
pub(crate) fn read(directory: &Path) -> Result<RunResult, ExitCode> {
    RunResult::read(directory).map_err(|error| {
        complain(&error);
        exit::usage()
    })
}

/// Prints a run's result on standard output, and where its page is.
pub(crate) fn print(result: &RunResult, page: Option<&Path>, json: bool) -> ExitCode {
    if json {
        return output::print(&Json, result);
    }
    let printed = output::print(&Text, result);
    match page {
        Some(page) if printed == exit::FINE => {
            screen::print(&format!("Report: {}", page.display()))
        }
        _ => printed,
    }
}

/// Writes a run's page into its directory and returns where. The result stands without it: what
/// goes wrong is a warning.
pub(crate) fn write_page(result: &RunResult, directory: &Path) -> Option<PathBuf> {
    let path = directory.join(file::REPORT);
    let warn = |error: &dyn std::fmt::Display| {
        screen::say(&format!(
            "wirecost: warning: there is no {}: {error}; `wirecost report --html` makes the page from the record",
            file::REPORT
        ));
    };
    match wirecost_report::html(&result.reading, &result.document) {
        Ok(page) => match output::write(&path, &page) {
            Ok(()) => return Some(path),
            Err(error) => warn(&error),
        },
        Err(error) => warn(&error),
    }
    None
}
