//! Journals of the changes on an existing host, written before each change, so that `wirecost clean --host` can undo
//! the changes after the process that should have done so was killed, or the host was restarted.
//!
//! One file for each process, with the steps that are still to be undone; they are undone in reverse order. The file is
//! replaced as a whole, and synced to the disk (fsync(2)) before the change is made.

mod directory;
mod machine;

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use super::undo::Undo;
use crate::orphan::Owner;
use crate::protocol::ElsewhereJournal;

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

/// Whether a file is a journal that a process of this machine was writing when it was killed.
fn is_unfinished(path: &Path, machine: &str) -> bool {
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let (writer, of) = stem.split_once('.').unwrap_or((stem, machine));
    let writer = Owner::parse(&writer.replace('-', ":"));
    let extension = path.extension();
    extension.is_some_and(|extension| extension == "new")
        && machine::is_this(of, machine)
        && writer.is_some_and(|writer| !writer.is_alive())
}

/// Removes the journals that processes of this user were writing when they were killed. There are none where the user
/// has no directory for them.
///
/// # Errors
/// The directory cannot be listed, or a file of this user cannot be removed; the message names it.
pub fn remove_unfinished_journals() -> io::Result<()> {
    directory::find().map_or(Ok(()), |directory| {
        remove_unfinished(&directory, &machine::this()?)
    })
}

fn remove_unfinished(directory: &Path, machine: &str) -> io::Result<()> {
    for path in files(directory)? {
        if is_unfinished(&path, machine) {
            match fs::remove_file(&path) {
                Err(error) if has_none(&error) => {}
                removed => removed.map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                })?,
            }
        }
    }
    Ok(())
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

/// A journal whose process is gone.
#[derive(Debug)]
pub(crate) struct LeftJournal {
    pub(super) path: PathBuf,
    pub(crate) entry: Entry,
    /// When its process last changed something.
    pub(super) modified: SystemTime,
    /// Whether the host was restarted since: settings in the kernel are then gone.
    pub(crate) restarted: bool,
}

impl LeftJournal {
    /// Writes the steps that are still to be undone, or removes the file where there are none; another `wirecost clean`
    /// may have removed it already.
    pub(crate) fn store(&mut self, undo: &[Undo]) -> io::Result<()> {
        if undo.is_empty() {
            return fs::remove_file(&self.path).or_else(missing_is_fine);
        }
        self.entry.undo = undo.to_vec();
        write(&self.path, &self.entry, Some(self.modified))
    }

    /// Path of the journal, for messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }
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

/// What is in the directory of the journals.
#[derive(Debug, Default)]
pub(crate) struct LeftJournals {
    /// Journals left on this host, of this network namespace or of an earlier boot, the last written first: each has
    /// what the one before it had left changed as the earlier values. A journal that cannot be read is an error.
    pub(crate) here: Vec<Result<LeftJournal, SettingsError>>,
    /// Journals of other hosts, which stay.
    pub(crate) elsewhere: Vec<ElsewhereJournal>,
}

/// The journals that ended processes left, and those of other hosts. None where the user has no directory for them.
pub(crate) fn left() -> io::Result<LeftJournals> {
    match directory::find() {
        Ok(directory) => left_in(&directory, &machine::this()?),
        Err(_) => Ok(LeftJournals::default()),
    }
}

/// A journal's file name.
pub(super) fn file_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn left_in(directory: &Path, machine: &str) -> io::Result<LeftJournals> {
    let (boot, netns) = (boot()?, netns()?);
    let (mut left, mut unreadable, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(directory)?
        .into_iter()
        .filter(|path| is_journal(path))
    {
        match read(&path) {
            None => {}
            Some(Ok((entry, modified))) => {
                let restarted = entry.boot != boot;
                let of = &entry.machine;
                let is_elsewhere = restarted && !of.is_empty() && !machine::is_this(of, machine);
                let lives = Owner::parse(&entry.process).is_some_and(Owner::is_alive);
                if is_elsewhere {
                    elsewhere.push(ElsewhereJournal {
                        file: file_of(&path),
                        message: left_alone(&path, of, machine),
                    });
                } else if restarted || (!lives && entry.netns == netns) {
                    left.push(LeftJournal {
                        path,
                        entry,
                        modified,
                        restarted,
                    });
                }
            }
            Some(Err(source)) => unreadable.push(SettingsError::JournalNotRead { path, source }),
        }
    }
    left.sort_by_key(|left| Reverse(left.modified));
    elsewhere.sort_by(|a: &ElsewhereJournal, b| a.file.cmp(&b.file));
    let left = left.into_iter().map(Ok);
    Ok(LeftJournals {
        here: left.chain(unreadable.into_iter().map(Err)).collect(),
        elsewhere,
    })
}

/// Why the journal of another machine than `this` is not undone, and what to do.
fn left_alone(path: &Path, machine: &str, this: &str) -> String {
    let name = machine::name(machine);
    let differs = if name != machine::name(this) {
        "with another name"
    } else if machine::has_id(this) {
        "with another machine-id"
    } else {
        "with a machine-id, and this host has none (/etc/machine-id)"
    };
    format!(
        "{}: left alone, because it is the journal of a host {name:?} {differs}: `wirecost clean --host` of that host \
         undoes it once its run has ended; if it was this host, run the commands that it lists and remove it",
        path.display()
    )
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

    fn entry(process: &str) -> Entry {
        Entry {
            process: process.to_owned(),
            boot: "of this test".to_owned(),
            machine: "here".to_owned(),
            netns: 0,
            place: "host a".to_owned(),
            device: "lo".to_owned(),
            undo: vec![
                serde_json::from_value(
                    serde_json::json!({ "of": "l", "what": { "Command": "true" } }),
                )
                .unwrap(),
            ],
        }
    }

    #[test]
    fn the_last_written_journal_is_the_first_also_after_a_part_of_it_was_undone() {
        let directory = tempfile::tempdir().unwrap();
        let second = |number| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number);
        for (process, at) in [("7:1", 30), ("8:1", 50), ("9:1", 40)] {
            let path = directory.path().join(file_name(process, "", "json"));
            write(&path, &entry(process), Some(second(at))).unwrap();
        }
        for _ in 0..2 {
            let left = left_in(directory.path(), "here").unwrap().here;
            let mut left: Vec<LeftJournal> = left.into_iter().map(Result::unwrap).collect();
            let order: Vec<&str> = left.iter().map(|left| &*left.entry.process).collect();
            assert_eq!(order, ["8:1", "9:1", "7:1"]);
            // A step that fails stays in its journal.
            let undo = left[2].entry.undo.clone();
            left[2].store(&undo).unwrap();
        }
    }

    #[test]
    fn what_a_killed_process_was_writing_is_removed_and_what_a_living_one_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let on = |machine: &str, process: &str, extension: &str| {
            directory
                .path()
                .join(file_name(process, machine, extension))
        };
        let of = |process: &str, extension: &str| on("here.1", process, extension);
        let this = Owner::this().unwrap().argument();
        // No process has this number: it is larger than the kernel's PID_MAX_LIMIT.
        let gone = "4294967295:1";
        let all = [
            of(gone, "new"),
            of(gone, "json"),
            of(&this, "new"),
            on("elsewhere", gone, "new"),
            on("here.2", gone, "new"),
            // Earlier versions wrote no machine-id.
            on("here", gone, "new"),
        ];
        for path in &all {
            fs::write(path, "{").unwrap();
        }
        remove_unfinished(directory.path(), "here.1").unwrap();
        let exist = all.map(|path| path.exists());
        assert_eq!(exist, [false, true, true, true, true, false]);
    }

    #[test]
    fn a_journal_of_another_machine_in_the_same_home_is_not_of_an_earlier_boot() {
        let directory = tempfile::tempdir().unwrap();
        let machines = [
            ("elsewhere", 0),
            ("elsewhere.1", 0),
            ("here.2", 0),
            ("", 1),
            // Earlier versions wrote no machine-id.
            ("here", 2),
            ("here.1", 3),
        ];
        for (index, (machine, count)) in machines.into_iter().enumerate() {
            let entry = Entry {
                machine: machine.to_owned(),
                ..entry(&format!("{}:1", 7 + count))
            };
            let path = directory
                .path()
                .join(file_name(&entry.process, machine, "json"));
            write(&path, &entry, None).unwrap();
            let left = left_in(directory.path(), "here.1").unwrap();
            assert_eq!(left.here.len(), count, "{machine}");
            if count == 0 {
                let file = file_of(&path);
                let told = left.elsewhere.iter().find(|told| told.file == file);
                let told = &told.expect("told").message;
                assert!(told.contains(&path.display().to_string()), "{told}");
            }
            assert_eq!(left.elsewhere.len(), (index + 1).min(3), "{machine}");
        }
    }

    #[test]
    fn what_is_said_of_a_journal_that_is_left_alone_names_the_host_and_what_differs() {
        let path = Path::new("/j/1-2.json");
        let id = left_alone(path, "here.2", "here.1");
        assert!(id.contains("\"here\" with another machine-id"), "{id}");
        let name = left_alone(path, "elsewhere.1", "here.1");
        assert!(name.contains("\"elsewhere\" with another name"), "{name}");
        let none = left_alone(path, "here.2", "here");
        assert!(none.contains("this host has none"), "{none}");
    }

    #[test]
    fn where_no_directory_can_be_there_are_no_journals() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("home");
        fs::write(&file, "").unwrap();
        for none in [directory.path().join("nothing"), file.join("journal")] {
            remove_unfinished(&none, "here").unwrap();
            let left = left_in(&none, "here").unwrap();
            assert!(left.here.is_empty(), "{left:?}");
        }
    }
}
