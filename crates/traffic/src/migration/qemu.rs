//! Virtual machines in QEMU at one end of a load: started before its window, each with what the move needs.

pub(crate) mod message;
pub(crate) mod stats;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use wirecost_model::end_window::End;
use wirecost_model::load::{Fallback, Migration, MoveEngine, Rate};
use wirecost_model::moved::MachineMove;
use wirecost_qemu::guest::{Program, ticks};
use wirecost_qemu::{Machine, QemuError, Spec, Version, found};
use wirecost_sys::memory_file::MemoryFile;

use super::pulse::Pulse;
use crate::options::Options;

/// How long a guest may take to start.
const BOOT: Duration = Duration::from_secs(10);
/// What `max-bandwidth` is where no rate is asked for, bytes per second: QEMU's own default is 128 MiB/s.
const NO_LIMIT: u64 = 1_250_000_000_000;
/// The first version with `avail-switchover-bandwidth`.
const SWITCHOVER: Version = Version {
    major: 8,
    minor: 2,
    micro: 0,
};

/// A move that failed, for a reason that is not the flow's.
pub(crate) fn broken(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

/// The machines of one end.
#[derive(Debug, Default)]
pub(crate) struct Virtuals {
    machines: Box<[Virtual]>,
    finished: AtomicU32,
}

/// One machine.
#[derive(Debug)]
struct Virtual {
    /// Until the task has it that moves it.
    machine: Mutex<Option<Machine>>,
    memory: Arc<MemoryFile>,
    /// Whether its guest runs at this end, by QEMU's events.
    runs: AtomicBool,
    result: OnceLock<MachineMove>,
}

impl Virtuals {
    /// Those of a load, with their guests running at its client, and waiting for what comes at its server. None where
    /// machines are not QEMU's.
    pub(crate) fn of_load(options: &Options, end: End) -> Result<Self, QemuError> {
        let migration = options.load.migration;
        let Some(migration) = migration.filter(|one| one.engine == MoveEngine::Qemu) else {
            return Ok(Self::default());
        };
        let host = found()?;
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
        let machine = |machine: Machine| Virtual {
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

    /// A machine, for the task that moves it.
    pub(crate) fn take(&self, number: u32) -> Option<Machine> {
        let one = self.machines.get(number as usize)?;
        let mut machine = one.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.take()
    }

    /// QEMU says that a guest runs at this end, or does not.
    pub(crate) fn set_runs(&self, number: u32, runs: bool) {
        if let Some(one) = self.machines.get(number as usize) {
            one.runs.store(runs, Ordering::Release);
        }
    }

    /// The ticks of a guest that runs at this end. What is in its memory before it runs is what has arrived.
    pub(crate) fn pulse(&self, number: u32) -> Option<Pulse> {
        let one = self.machines.get(number as usize)?;
        let runs = one.runs.load(Ordering::Acquire);
        runs.then(|| Pulse::Ticks(ticks(one.memory.memory())))
    }

    /// Whether a machine may move: no more than so many do at once.
    pub(crate) fn may_move(&self, number: u32, at_once: Option<u32>) -> bool {
        let finished = self.finished.load(Ordering::Acquire);
        number < finished.saturating_add(at_once.unwrap_or(u32::MAX))
    }

    /// A machine is through.
    pub(crate) fn finish(&self, number: u32, moved: MachineMove) {
        if let Some(one) = self.machines.get(number as usize) {
            let _ = one.result.set(moved);
        }
        self.finished.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it is at its destination.
    pub(crate) fn is_there(&self, number: u32) -> bool {
        let one = self.machines.get(number as usize);
        let result = one.and_then(|one| one.result.get());
        result.is_some_and(|moved| moved.outcome.is_there())
    }

    /// Those that are through, by number.
    pub(crate) fn moves(&self) -> impl Iterator<Item = MachineMove> {
        let machines = self.machines.iter();
        machines.filter_map(|one| one.result.get().cloned())
    }
}

/// Tells a machine how it is to move.
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
        // Whole milliseconds; with none it would never stop a machine that writes.
        let downtime = (migration.max_downtime.as_millis() as u64).max(1);
        parameters.insert("max-bandwidth".into(), bandwidth.into());
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
