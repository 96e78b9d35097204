//! The examination: runs the probes, reads the machine, counts its load over a window, and judges.

use std::path::Path;
use std::time::{Duration, Instant};

use wirecost_sys::namespace::effective_capability;

use crate::check::Examination;
use crate::child::Probe;
use crate::evidence::{CallerPrivileges, Evidence, ProbeResults};
use crate::probe::Privilege;
use crate::{gather, judge};

/// Time limit of a probe, which needs some 0.2 s, so that one that hangs does not hold up the rest. A probe whose
/// processes still use CPU time then gets more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the window for steal and foreign load: one tick of 10 ms is 1 % of two cores.
const WINDOW: Duration = Duration::from_millis(500);

/// Finds out what this machine can do. `program` is started as `program doctor --probe WAY`, and
/// then has to call [`crate::probe`].
///
/// A check whose result cannot be determined has the status `Unknown`.
pub fn examine(program: &Path) -> Examination {
    let began = Instant::now();
    // Both run at once: their namespaces are independent.
    let probes = [Privilege::Own, Privilege::Plain].map(|way| Probe::start(program, way));
    let [own, plain] = probes.map(|probe| match probe {
        Ok(probe) => probe.collect(PATIENCE),
        Err(error) => ProbeResults {
            cut_short: Some(format!(
                "{} could not be started: {error}",
                program.display()
            )),
            ..ProbeResults::default()
        },
    });
    let mut machine = gather::machine();
    // Last, to leave the kernel time to dismantle the probes' namespaces.
    machine.window = gather::window(WINDOW);
    machine.wakeup = wirecost_meter::wakeup_cost(&machine.allowed);
    let caller = CallerPrivileges {
        uid: nix::unistd::geteuid().as_raw(),
        may_make_namespaces: effective_capability(CAP_SYS_ADMIN),
    };
    let evidence = Evidence {
        caller,
        own,
        plain,
        machine,
    };
    judge::examination(&evidence, began.elapsed().as_secs_f64())
}

/// Number of the capability (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
