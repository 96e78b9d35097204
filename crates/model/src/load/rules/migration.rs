//! Rules of migration loads.

use super::super::{MoveEngine, WaitMode};
use super::{Fault, Load};

/// The options of a migration, and the options of other loads that QEMU does not support.
pub(super) fn migration(load: &Load) -> Option<Fault> {
    let migration = load.migration?;
    if let Some((option, message)) = migration.fault(load.streams) {
        return Some(Fault { option, message });
    }
    // QEMU makes its own connections and has its own threads for them.
    let options = [
        ("threads", load.threads.is_some()),
        ("spin", load.waiting == WaitMode::Spin),
        ("socket_buffer", load.socket_buffer.is_some()),
        ("dscp", load.dscp.is_some()),
    ];
    let (option, _) = options
        .into_iter()
        .find(|(_, given)| *given && migration.engine == MoveEngine::Qemu)?;
    Some(Fault {
        option,
        message: format!(
            "{option} means nothing to QEMU, which makes its own connections: leave it out"
        ),
    })
}
