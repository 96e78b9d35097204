//! Settings of this machine, outside of the lab.

use std::path::PathBuf;

use wirecost_agent::keeper::Keeper;
use wirecost_agent::link::LinkError;
use wirecost_model::vary::{Scope, Setting};

use crate::lab::LabContext;

/// Settings of this machine, outside of the lab.
#[derive(Debug)]
pub(crate) struct Machine {
    program: PathBuf,
    owner: String,
    keeper: Option<Keeper>,
    in_force: bool,
}

impl Machine {
    pub(crate) fn new(context: &LabContext) -> Self {
        Self {
            program: context.program.clone(),
            owner: context.owner.argument(),
            keeper: None,
            in_force: false,
        }
    }

    /// Puts those of the settings in force that concern the machine. Where it fails, [`Machine::undo`] is due
    /// all the same.
    pub(crate) fn put(&mut self, settings: &[Setting]) -> Result<(), String> {
        for setting in settings.iter().filter(|setting| is_of_machine(setting)) {
            self.in_force = true;
            self.keeper()?.put(setting)?;
        }
        Ok(())
    }

    pub(crate) fn check(&mut self, setting: &Setting) -> Result<(), String> {
        self.keeper()?.check(setting)
    }

    fn keeper(&mut self) -> Result<&mut Keeper, String> {
        match &mut self.keeper {
            Some(keeper) => Ok(keeper),
            none => {
                let keeper = Keeper::start(&self.program, &self.owner, THIS_MACHINE, true)?;
                Ok(none.insert(keeper))
            }
        }
    }

    /// Undoes what is in force; what cannot be undone ends the run, for everything after it would be measured
    /// with it.
    pub(crate) fn undo(&mut self) -> Result<(), LinkError> {
        if !std::mem::take(&mut self.in_force) {
            return Ok(());
        }
        let undone = self.keeper.as_mut().map_or(Ok(()), Keeper::undo);
        undone.map_err(|message| LinkError::Unsettled { message })
    }
}

const THIS_MACHINE: &str = "this machine";

pub(crate) fn is_of_machine(setting: &Setting) -> bool {
    setting.on == Scope::Machine && !(setting.sysctl.is_empty() && setting.command.is_none())
}
