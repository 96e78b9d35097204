//! Time-outs for agents' answers.

use std::time::Duration;

use wirecost_model::load::{MoveEngine, NamedLoad, PATH_PATIENCE};

/// Time-out of a request that only changes or reads settings.
pub(crate) const PROMPT: Duration = Duration::from_secs(10);
/// Additional time for opening or ending each load.
const PER_LOAD: Duration = Duration::from_secs(6);
/// Additional time where virtual machines are started: KVM and emulation are tried first.
const FIRST_BOOT: Duration = Duration::from_secs(30);
/// Additional time for each virtual machine: its start.
const PER_MACHINE: Duration = Duration::from_secs(10);
/// Additional time for each flow: a load may have a thousand threads that never sleep.
const PER_FLOW: Duration = Duration::from_millis(20);

/// Time-out of a request about loads that are running.
pub(crate) fn poll_timeout(loads: &[NamedLoad]) -> Duration {
    PROMPT + PER_FLOW * loads.iter().map(|named| named.load.connections()).sum()
}

/// Time-out of a request that opens all loads or stops their clients: the memory of machines is filled, or compared.
pub(crate) fn memory_timeout(loads: &[NamedLoad]) -> Duration {
    let memory = loads.iter().map(|named| named.load.memory_time());
    load_timeout(loads) + memory.sum::<Duration>()
}

/// Time-out of another request about all loads together.
pub(crate) fn load_timeout(loads: &[NamedLoad]) -> Duration {
    let virtual_machines = loads.iter().map(|named| match named.load.migration {
        Some(migration) if migration.engine == MoveEngine::Qemu => named.load.streams,
        _ => 0,
    });
    let machines: u32 = virtual_machines.sum();
    let boot = if machines > 0 {
        FIRST_BOOT
    } else {
        Duration::ZERO
    };
    let paths = loads.iter().filter(|named| named.load.path.is_some());
    poll_timeout(loads)
        + PER_LOAD * loads.len() as u32
        + PATH_PATIENCE * paths.count() as u32
        + boot
        + PER_MACHINE * machines
}
