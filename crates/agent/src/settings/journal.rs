//! Journals of the changes on an existing host, written before each change, so that `wirecost clean --host` can undo
//! the changes after the process that should have done so was killed, or the host was restarted.
//!
//! One file for each process, with the steps that are still to be undone; they are undone in reverse order. The file is
//! replaced as a whole, and synced to the disk (fsync(2)) before the change is made.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::undo::Undo;
use crate::orphan::Owner;

/// Directory of root's journals.
const OF_ROOT: &str = "/var/lib/wirecost/journal";
/// Directories of a user's journals, below the home directory and below `XDG_STATE_HOME`.
const OF_USER: [&str; 2] = [".local/state/wirecost/journal", "wirecost/journal"];

/// Content of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The process that changes the settings, as [`Owner::argument`] writes it.
    process: String,
    /// The boot id (/proc/sys/kernel/random/boot_id).
    boot: String,
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

/// Directory of the journals; it need not exist.
fn directory() -> PathBuf {
    if nix::unistd::geteuid().is_root() {
        return PathBuf::from(OF_ROOT);
    }
    match std::env::var_os("XDG_STATE_HOME").filter(|at| Path::new(at).is_absolute()) {
        Some(state) => Path::new(&state).join(OF_USER[1]),
        None => Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(OF_USER[0]),
    }
}

impl Journal {
    /// Creates the journal of this process; nothing is written yet.
    pub(crate) fn new(place: &str, device: &str) -> io::Result<Self> {
        let process = Owner::this()?.argument();
        Ok(Self {
            path: directory().join(format!("{}.json", process.replace(':', "-"))),
            entry: Entry {
                process,
                boot: boot()?,
                netns: netns()?,
                place: place.to_owned(),
                device: device.to_owned(),
                undo: Vec::new(),
            },
        })
    }

    /// Writes `undo` to the disk, or removes the file where `undo` is empty. Fails where another process has changed
    /// settings in this network namespace.
    pub(crate) fn keep(&mut self, undo: &[Undo]) -> Result<(), String> {
        let begins = self.entry.undo.is_empty() && !undo.is_empty();
        self.entry.undo = undo.to_vec();
        let written = if undo.is_empty() {
            fs::remove_file(&self.path).or_else(missing_is_fine)
        } else {
            write(&self.path, &self.entry)
        };
        written.map_err(|error| {
            let at = self.path.display();
            format!(
                "the journal {at} cannot be written, and without it nothing is changed: {error}"
            )
        })?;
        // Two processes that undo alternately would each restore what the other had set. If both begin at once, each
        // sees the other's journal.
        match begins.then(|| self.another()).flatten() {
            Some(process) => {
                self.entry.undo.clear();
                let _ = fs::remove_file(&self.path);
                Err(format!(
                    "settings of this host are changed by another run at this moment (process {process}): wait for its end"
                ))
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

fn is_journal(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

fn missing_is_fine(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

fn write(path: &Path, entry: &Entry) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(entry)?)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

/// A journal whose process is gone.
#[derive(Debug)]
pub(crate) struct Left {
    pub(super) path: PathBuf,
    pub(crate) entry: Entry,
    /// Whether the host was restarted since: settings in the kernel are then gone.
    pub(crate) restarted: bool,
}

impl Left {
    /// Writes the steps that are still to be undone, or removes the file where there are none; another `wirecost clean`
    /// may have removed it already.
    pub(crate) fn keep(&mut self, undo: &[Undo]) -> io::Result<()> {
        if undo.is_empty() {
            return fs::remove_file(&self.path).or_else(missing_is_fine);
        }
        self.entry.undo = undo.to_vec();
        write(&self.path, &self.entry)
    }

    /// Path of the journal, for messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Reads a journal; `None` where the run that wrote it has ended and removed it since the directory was listed.
fn read(path: &Path) -> Option<Result<Entry, String>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        bytes => bytes.map_err(|error| error.to_string()),
    };
    Some(bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())))
}

/// The journals left on this host, of this network namespace or of an earlier boot; a journal that cannot be read is an
/// error message.
pub(crate) fn left() -> io::Result<Vec<Result<Left, String>>> {
    let (boot, netns) = (boot()?, netns()?);
    let entries = match fs::read_dir(directory()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if !is_journal(&path) {
            continue;
        }
        match read(&path) {
            None => {}
            Some(Ok(entry)) => {
                let restarted = entry.boot != boot;
                let lives = Owner::parse(&entry.process).is_some_and(Owner::is_alive);
                if restarted || (!lives && entry.netns == netns) {
                    left.push(Ok(Left {
                        path,
                        entry,
                        restarted,
                    }));
                }
            }
            Some(Err(error)) => left.push(Err(format!("{}: {error}", path.display()))),
        }
    }
    Ok(left)
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
