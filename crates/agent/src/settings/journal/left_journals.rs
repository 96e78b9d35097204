//! Journals that ended processes left.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{
    Entry, boot, directory, file_of, files, has_none, is_journal, machine, missing_is_fine, netns,
    read, write,
};
use crate::orphan::Owner;
use crate::protocol::ElsewhereJournal;
use crate::settings::error::SettingsError;
use crate::settings::undo::Undo;

/// A journal whose process is gone.
#[derive(Debug)]
pub(crate) struct LeftJournal {
    pub(in crate::settings) path: PathBuf,
    pub(crate) entry: Entry,
    /// When its process last changed something.
    pub(in crate::settings) modified: SystemTime,
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

#[cfg(test)]
mod tests {
    use super::super::file_name;
    use super::*;

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
