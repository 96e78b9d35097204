//! Undoes settings that ended processes left changed on a host, by their journals.

use wirecost_netbuild::ExistingDevice;

use super::error::SettingsError;
use super::journal::{self, LeftJournal};
use super::undo::{Undo, UndoAction};
use super::{AppliedSettings, SettingsTarget, sysctl};
use crate::error::{AgentError, Context};
use crate::protocol::LeftSettings;

/// Undoes the settings in this network namespace that the journals of ended processes list.
pub(crate) fn undo_left() -> Result<LeftSettings, AgentError> {
    let journals = journal::left().context("looking for journals")?;
    let mut found = LeftSettings {
        elsewhere: journals.elsewhere,
        ..LeftSettings::default()
    };
    for left in journals.here {
        match left {
            Ok(left) => undo_one(left, &mut found),
            Err(error) => found.failed.push(error.to_string()),
        }
    }
    let removed = journal::remove_unfinished_journals();
    found
        .failed
        .extend(removed.err().map(|error| error.to_string()));
    Ok(found)
}

/// Undoes the steps of one journal, the last one first. Only those that fail stay in it, also where this process is
/// ended meanwhile: a command that undoes may fail if it runs again.
fn undo_one(mut left: LeftJournal, found: &mut LeftSettings) {
    let steps = left.entry.undo.iter().cloned();
    let (gone, steps): (Vec<Undo>, Vec<Undo>) = steps.partition(|step| is_gone(step, &left));
    found.gone.extend(gone.iter().map(Undo::words));
    // An earlier version of the program noted them as they were made.
    let steps = steps.into_iter().fold(Vec::new(), |mut noted, step| {
        let place = step.place(&noted, Some(&left.entry.device));
        noted.insert(place, step);
        noted
    });
    let (mut kept, mut undone) = (steps.clone(), Vec::new());
    let mut written = Ok(());
    for (index, step) in steps.into_iter().enumerate().rev() {
        let words = step.words();
        match undo(&left, step) {
            Ok(()) => {
                kept.remove(index);
                undone.push(words);
                written = written.and_then(|()| left.store(&kept));
            }
            Err(error) => found.failed.push(error.to_string()),
        }
    }
    found.undone.extend(undone.into_iter().rev());
    match written.and_then(|()| left.store(&kept)) {
        Ok(()) if kept.is_empty() => found.emptied.push(journal::file_of(&left.path)),
        Ok(()) => {}
        Err(error) => {
            let name = left.name();
            found.failed.push(format!("writing {name}: {error}"));
        }
    }
}

/// Undoes one step of a journal.
fn undo(left: &LeftJournal, step: Undo) -> Result<(), SettingsError> {
    let target = SettingsTarget::Existing {
        device: left.entry.device.clone(),
    };
    let mut applied = AppliedSettings {
        undo: vec![step],
        ..AppliedSettings::nothing(&left.entry.place, target)
    };
    applied.undo()
}

/// Whether there is nothing left for a step to restore: a restart resets the kernel's settings, and a device or a
/// network namespace may have been removed. Commands are always run.
fn is_gone(step: &Undo, left: &LeftJournal) -> bool {
    let device = step.device.as_ref().unwrap_or(&left.entry.device);
    match &step.what {
        UndoAction::Command(_) => false,
        _ if left.restarted => true,
        UndoAction::Sysctl { name, .. } => sysctl::path(name).is_ok_and(|path| !path.exists()),
        UndoAction::Features(_) | UndoAction::Device { .. } | UndoAction::QueueFiles(_) => {
            ExistingDevice::is_gone(device)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::SystemTime;

    use serde_json::{Value, json};

    use super::journal::Entry;
    use super::*;

    /// Writes the journal of an ended process on the device `lo`, with these steps.
    fn write_journal(path: &Path, undo: &Value) -> LeftJournal {
        let entry = json!({
            "process": "1:2",
            "boot": "of this test",
            "netns": 0,
            "place": "host a",
            "device": "lo",
            "undo": undo,
        });
        fs::write(path, entry.to_string()).expect("a journal");
        left(path)
    }

    /// The journal in a file.
    fn left(path: &Path) -> LeftJournal {
        LeftJournal {
            path: path.to_owned(),
            entry: entry(path),
            modified: SystemTime::UNIX_EPOCH,
            restarted: false,
        }
    }

    fn entry(path: &Path) -> Entry {
        let text = fs::read(path).expect("the journal");
        serde_json::from_slice(&text).expect("its steps")
    }

    #[test]
    fn what_was_undone_is_not_undone_again_where_another_step_failed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-2.json");
        let told = directory.path().join("told");
        let echo = format!("echo undone >> {}", told.display());
        let step = |of: &str, command: &str| json!({ "of": of, "what": { "Command": command } });
        let steps = [
            step("the first", "no-such-command-anywhere"),
            step("the second", &echo),
        ];
        write_journal(&path, &json!(steps));
        let mut twice = [LeftSettings::default(), LeftSettings::default()];
        for found in &mut twice {
            undo_one(left(&path), found);
        }
        assert_eq!(twice[0].undone, [format!("the second: {echo}")]);
        assert!(twice[0].emptied.is_empty(), "{twice:?}");
        assert!(twice[1].undone.is_empty(), "{twice:?}");
        for found in &twice {
            let [failed] = &found.failed[..] else {
                panic!("one step fails: {found:?}");
            };
            assert!(failed.contains("exit code 127"), "{failed}");
        }
        assert_eq!(fs::read_to_string(told).expect("the file"), "undone\n");
    }

    #[test]
    fn a_journal_restores_no_file_but_a_sysctl_and_no_device_of_another_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (
            directory.path().join("1-2.json"),
            directory.path().join("other"),
        );
        fs::write(&other, "as it was").expect("a file");
        let name = format!("net/../../..{}", other.display());
        let steps = json!([
            { "of": "l", "what": { "Sysctl": { "name": name, "was": "written" } } },
            {
                "of": "l",
                "what": { "Device": { "setting": "mtu", "was": "1500" } },
                "device": "/etc/eth0",
            },
        ]);
        let mut found = LeftSettings::default();
        undo_one(write_journal(&path, &steps), &mut found);
        assert!(
            found.undone.is_empty() && found.gone.is_empty(),
            "{found:?}"
        );
        let failed = found.failed.join("; ");
        assert!(failed.contains("is not the name of a sysctl"), "{failed}");
        assert!(failed.contains("\"/etc/eth0\" is no device"), "{failed}");
        let other = fs::read_to_string(other).expect("the file");
        assert_eq!(other, "as it was");
    }

    #[test]
    fn a_step_leaves_the_journal_as_soon_as_it_is_undone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-2.json");
        let seen = directory.path().join("seen");
        let copy = format!("cp {} {}", path.display(), seen.display());
        let step = |command: &str| json!({ "of": "l", "what": { "Command": command } });
        let mut found = LeftSettings::default();
        let left = write_journal(&path, &json!([step(&copy), step("true")]));
        undo_one(left, &mut found);
        assert_eq!(found.undone, [format!("l: {copy}"), "l: true".to_owned()]);
        assert!(!path.exists(), "nothing is left: {found:?}");
        assert_eq!(found.emptied, ["1-2.json"]);
        assert_eq!(entry(&seen).undo.len(), 1, "before the last step");
    }
}
