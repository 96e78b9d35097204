//! Journals of the changes on an existing host, written before each change, so that `wirecost clean --host` can undo
//! the changes after the process that should have done so was killed, or the host was restarted.
//!
//! One file for each process, with the steps that are still to be undone; they are undone in reverse order. The file is
//! replaced as a whole, and synced to the disk (fsync(2)) before the change is made.

mod directory;
mod left_journals;
mod machine;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use super::undo::Undo;
use crate::orphan::Owner;

pub use left_journals::remove_unfinished_journals;
pub(crate) use left_journals::{LeftJournal, left};

/// Content of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The process that changes the settings, as [`Owner::argument`] writes it.
    process: String,
    /// The boot id (/proc/sys/kernel/random/boot_id).
    boot: String,
    /// [`machine::this`]; empty in journals of version 0.1.0.
    #[serde(default)]
    machine: String,
    /// Inode of the process's network namespace.
    netns: u64,
    /// Name of the host in messages.
    pub(crate) place: String,
    /// Name of the device of [`super::SettingsTarget::Existing`].
    pub(crate) device: String,
    /// Steps to be undone, in the order of the changes.
    pub(crate) undo: Vec<Undo>,
}

/// The journal of the calling process.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    entry: Entry,
}

fn boot() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

fn netns() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

impl Journal {
    /// Creates the journal of this process; nothing is written yet.
    pub(crate) fn new(place: &str, device: &str) -> io::Result<Self> {
        let (process, machine) = (Owner::this()?.argument(), machine::this()?);
        Ok(Self {
            path: directory::find()?.join(file_name(&process, &machine, "json")),
            entry: Entry {
                process,
                boot: boot()?,
                machine,
                netns: netns()?,
                place: place.to_owned(),
                device: device.to_owned(),
                undo: Vec::new(),
            },
        })
    }

    /// Writes `undo` to the disk, or removes the file where `undo` is empty. Fails where another process has changed
    /// settings in this network namespace.
    pub(crate) fn store(&mut self, undo: &[Undo]) -> Result<(), SettingsError> {
        let begins = self.entry.undo.is_empty() && !undo.is_empty();
        self.entry.undo = undo.to_vec();
        let written = if undo.is_empty() {
            fs::remove_file(&self.path).or_else(missing_is_fine)
        } else {
            write(&self.path, &self.entry, None)
        };
        written.map_err(|source| SettingsError::JournalNotWritten {
            path: self.path.clone(),
            source,
        })?;
        // Two processes that undo alternately would each restore what the other had set. If both begin at once, each
        // sees the other's journal.
        match begins.then(|| self.another()).flatten() {
            Some(process) => {
                self.entry.undo.clear();
                let _ = fs::remove_file(&self.path);
                Err(SettingsError::AnotherRun { process })
            }
            None => Ok(()),
        }
    }

    /// Process id of a living process that has changed something in this network namespace.
    fn another(&self) -> Option<String> {
        let entries = fs::read_dir(self.path.parent()?).ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        let others = paths.filter(|path| *path != self.path && is_journal(path));
        let entries = others.filter_map(|path| {
            let bytes = fs::read(path).ok()?;
            serde_json::from_slice::<Entry>(&bytes).ok()
        });
        let mut living = entries.filter(|entry| {
            let lives = Owner::parse(&entry.process).is_some_and(Owner::is_alive);
            entry.boot == self.entry.boot && entry.netns == self.entry.netns && lives
        });
        let other = living.next()?;
        other.process.split(':').next().map(str::to_owned)
    }
}

/// Name of a file of a process, as [`Owner::argument`] writes it, on a machine, as [`machine::this`] writes it.
fn file_name(process: &str, machine: &str, extension: &str) -> String {
    let process = process.replace(':', "-");
    if machine.is_empty() {
        return format!("{process}.{extension}");
    }
    format!("{process}.{machine}.{extension}")
}

fn is_journal(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

/// A journal's file name.
pub(super) fn file_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Paths of the files in a directory, which need not exist.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect(),
        Err(error) if has_none(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether this user has no journals where this error is met: HOME is often another user's after setpriv(1) or sudo(8),
/// and /dev/null for a service.
fn has_none(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

fn missing_is_fine(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Replaces a journal; `modified`: its modification time, instead of now.
fn write(path: &Path, entry: &Entry, modified: Option<SystemTime>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    // Named after its writer, which may be another process than that of the journal (`is_unfinished`).
    let new = directory.join(file_name(
        &Owner::this()?.argument(),
        &machine::this()?,
        "new",
    ));
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(entry)?)?;
    if let Some(modified) = modified {
        file.set_modified(modified)?;
    }
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

/// Reads a journal, and when it was written; `None` where the run that wrote it has ended and removed it since the
/// directory was listed.
fn read(path: &Path) -> Option<io::Result<(Entry, SystemTime)>> {
    let read = || -> io::Result<(Entry, SystemTime)> {
        let modified = fs::metadata(path)?.modified()?;
        let entry = serde_json::from_slice(&fs::read(path)?)?;
        Ok((entry, modified))
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_its_run_has_removed_meanwhile_is_none_and_one_that_cannot_be_read_is_an_error()
     {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1-2.json");
        assert!(read(&path).is_none());
        fs::write(&path, "{").unwrap();
        assert!(matches!(read(&path), Some(Err(_))));
    }
}
