//! `wirecost man`: writes the manual pages, from the command line's definition and the plan's keys.

mod command;
mod plan;
mod text;

use std::path::PathBuf;
use std::{fs, io};

use clap::{Args, Command};

use crate::exit;
use crate::failure::{Cause, CommandResult, Failure};

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory to write them to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// One manual page.
#[derive(Debug)]
struct Page {
    /// Name without section: `wirecost-run`.
    name: String,
    section: u8,
    /// The page in roff.
    text: String,
}

impl Page {
    fn file(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }
}

/// All pages: the program's, its commands', the plan's.
fn pages(definition: Command) -> Vec<Page> {
    let mut pages = command::pages(definition);
    pages.push(plan::page());
    pages
}

pub(crate) fn man(arguments: &Man, definition: Command) -> CommandResult {
    let directory = &arguments.out;
    let written = fs::create_dir_all(directory).and_then(|()| {
        pages(definition)
            .iter()
            .try_for_each(|page| fs::write(directory.join(page.file()), &page.text))
    });
    written.map_err(|error| cannot_write(directory, &error))?;
    Ok(exit::FINE)
}

fn cannot_write(directory: &std::path::Path, error: &io::Error) -> Failure {
    let message = format!(
        "cannot write manual pages to {}: {error}; name another directory with --out",
        directory.display()
    );
    Failure::new(Cause::Output, message)
}
