//! Virtual machines in QEMU at one end of a load: started before its window, each configured for its move.

pub(crate) mod message;
pub(crate) mod stats;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use wirecost_model::end_window::End;
use wirecost_model::load::{Fallback, Migration, MoveEngine, Rate};
use wirecost_model::machine_move::MachineMove;
use wirecost_qemu::guest::{Program, ticks};
use wirecost_qemu::{Machine, QemuError, Spec, Version, host_qemu};
use wirecost_sys::memory_file::MemoryFile;

use super::liveness::GuestLiveness;
use crate::options::Options;

/// How long a guest may take to start.
const BOOT: Duration = Duration::from_secs(10);
/// `max-bandwidth` of a load without a rate, bytes per second: QEMU's own default is 128 MiB/s.
const NO_LIMIT: u64 = 1_250_000_000_000;
/// The first version of QEMU with `avail-switchover-bandwidth`.
const SWITCHOVER: Version = Version {
    major: 8,
    minor: 2,
    micro: 0,
};

/// An error of the move that is not an error of the flow's connection.
pub(crate) fn broken(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

/// The virtual machines of one end.
#[derive(Debug, Default)]
pub(crate) struct QemuMachines {
    machines: Box<[QemuMachine]>,
    /// Machines whose move is over.
    finished: AtomicU32,
}

/// One virtual machine.
#[derive(Debug)]
struct QemuMachine {
    /// `None` once the task that moves the machine has taken it.
    machine: Mutex<Option<Machine>>,
    /// The guest's memory, also while the task has the machine.
    memory: Arc<MemoryFile>,
    /// Whether the guest runs at this end, by QEMU's events.
    runs: AtomicBool,
    result: OnceLock<MachineMove>,
}

impl QemuMachines {
    /// The virtual machines of a load: at its client their guests run, at its server they wait for an incoming move.
    /// None where the load moves no virtual machines.
    ///
    /// # Errors
    /// No usable QEMU; a machine that does not start, refuses its configuration, or whose guest does not run within
    /// [`BOOT`].
    pub(crate) fn of_load(options: &Options, end: End) -> Result<Self, QemuError> {
        let migration = options.load.migration;
        let Some(migration) = migration.filter(|one| one.engine == MoveEngine::Qemu) else {
            return Ok(Self::default());
        };
        let host = host_qemu()?;
        let spec = Spec {
            memory: migration.memory,
            accelerator: host.accelerator,
            program: Program::of(&migration),
            incoming: end == End::Server,
        };
        let started = (0..options.load.streams).map(|_| {
            let mut machine = Machine::start(&host.program, &spec)?;
            prepare(&mut machine, &migration, options, end)?;
            Ok(machine)
        });
        let mut machines: Vec<Machine> = started.collect::<Result<_, QemuError>>()?;
        if end == End::Client {
            for machine in &mut machines {
                machine.await_guest(BOOT)?;
            }
        }
        let machine = |machine: Machine| QemuMachine {
            memory: machine.memory_file(),
            machine: Mutex::new(Some(machine)),
            runs: AtomicBool::new(end == End::Client),
            result: OnceLock::new(),
        };
        Ok(Self {
            machines: machines.into_iter().map(machine).collect(),
            finished: AtomicU32::new(0),
        })
    }

    /// Takes a machine, for the task that moves it.
    pub(crate) fn take(&self, number: u32) -> Option<Machine> {
        let one = self.machines.get(number as usize)?;
        let mut machine = one.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.take()
    }

    /// Notes whether a guest runs at this end, as QEMU says.
    pub(crate) fn set_runs(&self, number: u32, runs: bool) {
        if let Some(one) = self.machines.get(number as usize) {
            one.runs.store(runs, Ordering::Release);
        }
    }

    /// The ticks of a guest that runs at this end; `None` where it does not: then ticks in its memory are what has
    /// arrived.
    pub(crate) fn guest_liveness(&self, number: u32) -> Option<GuestLiveness> {
        let one = self.machines.get(number as usize)?;
        let runs = one.runs.load(Ordering::Acquire);
        runs.then(|| GuestLiveness::Ticks(ticks(one.memory.memory())))
    }

    /// Whether a machine may move: no more than `at_once` move at the same time.
    pub(crate) fn may_move(&self, number: u32, at_once: Option<u32>) -> bool {
        let finished = self.finished.load(Ordering::Acquire);
        number < finished.saturating_add(at_once.unwrap_or(u32::MAX))
    }

    /// Records the result of a machine's move.
    pub(crate) fn finish(&self, number: u32, moved: MachineMove) {
        if let Some(one) = self.machines.get(number as usize) {
            let _ = one.result.set(moved);
        }
        self.finished.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a machine has moved to its destination.
    pub(crate) fn is_there(&self, number: u32) -> bool {
        let one = self.machines.get(number as usize);
        let result = one.and_then(|one| one.result.get());
        result.is_some_and(|moved| moved.outcome.is_there())
    }

    /// The moves that are over, by number of the machine.
    pub(crate) fn moves(&self) -> impl Iterator<Item = MachineMove> {
        let machines = self.machines.iter();
        machines.filter_map(|one| one.result.get().cloned())
    }
}

/// Sets a machine's migration capabilities and parameters.
fn prepare(
    machine: &mut Machine,
    migration: &Migration,
    options: &Options,
    end: End,
) -> Result<(), QemuError> {
    let multifd = migration.channels > 1;
    let throttle = migration.fallback == Fallback::Throttle;
    let capability = |name: &str, on: bool| json!({ "capability": name, "state": on });
    let capabilities = [
        capability("events", true),
        capability("multifd", multifd),
        capability("auto-converge", throttle),
        capability("postcopy-ram", migration.post_copy),
    ];
    machine.execute(
        "migrate-set-capabilities",
        &json!({ "capabilities": capabilities }),
    )?;
    let mut parameters = serde_json::Map::new();
    if multifd {
        parameters.insert("multifd-channels".into(), migration.channels.into());
    }
    if end == End::Client {
        let bandwidth = match options.load.rate {
            Some(Rate::BitsPerSecond(bits)) => bits / 8,
            _ => NO_LIMIT,
        };
        // At least 1 ms: with 0 QEMU would never stop a guest that writes.
        let downtime = (migration.max_downtime.as_millis() as u64).max(1);
        parameters.insert("max-bandwidth".into(), bandwidth.into());
        if migration.post_copy && options.load.rate.is_some() {
            // QEMU's default is no limit once the machine runs at the destination.
            parameters.insert("max-postcopy-bandwidth".into(), bandwidth.into());
        }
        parameters.insert("downtime-limit".into(), downtime.into());
        if let Some(bits) = migration.switchover_bandwidth {
            parameters.insert("avail-switchover-bandwidth".into(), (bits / 8).into());
            if machine.version() < SWITCHOVER {
                return Err(QemuError::Unusable(format!(
                    "switchover_bandwidth: QEMU {} has no avail-switchover-bandwidth, which came with {SWITCHOVER}",
                    machine.version()
                )));
            }
        }
    }
    if !parameters.is_empty() {
        machine.execute("migrate-set-parameters", &Value::Object(parameters))?;
    }
    Ok(())
}
