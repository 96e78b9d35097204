//! Writes a result in the chosen format, to standard output or with `--out` to a file.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use wirecost_model::record::file;
use wirecost_report::{Detail, Format, FormatError, Formatted, Terminal};

use crate::failure::{Cause, CommandResult, Failure};
use crate::{exit, screen};

/// The options of a command that prints a `T`.
#[derive(Debug, Args)]
pub(crate) struct Output<T: Formatted> {
    #[command(flatten)]
    format: SelectedFormat<T>,
    /// Write it to this file, over what is there, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The chosen format of a `T` ([`Formatted`]). Each format is an option; at most one may be given.
struct SelectedFormat<T: Formatted>(&'static dyn Format<T>);

impl<T: Formatted> fmt::Debug for SelectedFormat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Formatted> Args for SelectedFormat<T> {
    fn augment_args(command: Command) -> Command {
        let options = T::OTHERS.iter().map(|format| format.option());
        let group = ArgGroup::new("format").args(options);
        let option = |command: Command, format: &&'static dyn Format<T>| {
            command.arg(
                Arg::new(format.option())
                    .long(format.option())
                    .help(format.help())
                    .action(ArgAction::SetTrue),
            )
        };
        T::OTHERS.iter().fold(command, option).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Formatted> FromArgMatches for SelectedFormat<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut formats = T::OTHERS.iter();
        let given = formats.find(|format| matches.get_flag(format.option()));
        Ok(Self(given.map_or(T::DEFAULT, |format| *format)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Formatted> Output<T> {
    /// Prints a result or writes it to a file. Files of the records in `directories` are not overwritten.
    pub(crate) fn print(&self, of: &T, directories: &[&Path], detail: Detail) -> CommandResult {
        let Some(path) = &self.out else {
            return print(self.format.0, of, detail);
        };
        if directories
            .iter()
            .any(|directory| is_record(path, directory))
        {
            return Err(Failure::new(
                Cause::Usage,
                format!(
                    "{} is part of the record and is not written over; name another file with --out",
                    path.display()
                ),
            ));
        }
        let terminal = Terminal {
            detail,
            ..Terminal::default()
        };
        write(path, |to| self.format.0.write(of, terminal, to))?;
        Ok(exit::FINE)
    }
}

/// Prints a result on standard output.
pub(crate) fn print<T>(format: &dyn Format<T>, of: &T, detail: Detail) -> CommandResult {
    let terminal = Terminal {
        detail,
        ..screen::terminal()
    };
    screen::stream(|to| format.write(of, terminal, to))
}

/// Whether a path is a file of the record in `directory`.
fn is_record(path: &Path, directory: &Path) -> bool {
    let record = [file::RUN, file::SAMPLES, file::END, file::PLAN];
    let named = path.file_name().and_then(|name| name.to_str());
    let parent = path.parent().map(|parent| match parent.as_os_str() {
        here if here.is_empty() => Path::new("."),
        _ => parent,
    });
    let same = || Some(fs::canonicalize(parent?).ok()? == fs::canonicalize(directory).ok()?);
    named.is_some_and(|name| record.contains(&name)) && same().unwrap_or(false)
}

/// A file could not be written.
#[derive(Debug)]
pub(crate) struct WriteError {
    path: PathBuf,
    source: FormatError,
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let cause = match error.source {
            FormatError::Made(_) => Cause::Machine,
            FormatError::Output(_) => Cause::Output,
        };
        Self::of(cause, &error)
    }
}

impl std::error::Error for WriteError {}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        let source = match &self.source {
            FormatError::Made(source) => return source.fmt(f),
            FormatError::Output(source) => source,
        };
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

/// Replaces a file: writes a new file in the same directory and renames it, so that a reader sees all of it or nothing.
/// Other than regular files (a pipe, a symbolic link, a terminal) are written directly.
pub(crate) fn write(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
) -> Result<(), WriteError> {
    let at = |source| WriteError {
        path: path.into(),
        source,
    };
    let plain = fs::symlink_metadata(path).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |there| there.is_file(),
    );
    let Some(name) = path.file_name().filter(|_| plain) else {
        return print_into(path, print).map_err(at);
    };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let renamed = |()| fs::rename(&beside, path).map_err(FormatError::Output);
    let written = print_into(&beside, print).and_then(renamed);
    written.map_err(|source| {
        // An incomplete file is useless.
        let _ = fs::remove_file(&beside);
        at(source)
    })
}

fn print_into(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let mut file = BufWriter::new(File::create(path).map_err(FormatError::Output)?);
    print(&mut file)?;
    file.flush().map_err(FormatError::Output)
}
