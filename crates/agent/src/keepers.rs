//! A lab host's keepers, one in the host's namespaces and one in each of its guests': started when first needed,
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
    /// By guest.
    guests: Vec<Keeper>,
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

    /// The controller, as a keeper's arguments name it.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
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
            let several = host.guests().len() > 1;
            for (number, guest) in host.guests().enumerate() {
                let place = if several {
                    format!("guest {number} of host {side}")
                } else {
                    format!("the guest of host {side}")
                };
                if running.guests.len() == number {
                    let inside = || Keeper::start(program, &self.owner, &place, false);
                    let entered = guest.within(inside);
                    let keeper = entered
                        .map_err(|error| format!("{place}: entering its namespace: {error}"))??;
                    running.guests.push(keeper);
                }
                running.guests[number].put(setting)?;
            }
        }
        Ok(())
    }

    /// Undoes everything; all of it is tried.
    pub(crate) fn undo(&self) -> Result<(), String> {
        let mut running = self.lock();
        let Running { host, guests, .. } = &mut *running;
        let failed: Vec<String> = guests
            .iter_mut()
            .chain(host)
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
        running.guests.clear();
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
