//! The settings guards of a host, one in the host's namespaces and one in each guest's: started on first use, and
//! shared with the thread that notices the end of the controller.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirecost_model::vary::Setting;
use wirecost_netbuild::{LabHost, Side};
use wirecost_sys::namespace::Netns;

use crate::error::{AgentError, Context, Result};
use crate::guard::{SettingsGuard, SettingsTarget};

/// The running program, even after its file was replaced or removed.
const SELF: &str = "/proc/self/exe";

/// The settings guards of one agent. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingsGuards {
    owner: String,
    running: Arc<Mutex<Running>>,
}

/// The namespaces in which a host's settings are applied.
#[derive(Debug)]
pub(crate) struct GuardNamespaces<'a> {
    pub(crate) side: Side,
    pub(crate) target: SettingsTarget,
    pub(crate) guests: Vec<&'a Netns>,
}

impl<'a> GuardNamespaces<'a> {
    pub(crate) fn of_lab(host: &'a LabHost) -> Self {
        Self {
            side: host.side(),
            target: SettingsTarget::Lab,
            guests: host.guests().collect(),
        }
    }
}

#[derive(Debug, Default)]
struct Running {
    host: Option<SettingsGuard>,
    /// Guards of the guests, by guest number.
    guests: Vec<SettingsGuard>,
    /// The controller is gone: further settings are refused.
    closed: bool,
}

impl SettingsGuards {
    pub(crate) fn new(owner: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            running: Arc::default(),
        }
    }

    /// The controller, as the guards' `--owner` argument names it.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Applies the sysctls and the command of a level in the namespaces that the level names; on an existing host also
    /// the device features and settings.
    pub(crate) fn apply(&self, namespaces: &GuardNamespaces<'_>, setting: &Setting) -> Result<()> {
        let GuardNamespaces {
            side,
            target,
            guests,
        } = namespaces;
        let by_agent = *target == SettingsTarget::Lab
            || (setting.ethtool.is_empty() && setting.device.is_empty());
        if setting.sysctl.is_empty() && setting.command.is_none() && by_agent {
            return Ok(());
        }
        let mut running = self.lock();
        if running.closed {
            return Err("the controller is gone".into());
        }
        let program = Path::new(SELF);
        if setting.on.has_hosts() {
            let place = format!("host {side}");
            let start = || SettingsGuard::start(program, &self.owner, &place, target);
            started(&mut running.host, start)?.apply(setting)?;
        }
        if setting.on.has_guests() {
            for (number, guest) in guests.iter().enumerate() {
                let place = if guests.len() > 1 {
                    format!("guest {number} of host {side}")
                } else {
                    format!("the guest of host {side}")
                };
                if running.guests.len() == number {
                    let inside = || SettingsGuard::start(program, &self.owner, &place, target);
                    let entered = guest.within(inside);
                    let guard = entered.context(format!("{place}: entering its namespace"))??;
                    running.guests.push(guard);
                }
                running.guests[number].apply(setting)?;
            }
        }
        Ok(())
    }

    /// Undoes everything. A failure does not stop the rest.
    pub(crate) fn undo(&self) -> Result<()> {
        let mut running = self.lock();
        let Running { host, guests, .. } = &mut *running;
        let failed: Vec<AgentError> = guests
            .iter_mut()
            .chain(host)
            .filter_map(|guard| guard.undo().err())
            .collect();
        AgentError::all(failed)
    }

    /// Undoes everything and ends the guards; the next `apply` starts new ones.
    pub(crate) fn end(&self) {
        let mut running = self.lock();
        running.guests.clear();
        running.host = None;
    }

    /// Undoes everything and waits for it; every later `apply` is refused.
    pub(crate) fn close(&self) {
        let mut running = self.lock();
        running.closed = true;
        running.guests.clear();
        running.host = None;
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn started(
    guard: &mut Option<SettingsGuard>,
    start: impl FnOnce() -> Result<SettingsGuard>,
) -> Result<&mut SettingsGuard> {
    match guard {
        Some(guard) => Ok(guard),
        None => Ok(guard.insert(start()?)),
    }
}
