//! Time-outs for agents' answers.

use std::time::Duration;

use wirecost_model::load::{MoveEngine, NamedLoad, PATH_PATIENCE};

/// For a request that only changes or reads settings.
pub(crate) const PROMPT: Duration = Duration::from_secs(10);
/// How long opening or ending one load may take beyond the rest.
const PER_LOAD: Duration = Duration::from_secs(6);
/// Virtual machines are tried first, by KVM and by emulation.
const FIRST_BOOT: Duration = Duration::from_secs(30);
/// How long starting one may take, and filling its memory.
const PER_MACHINE: Duration = Duration::from_secs(10);
/// How much longer anything may take for each flow: its threads may be a thousand that always have something to do.
const PER_FLOW: Duration = Duration::from_millis(20);

/// How long a look at loads that go on may take.
pub(crate) fn poll_timeout(loads: &[NamedLoad]) -> Duration {
    PROMPT + PER_FLOW * loads.iter().map(|named| named.load.connections()).sum()
}

/// How long opening or ending all loads may take.
pub(crate) fn patience(loads: &[NamedLoad]) -> Duration {
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
