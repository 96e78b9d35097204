//! `wirecost report`: from the record alone.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirecost_model::record::file;
use wirecost_report::{Document, Reading, Terminal};

use crate::{complain, exit, screen};

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of one form, and clap lets one through"
)]
pub(crate) struct Report {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    pub(crate) directory: PathBuf,
    /// One HTML file with charts, which needs no network
    #[arg(long, group = "form")]
    pub(crate) html: bool,
    /// Markdown for a pull request or a wiki
    #[arg(long, group = "form")]
    pub(crate) markdown: bool,
    /// Every sample as a row of CSV
    #[arg(long, group = "form")]
    pub(crate) csv: bool,
    /// The result as one JSON document
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// What other people's rules make of the same samples (pbench, trimmed, worst-of, netperf)
    #[arg(long, group = "form")]
    pub(crate) rules: bool,
    /// Write it to this file, over what is there, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// A record, and what was worked out of it.
pub(crate) struct Result {
    pub(crate) reading: Reading,
    pub(crate) document: Document,
}

/// Without a terminal there is room, and no colour.
pub(crate) const FILE: Terminal = Terminal {
    width: 120,
    colour: false,
};

pub(crate) fn report(arguments: &Report) -> ExitCode {
    let result = match read(&arguments.directory) {
        Ok(result) => result,
        Err(code) => return code,
    };
    let Some(path) = &arguments.out else {
        return match text(&result, arguments, screen::terminal()) {
            Ok(text) => screen::print_as_is(&text),
            Err(code) => code,
        };
    };
    if is_record(path, &arguments.directory) {
        return refuse_record(path);
    }
    match text(&result, arguments, FILE).map(|text| write(path, &text)) {
        Ok(Ok(())) => exit::FINE,
        Ok(Err(error)) => {
            screen::say(&format!("wirecost: {error}"));
            exit::incomplete()
        }
        Err(code) => code,
    }
}

/// Says that a file of a record is not written over.
pub(crate) fn refuse_record(path: &Path) -> ExitCode {
    screen::say(&format!(
        "wirecost: {} is part of the record and is not written over; name another file with --out",
        path.display()
    ));
    exit::usage()
}

/// Whether a path is of a file that the result is made from.
pub(crate) fn is_record(path: &Path, directory: &Path) -> bool {
    let record = [file::RUN, file::SAMPLES, file::END, file::PLAN];
    let named = path.file_name().and_then(|name| name.to_str());
    let parent = path.parent().map(|parent| match parent.as_os_str() {
        here if here.is_empty() => Path::new("."),
        _ => parent,
    });
    let same = || Some(fs::canonicalize(parent?).ok()? == fs::canonicalize(directory).ok()?);
    named.is_some_and(|name| record.contains(&name)) && same().unwrap_or(false)
}

/// Reads a run directory, or says why not.
pub(crate) fn read(directory: &Path) -> std::result::Result<Result, ExitCode> {
    match wirecost_report::read(directory) {
        Ok(reading) => {
            let warnings = reading.warnings.clone();
            let document = wirecost_report::document(&reading.run, directory, warnings);
            Ok(Result { reading, document })
        }
        Err(error) => {
            complain(&error);
            Err(exit::usage())
        }
    }
}

/// The result in the form that was asked for, line ends included.
fn text(
    result: &Result,
    form: &Report,
    terminal: Terminal,
) -> std::result::Result<String, ExitCode> {
    let broken = |error: &dyn std::error::Error| {
        complain(error);
        exit::incomplete()
    };
    let document = &result.document;
    if form.html {
        wirecost_report::html(&result.reading, document).map_err(|error| broken(&error))
    } else if form.csv {
        wirecost_report::csv(&result.reading.run).map_err(|error| broken(&error))
    } else if form.json {
        let json = serde_json::to_string_pretty(document).map_err(|error| broken(&error))?;
        Ok(json + "\n")
    } else if form.markdown {
        Ok(wirecost_report::markdown(document))
    } else if form.rules {
        Ok(wirecost_report::rules(document, terminal))
    } else {
        Ok(wirecost_report::terminal(document, terminal))
    }
}

/// Prints a run's result on standard output, and where its page is.
pub(crate) fn print(document: &Document, page: Option<&Path>, json: bool) -> ExitCode {
    if json {
        return screen::print_json(document);
    }
    let mut text = wirecost_report::terminal(document, screen::terminal());
    if let Some(page) = page {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Report: {}", page.display());
    }
    screen::print_as_is(&text)
}

/// Writes a run's page into its directory and returns where. The result stands without it: what
/// goes wrong is a warning.
pub(crate) fn write_page(result: &Result, directory: &Path) -> Option<PathBuf> {
    let path = directory.join(file::REPORT);
    let warn = |error: &dyn std::fmt::Display| {
        screen::say(&format!(
            "wirecost: warning: there is no {}: {error}; `wirecost report --html` makes the page from the record",
            file::REPORT
        ));
    };
    match wirecost_report::html(&result.reading, &result.document) {
        Ok(page) => match write(&path, &page) {
            Ok(()) => return Some(path),
            Err(error) => warn(&error),
        },
        Err(error) => warn(&error),
    }
    None
}

/// A file could not be written.
#[derive(Debug)]
pub(crate) struct WriteError {
    path: PathBuf,
    source: io::Error,
}

impl std::error::Error for WriteError {}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, source) = (self.path.display(), &self.source);
        let advice = match source.kind() {
            io::ErrorKind::NotFound => ": make its directory first",
            io::ErrorKind::IsADirectory => ": name a file in it",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ": make room, or name another place"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ": name a place you may write to"
            }
            _ => "",
        };
        write!(f, "cannot write {path}: {source}{advice}")
    }
}

/// Writes a file over what is there: beside and renamed, so that a reader sees all of it or none.
/// What is not a plain file (a pipe, a link, a terminal) is written as it is.
pub(crate) fn write(path: &Path, text: &str) -> std::result::Result<(), WriteError> {
    let at = |source| WriteError {
        path: path.into(),
        source,
    };
    let plain = fs::symlink_metadata(path).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |there| there.is_file(),
    );
    let Some(name) = path.file_name().filter(|_| plain) else {
        return fs::write(path, text).map_err(at);
    };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // What there is of it is of no use to anybody.
        let _ = fs::remove_file(&beside);
        at(source)
    })
}
