//! Settings that a process changes in its namespaces, and undoes: sysctls, commands, and on an existing host device
//! features and device settings.

mod command;
mod error;
mod journal;
mod left;
mod safety;
mod sysctl;
mod undo;

use std::collections::BTreeMap;

pub use error::{SettingsError, SysctlError};
pub use journal::remove_unfinished_journals;
pub(crate) use left::undo_left;
use wirecost_model::vary::{CommandPair, DeviceSetting, Setting, is_device};
use wirecost_netbuild::{BuildError, ExistingDevice};

use journal::Journal;
use undo::{Undo, UndoAction};

/// The applied settings, in the order in which they were applied.
#[derive(Debug)]
pub(crate) struct AppliedSettings {
    /// Name of the namespaces in messages: `host a`, `the guest of host b`, `this machine`.
    place: String,
    target: SettingsTarget,
    undo: Vec<Undo>,
    /// The journal of an existing host, once something has been changed.
    journal: Option<Journal>,
}

/// The kind of place whose settings are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsTarget {
    /// A lab's namespaces; the settings end with them.
    Lab,
    /// This machine, outside of a lab: a sysctl that does not exist here exists nowhere.
    Machine,
    /// An existing host: every change is written to a journal before it is made.
    Existing {
        /// Name of the device whose features a level may set.
        device: String,
    },
}

impl SettingsTarget {
    fn is_lab(&self) -> bool {
        *self == Self::Lab
    }
}

impl AppliedSettings {
    pub(crate) fn nothing(place: &str, target: SettingsTarget) -> Self {
        Self {
            place: place.to_owned(),
            target,
            undo: Vec::new(),
            journal: None,
        }
    }

    /// Records how to undo a step, before the step is made; on an existing host also in the journal.
    fn note(
        &mut self,
        of: &str,
        what: UndoAction,
        device: Option<&str>,
    ) -> Result<(), SettingsError> {
        let step = Undo {
            of: of.to_owned(),
            what,
            device: device.map(str::to_owned),
        };
        let own = match &self.target {
            SettingsTarget::Existing { device } => Some(device.as_str()),
            SettingsTarget::Lab | SettingsTarget::Machine => None,
        };
        let place = step.place(&self.undo, own);
        self.undo.insert(place, step);
        let written = self.write_journal();
        if written.is_err() {
            self.undo.remove(place);
        }
        written
    }

    fn forget_last(&mut self) -> Result<(), SettingsError> {
        self.undo.pop();
        self.write_journal()
    }

    fn write_journal(&mut self) -> Result<(), SettingsError> {
        let SettingsTarget::Existing { device } = &self.target else {
            return Ok(());
        };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => {
                let new = Journal::new(&self.place, device);
                none.insert(new.map_err(SettingsError::NoJournal)?)
            }
        };
        journal.store(&self.undo)
    }

    /// Applies the sysctls and the command of a level, on an existing host also its device features and device
    /// settings.
    ///
    /// # Errors
    /// A setting cannot be applied; the message names place and level. [`AppliedSettings::undo`] undoes what was
    /// applied before the error.
    pub(crate) fn apply(&mut self, setting: &Setting) -> Result<(), SettingsError> {
        let of = format!("the level `{}` of `{}`", setting.label, setting.factor);
        self.refuse_faulty(&of, setting)?;
        for (name, value) in &setting.sysctl {
            self.set(&of, name, value)
                .map_err(|error| self.at(&of, error))?;
        }
        if let SettingsTarget::Existing { device } = self.target.clone() {
            let named = setting.device_name.as_deref();
            let device = (named.unwrap_or(&device), named);
            for features in setting.ethtool.values() {
                self.set_features(&of, device, features)
                    .map_err(|error| self.at(&of, error))?;
            }
            for (which, value) in &setting.device {
                self.change_device(&of, device, *which, value)
                    .map_err(|error| self.at(&of, error))?;
            }
        }
        if let Some(CommandPair { before, after }) = &setting.command {
            self.note(&of, UndoAction::Command(after.clone()), None)
                .and_then(|()| command::run(before, &self.place))
                .map_err(|error| self.at(&of, error))?;
        }
        Ok(())
    }

    fn set_features(
        &mut self,
        of: &str,
        (device, named): (&str, Option<&str>),
        wanted: &BTreeMap<String, bool>,
    ) -> Result<(), SettingsError> {
        let mut device = ExistingDevice::open(device)?;
        let before = device.changeable(wanted)?;
        self.note(of, UndoAction::Features(before), named)?;
        Ok(device.set(wanted)?)
    }

    fn change_device(
        &mut self,
        of: &str,
        (device, named): (&str, Option<&str>),
        setting: DeviceSetting,
        value: &str,
    ) -> Result<(), SettingsError> {
        let mut device = ExistingDevice::open(device)?;
        for what in UndoAction::before_change(&mut device, setting)? {
            self.note(of, what, named)?;
        }
        Ok(device.change(setting, value)?)
    }

    fn on_device(
        &self,
        named: Option<&String>,
        restore: impl FnOnce(&mut ExistingDevice) -> Result<(), BuildError>,
    ) -> Result<(), SettingsError> {
        let SettingsTarget::Existing { device } = &self.target else {
            return Ok(());
        };
        if let Some(name) = named.filter(|name| !is_device(name)) {
            return Err(SettingsError::NoDevice(name.clone()));
        }
        let mut device = ExistingDevice::open(named.unwrap_or(device))?;
        Ok(restore(&mut device)?)
    }

    /// Checks that the sysctls of a level exist and may be changed, without changing any.
    pub(crate) fn check(&self, setting: &Setting) -> Result<(), SettingsError> {
        let of = format!("the level `{}` of `{}`", setting.label, setting.factor);
        self.refuse_faulty(&of, setting)?;
        for name in setting.sysctl.keys() {
            let checked = sysctl::check(&self.target, name);
            checked.map_err(|error| self.at(&of, error.into()))?;
        }
        Ok(())
    }

    /// Undoes everything, in reverse order. A failure does not stop the rest; what failed is tried again by the next
    /// call.
    ///
    /// # Errors
    /// Something could not be undone; the message says what.
    pub(crate) fn undo(&mut self) -> Result<(), SettingsError> {
        let (mut failed, mut left) = (Vec::new(), Vec::new());
        while let Some(step) = self.undo.pop() {
            let undone = match &step.what {
                UndoAction::Sysctl { name, was } => {
                    sysctl::write(&self.target, name, was).map_err(SettingsError::from)
                }
                UndoAction::Features(before) => {
                    self.on_device(step.device.as_ref(), |device| device.restore(before))
                }
                UndoAction::Device { setting, was } => {
                    self.on_device(step.device.as_ref(), |device| device.change(*setting, was))
                }
                UndoAction::QueueFiles(before) => self.on_device(step.device.as_ref(), |device| {
                    device.restore_queue_files(before)
                }),
                UndoAction::Command(command) => command::run(command, &self.place),
            };
            if let Err(error) = undone {
                failed.push(SettingsError::NotUndone {
                    place: self.place.clone(),
                    level: step.of.clone(),
                    source: error.into(),
                });
                left.insert(0, step);
            }
        }
        self.undo = left;
        if let Some(journal) = &mut self.journal {
            failed.extend(journal.store(&self.undo).err());
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(SettingsError::Several(failed))
        }
    }

    fn refuse_faulty(&self, of: &str, setting: &Setting) -> Result<(), SettingsError> {
        match setting.fault() {
            Some(fault) => Err(self.at(of, SettingsError::Faulty(fault))),
            None => Ok(()),
        }
    }

    fn at(&self, of: &str, error: SettingsError) -> SettingsError {
        SettingsError::NotApplied {
            place: self.place.clone(),
            level: of.to_owned(),
            source: error.into(),
        }
    }

    fn set(&mut self, of: &str, name: &str, value: &str) -> Result<(), SettingsError> {
        safety::check(&self.target, name, value)?;
        let was = sysctl::read(&self.target, name)?;
        for follows in sysctl::dependent_sysctls(name) {
            let was = sysctl::read(&self.target, &follows)?;
            let what = UndoAction::Sysctl { name: follows, was };
            self.note(of, what, None)?;
        }
        let name_of = name.to_owned();
        self.note(of, UndoAction::Sysctl { name: name_of, was }, None)?;
        let written = sysctl::write(&self.target, name, value);
        // A refused value needs no undoing, and writing the old value back would be refused as well.
        if written.is_err() && self.still_is_as_it_was(name) {
            self.forget_last()?;
        }
        Ok(written?)
    }

    fn still_is_as_it_was(&self, name: &str) -> bool {
        let was = self.undo.last().map(|undo| &undo.what);
        matches!(was, Some(UndoAction::Sysctl { was, .. }) if sysctl::read(&self.target, name).is_ok_and(|now| now == *was))
    }
}

#[cfg(test)]
mod tests;
