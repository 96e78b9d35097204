//! Settings of this machine, outside of the lab.

use std::path::PathBuf;

use wirecost_agent::AgentError;
use wirecost_agent::guard::{SettingsGuard, SettingsTarget};
use wirecost_agent::link::LinkError;
use wirecost_model::vary::{Scope, Setting};

use crate::lab::LabContext;

/// Settings of this machine, outside of the lab.
#[derive(Debug)]
pub(crate) struct MachineSettings {
    program: PathBuf,
    owner: String,
    /// The process that applies and undoes settings; `None` until the first setting.
    guard: Option<SettingsGuard>,
    applied: bool,
}

impl MachineSettings {
    pub(crate) fn new(context: &LabContext) -> Self {
        Self {
            program: context.agents.program.clone(),
            owner: context.agents.owner.argument(),
            guard: None,
            applied: false,
        }
    }

    /// Applies the settings that concern the machine. Call [`MachineSettings::undo`] also after an error.
    pub(crate) fn apply(&mut self, settings: &[Setting]) -> Result<(), AgentError> {
        for setting in settings.iter().filter(|setting| is_of_machine(setting)) {
            self.applied = true;
            self.guard()?.apply(setting)?;
        }
        Ok(())
    }

    /// Checks that the sysctls of a setting exist and can be changed; changes nothing.
    pub(crate) fn check(&mut self, setting: &Setting) -> Result<(), AgentError> {
        self.guard()?.check(setting)
    }

    fn guard(&mut self) -> Result<&mut SettingsGuard, AgentError> {
        match &mut self.guard {
            Some(guard) => Ok(guard),
            none => {
                let guard = SettingsGuard::start(
                    &self.program,
                    &self.owner,
                    THIS_MACHINE,
                    &SettingsTarget::Machine,
                )?;
                Ok(none.insert(guard))
            }
        }
    }

    /// Undoes the applied settings. A failure ends the run: every later sample would be measured with the setting.
    pub(crate) fn undo(&mut self) -> Result<(), LinkError> {
        if !std::mem::take(&mut self.applied) {
            return Ok(());
        }
        let undone = self.guard.as_mut().map_or(Ok(()), SettingsGuard::undo);
        undone.map_err(|error| LinkError::NotUndone {
            message: error.to_string(),
        })
    }
}

const THIS_MACHINE: &str = "this machine";

/// Whether a setting concerns the machine and not only the lab: a sysctl or a command with scope `machine`.
pub(crate) fn is_of_machine(setting: &Setting) -> bool {
    setting.on == Scope::Machine && !(setting.sysctl.is_empty() && setting.command.is_none())
}
