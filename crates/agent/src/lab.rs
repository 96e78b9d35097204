//! Turns a process into a lab host: pinned to cores, in its own namespaces, killed with the controller.

use std::io;
use std::os::unix::process::parent_id;

pub use wirecost_netbuild::may_steer;
use wirecost_sys::namespace::{self, UserNamespace};
use wirecost_sys::process;
use wirecost_sys::socket::{CongestionError, try_congestion};

use crate::error::{AgentError, Context, Result};

/// Turns the calling process, which must have one thread, into a lab host.
///
/// With [`UserNamespace::Keep`], a user namespace is made after all where the process has too little privilege.
///
/// # Errors
/// The message is for the user: what the kernel refused, and which setting to change.
pub fn become_host(user: UserNamespace, cpus: &[u32]) -> Result<()> {
    let parent = parent_id();
    process::pin_to(cpus).context(format!("pinning a lab host to cores {cpus:?}"))?;
    isolate(user)?;
    wirecost_traffic::note_control_groups();
    // A container may forbid the mount; then steering masks are not read back, and the record says so.
    let _ = namespace::mount_own_sysfs();
    process::die_with_parent(parent).context("tying a lab host to its run")
}

fn isolate(user: UserNamespace) -> Result<()> {
    let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let tried = match (user, namespace::isolate(user)) {
        (UserNamespace::Keep, Err(error)) if denied(&error) => {
            namespace::isolate(UserNamespace::New)
        }
        (_, result) => result,
    };
    tried.map_err(|error| {
        let advice = namespace::forbidding_setting()
            .unwrap_or_else(|| "run as root, or in a container that may create namespaces".into());
        let step = "the kernel does not let this user make a network namespace";
        AgentError::Refused(format!("{step}: {error}; {advice}"))
    })
}

/// Numbers of the cores that the calling process may use, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    process::allowed_cpus()
}

/// Why no connection on this machine can use a congestion control, given by the kernel's name. `None` where one can,
/// and where only a lab can tell: its user may have a capability there that it lacks here.
pub fn lacks_congestion(algorithm: &str) -> Option<String> {
    match try_congestion(algorithm) {
        Err(error @ CongestionError::Missing { .. }) => Some(error.to_string()),
        Ok(()) | Err(CongestionError::NotPermitted { .. } | CongestionError::Other { .. }) => None,
    }
}

/// Nanoseconds that a cache line takes from one core to another and back, both otherwise idle. `None` where that is
/// unknown: the two are the same core, may not be used, or were kept busy by other programs for a second.
pub fn core_distance_ns(cpus: [u32; 2]) -> Option<f64> {
    let [a, b] = cpus;
    match wirecost_sys::cores::line_round_trip_ns(a, b) {
        Ok(apart) => apart,
        Err(error) => {
            tracing::debug!("the distance of cores {a} and {b} could not be measured: {error}");
            None
        }
    }
}
