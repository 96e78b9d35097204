//! Undoes settings that ended processes left changed on a host, by their journals.

use wirecost_netbuild::ExistingDevice;

use super::journal::{self, Left};
use super::undo::{Undo, What};
use super::{AppliedSettings, SettingsTarget, sysctl};
use crate::error::{AgentError, Step};
use crate::protocol::LeftSettings;

/// Undoes the settings in this network namespace that the journals of ended processes list.
pub(crate) fn undo_left() -> Result<LeftSettings, AgentError> {
    let mut found = LeftSettings::default();
    for left in journal::left().step("looking for journals")? {
        match left {
            Ok(left) => undo_one(left, &mut found),
            Err(error) => found.failed.push(error),
        }
    }
    Ok(found)
}

/// Undoes the steps of one journal. Only those that fail stay in it: a command that undoes may fail if it runs again.
fn undo_one(mut left: Left, found: &mut LeftSettings) {
    let (mut applied, gone) = AppliedSettings::left(&left);
    let steps = applied.undo.clone();
    found.failed.extend(applied.undo().err());
    // What failed is in the order of the steps.
    let mut failed = applied.undo.iter().peekable();
    let undone = steps
        .iter()
        .filter(|step| failed.next_if_eq(step).is_none());
    found.undone.extend(undone.map(Undo::words));
    found.gone.extend(gone);
    if let Err(error) = left.keep(&applied.undo) {
        let name = left.name();
        found.failed.push(format!("writing {name}: {error}"));
    }
}

impl AppliedSettings {
    /// The steps of a journal that are still to be undone, and those that are gone, as text.
    fn left(left: &Left) -> (Self, Vec<String>) {
        let steps = left.entry.undo.iter().cloned();
        let (gone, undo): (Vec<Undo>, Vec<Undo>) = steps.partition(|step| is_gone(step, left));
        let applied = Self {
            undo,
            ..Self::nothing(
                &left.entry.place,
                SettingsTarget::Existing {
                    device: left.entry.device.clone(),
                },
            )
        };
        (applied, gone.iter().map(Undo::words).collect())
    }
}

/// Whether there is nothing left for a step to restore: a restart resets the kernel's settings, and a device or a
/// network namespace may have been removed. Commands are always run.
fn is_gone(step: &Undo, left: &Left) -> bool {
    let device = step.device.as_ref().unwrap_or(&left.entry.device);
    match &step.what {
        What::Command(_) => false,
        _ if left.restarted => true,
        What::Sysctl { name, .. } => !sysctl::path(name).exists(),
        What::Features(_) | What::Device { .. } => ExistingDevice::is_gone(device),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::journal::Entry;
    use super::*;

    #[test]
    fn what_was_undone_is_not_undone_again_where_another_step_failed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-2.json");
        let told = directory.path().join("told");
        let echo = format!("echo undone >> {}", told.display());
        let step = |of: &str, command: &str| json!({ "of": of, "what": { "Command": command } });
        let entry = json!({
            "process": "1:2",
            "boot": "of this test",
            "netns": 0,
            "place": "host a",
            "device": "lo",
            "undo": [
                step("the first", "no-such-command-anywhere"),
                step("the second", &echo),
            ],
        });
        fs::write(&path, entry.to_string()).expect("a journal");
        let mut twice = [LeftSettings::default(), LeftSettings::default()];
        for found in &mut twice {
            let text = fs::read(&path).expect("the journal");
            let entry: Entry = serde_json::from_slice(&text).expect("its steps");
            let left = Left {
                path: path.clone(),
                entry,
                restarted: false,
            };
            undo_one(left, found);
        }
        assert_eq!(twice[0].undone, [format!("the second: {echo}")]);
        assert!(twice[1].undone.is_empty(), "{twice:?}");
        for found in &twice {
            let [failed] = &found.failed[..] else {
                panic!("one step fails: {found:?}");
            };
            assert!(failed.contains("exit code 127"), "{failed}");
        }
        assert_eq!(fs::read_to_string(told).expect("the file"), "undone\n");
    }
}
