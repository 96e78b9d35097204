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
        let left = match left {
            Ok(left) => left,
            Err(error) => {
                found.failed.push(error);
                continue;
            }
        };
        let (mut applied, gone_before) = AppliedSettings::left(&left);
        let steps = applied.words();
        let gone = applied.undo().and_then(|()| {
            let gone = left.forget();
            gone.map_err(|error| format!("removing {}: {error}", left.name()))
        });
        match gone {
            Ok(()) => {
                found.undone.extend(steps);
                found.gone.extend(gone_before);
            }
            Err(error) => found.failed.push(error),
        }
    }
    Ok(found)
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

    /// The steps that are to be undone, as text.
    fn words(&self) -> Vec<String> {
        self.undo.iter().map(Undo::words).collect()
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
        What::Features(_) | What::Device { .. } => !ExistingDevice::exists(device),
    }
}
