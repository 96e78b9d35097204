//! A lab host's keepers, one in the host's namespaces and one in its guest's: started when first needed,
//! shared with whoever notices that the controller is gone.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirecost_model::vary::Setting;
use wirecost_netbuild::LabHost;

use crate::keeper::Keeper;

/// This program, also where its file was replaced or removed meanwhile.
const SELF: &str = "/proc/self/exe";

/// The keepers of one agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keepers {
    owner: String,
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    host: Option<Keeper>,
    guest: Option<Keeper>,
    /// The controller is gone: nothing more is put in force.
    closed: bool,
}

impl Keepers {
    pub(crate) fn new(owner: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            running: Arc::default(),
        }
    }

    /// Puts the sysctls and the command of a level in force where they belong.
    pub(crate) fn put(&self, host: &LabHost, setting: &Setting) -> Result<(), String> {
        if setting.sysctl.is_empty() && setting.command.is_none() {
            return Ok(());
        }
        let mut running = self.lock();
        if running.closed {
            return Err("the controller is gone".into());
        }
        let (side, program) = (host.side(), Path::new(SELF));
        if setting.on.has_hosts() {
            let place = format!("host {side}");
            let start = || Keeper::start(program, &self.owner, &place, false);
            started(&mut running.host, start)?.put(setting)?;
        }
        if setting.on.has_guests() {
            let place = format!("the guest of host {side}");
            let start = || {
                let inside = || Keeper::start(program, &self.owner, &place, false);
                let entered = host.guest().within(inside);
                entered.map_err(|error| format!("{place}: entering its namespace: {error}"))?
            };
            started(&mut running.guest, start)?.put(setting)?;
        }
        Ok(())
    }

    /// Undoes everything; all of it is tried.
    pub(crate) fn undo(&self) -> Result<(), String> {
        let mut running = self.lock();
        let Running { host, guest, .. } = &mut *running;
        let failed: Vec<String> = [guest, host]
            .into_iter()
            .flatten()
            .filter_map(|keeper| keeper.undo().err())
            .collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }

    /// Has everything undone for good, and waits for it.
    pub(crate) fn close(&self) {
        let mut running = self.lock();
        running.closed = true;
        running.guest = None;
        running.host = None;
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn started(
    keeper: &mut Option<Keeper>,
    start: impl FnOnce() -> Result<Keeper, String>,
) -> Result<&mut Keeper, String> {
    match keeper {
        Some(keeper) => Ok(keeper),
        None => Ok(keeper.insert(start()?)),
    }
}
