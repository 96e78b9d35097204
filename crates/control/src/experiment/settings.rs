//! The settings of cells: applies them in a lab, undoes them, and tries them before a run.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::lab::lacks_congestion;
use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::sample::DeviceState;
use wirecost_model::steering::Rps;
use wirecost_model::vary::{Scope, Setting};

use super::error::RunError;
use super::labs::Labs;
use super::machine::is_of_machine;
use super::progress::Progress;
use crate::lab::Lab;
use crate::timeouts::PROMPT;

/// Time-out for one setting in one namespace: a command, and the command that undoes it after a failure, each of which
/// the agent limits to 10 s.
const EACH: Duration = Duration::from_secs(25);

impl Lab {
    /// Applies settings on both hosts, except those of the machine. Returns every device as read back, or `None` where
    /// there was nothing to apply.
    ///
    /// # Errors
    /// [`LinkError::Refused`] where a setting could not be applied. Call `undo` also after an error.
    pub fn apply(
        &mut self,
        settings: &[Setting],
        interrupt: &AtomicBool,
    ) -> Result<Option<Vec<DeviceState>>, LinkError> {
        let settings: Vec<Setting> = settings.iter().filter_map(in_lab).collect();
        if settings.is_empty() {
            return Ok(None);
        }
        self.applied = true;
        for link in self.links() {
            link.set_settings_applied(true);
        }
        let within = PROMPT + EACH * 2 * settings.len() as u32;
        // A host without settings of its own only reads its devices back.
        let [a, b] = ["a", "b"].map(|host| {
            let of_host = settings.iter().filter(|setting| setting.on.has_host(host));
            Request::ApplySettings(of_host.cloned().collect())
        });
        let mut devices = Vec::new();
        for reply in self.call_both(&a, &b, within, interrupt)? {
            let Reply::Devices(of_host) = reply else {
                return Err(self.a.unexpected_reply("ApplySettings"));
            };
            devices.extend(of_host);
        }
        Ok(Some(devices))
    }

    /// Shows the hosts that the run goes on, where settings are applied: existing hosts undo them where no request
    /// arrives for ten seconds.
    pub(crate) fn keep_settings(&mut self, interrupt: &AtomicBool) -> Result<(), LinkError> {
        if self.applied {
            self.call_both(&Request::Machine, &Request::Machine, PROMPT, interrupt)?;
        }
        Ok(())
    }

    /// Undoes the applied settings, and waits for that even if the run is interrupted.
    ///
    /// # Errors
    /// [`LinkError::NotUndone`] where something could not be undone.
    pub(crate) fn undo(&mut self) -> Result<(), LinkError> {
        if !self.applied {
            return Ok(());
        }
        let uninterrupted = AtomicBool::new(false);
        // Long enough for every setting of any plan, each command at its own limit.
        let within = Duration::from_hours(1);
        let replies = self
            .call_both(&Request::Undo, &Request::Undo, within, &uninterrupted)
            .map_err(|error| match error {
                LinkError::Refused { message, .. } => LinkError::NotUndone { message },
                error => error,
            })?;
        if !replies.iter().all(|reply| *reply == Reply::Done) {
            return Err(self.a.unexpected_reply("Undo"));
        }
        self.applied = false;
        for link in self.links() {
            link.set_settings_applied(false);
        }
        Ok(())
    }
}

/// The part of a setting that concerns the lab; `None`: no part.
fn in_lab(setting: &Setting) -> Option<Setting> {
    let mut setting = setting.clone();
    if setting.on == Scope::Machine {
        setting.sysctl.clear();
        setting.command = None;
    }
    (!setting.is_empty()).then_some(setting)
}

impl Labs {
    /// Applies and undoes every setting of the plan except commands, so that a run does not begin that could not
    /// measure its cells. Settings of the machine are only checked.
    ///
    /// # Errors
    /// The first setting that cannot be applied, with host, level and what to do. Unless `all` are needed, those that a
    /// host refuses are left to their samples.
    pub(crate) fn check(
        &mut self,
        experiment: &Experiment,
        all: bool,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), RunError> {
        let settings = experiment
            .plan
            .vary
            .iter()
            .flat_map(|factor| &factor.levels);
        let ended = |error| RunError::not_set(error, &experiment.plan.hosts);
        for setting in settings.filter(|setting| !setting.is_empty()) {
            if is_of_machine(setting) {
                let checked = self.machine.check(setting);
                checked.map_err(|error| RunError::Setting(error.to_string()))?;
            }
            let Some(tried) = in_lab(&Setting {
                command: None,
                ..setting.clone()
            }) else {
                continue;
            };
            let has_it = |cell: &&Cell| cell.settings.contains(setting);
            // Once on each pair of hosts.
            let mut done = BTreeSet::new();
            for cell in experiment.cells.iter().filter(has_it) {
                let pair = experiment.plan.pair_of(&cell.levels);
                if done.contains(&pair) {
                    continue;
                }
                let lab = match self.of_cell(experiment, cell, interrupt, progress) {
                    Ok(Ok(lab)) => lab,
                    // The cell's samples will give the reason; another cell with the level may be buildable.
                    Ok(Err(_)) => continue,
                    Err(error) => return Err(ended(error)),
                };
                let applied = lab
                    .adapt(cell.guest_mtu, &cell.offload, interrupt)
                    .and_then(|_| lab.apply(std::slice::from_ref(&tried), interrupt))
                    .and_then(|_| lab.undo());
                match applied {
                    // The samples with this setting will give the reason.
                    Err(LinkError::Refused { .. }) if !all => {
                        lab.undo().map_err(|error| ended(lab.blame(error)))?;
                    }
                    Err(error) => return Err(ended(lab.blame(error))),
                    Ok(()) => {}
                }
                done.insert(pair);
            }
        }
        Ok(())
    }
}

/// Checks that receive steering (RPS) names only cores of the run.
///
/// # Errors
/// The first core that the run does not have, with the level and what to do.
pub(crate) fn check_steering(experiment: &Experiment, all: &[u32]) -> Result<(), RunError> {
    for rps in &experiment.plan.steering.rps {
        let Rps::Cores(cores) = rps else { continue };
        if let Some(core) = cores.iter().find(|core| !all.contains(core)) {
            let have: Vec<String> = all.iter().map(ToString::to_string).collect();
            return Err(RunError::Setting(format!(
                "`steering.rps: {rps}` steers to core {core}, and this run may use core {} only: write a mask of \
                 these, or start wirecost with more cores",
                have.join(", ")
            )));
        }
    }
    Ok(())
}

/// Checks that the kernel has every congestion control of the loads: without it every sample would fail.
///
/// # Errors
/// The first congestion control that is missing, with those that the kernel has and what to do.
pub(crate) fn check_congestion(experiment: &Experiment) -> Result<(), RunError> {
    let loads = experiment.cells.iter().flat_map(|cell| &cell.loads);
    let wanted: BTreeSet<&str> = loads
        .filter_map(|named| named.load.congestion.as_deref())
        .collect();
    let lacking = wanted
        .into_iter()
        .find_map(|name| Some((name, lacks_congestion(name)?)));
    match lacking {
        None => Ok(()),
        Some((name, why)) => Err(RunError::Setting(format!(
            "{why}: write one of these as `congestion`, or load its module as root (modprobe tcp_{name})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_the_machines_is_not_a_labs() {
        let sysctl = Setting {
            factor: "f".into(),
            label: "l".into(),
            sysctl: [("net.core.busy_poll".into(), "50".into())].into(),
            ethtool: BTreeMap::new(),
            device: [].into(),
            device_name: None,
            command: None,
            on: Scope::Machine,
        };
        assert_eq!(in_lab(&sysctl), None);
        assert!(is_of_machine(&sysctl));
        let everywhere = Setting {
            on: Scope::Both,
            ..sysctl
        };
        assert_eq!(in_lab(&everywhere), Some(everywhere.clone()));
        assert!(!is_of_machine(&everywhere));
    }
}
