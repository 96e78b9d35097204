//! `wirecost report`: from the record alone.

use std::path::Path;
use std::process::ExitCode;

use wirecost_report::Document;

use crate::arguments::Report;
use crate::{complain, exit, screen};

pub(crate) fn report(arguments: &Report) -> ExitCode {
    match read(&arguments.directory) {
        Ok(document) => print(&document, arguments.json),
        Err(code) => code,
    }
}

/// Reads a run directory, or says why not.
pub(crate) fn read(directory: &Path) -> Result<Document, ExitCode> {
    wirecost_report::read(directory)
        .map(|reading| wirecost_report::document(&reading.run, directory, reading.warnings))
        .map_err(|error| {
            complain(&error);
            exit::usage()
        })
}

/// Prints a result on standard output.
pub(crate) fn print(document: &Document, json: bool) -> ExitCode {
    if json {
        return screen::print_json(document);
    }
    let text = wirecost_report::terminal(document, screen::terminal());
    screen::print(text.trim_end())
}
