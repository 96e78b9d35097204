//! Ctrl-C and similar signals: the first signal asks the command to end, the second one exits.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wirecost_agent::orphan::Owner;
use wirecost_control::hosts::{AgentRole, HostsContext};

use crate::binaries::AgentBinaries;

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. Signals that were ignored at the start stay ignored.
pub(crate) fn flag() -> io::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if is_ignored(signal) {
            continue;
        }
        // A second signal exits at once; the kernel ends the agents with this process.
        signal_hook::flag::register_conditional_shutdown(signal, 3, interrupt.clone())?;
        signal_hook::flag::register(signal, interrupt.clone())?;
    }
    Ok(interrupt)
}

/// The flag of [`flag`], and what the agents of a command's hosts are started with.
pub(crate) fn with_hosts(
    verbose: u8,
    binaries: &AgentBinaries,
) -> io::Result<(Arc<AtomicBool>, HostsContext)> {
    let interrupt = flag()?;
    let context = HostsContext {
        program: std::env::current_exe()?,
        binaries: binaries.binaries(),
        owner: Owner::this()?,
        role: AgentRole::Commands,
        idle: Duration::ZERO,
        verbose,
    };
    Ok((interrupt, context))
}

/// Whether this process was started with the signal ignored, as nohup(1) does with SIGHUP, and a shell with SIGINT for
/// a background job.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
