//! The examination: probes, the machine, a quiet window; then the judgement.

use std::path::Path;
use std::time::{Duration, Instant};

use wirecost_sys::namespace::effective_capability;

use crate::check::Examination;
use crate::child::Probe;
use crate::evidence::{CallerPrivileges, Evidence, Tried};
use crate::probe::Privilege;
use crate::{gather, judge};

/// Time for the probes, which need some 0.2 s: one that hangs must not hold up the rest. Who is at work then gets more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Long enough to see one tick of 10 ms as 1 % of two cores.
const WINDOW: Duration = Duration::from_millis(500);

/// Finds out what this machine can do. `program` is started as `program doctor --probe WAY`, and
/// then has to call [`crate::probe`].
///
/// What cannot be found out is said in the checks.
pub fn examine(program: &Path) -> Examination {
    let began = Instant::now();
    // Both at once; a namespace of the one means nothing to the other.
    let probes = [Privilege::Own, Privilege::Plain].map(|way| Probe::start(program, way));
    let [own, plain] = probes.map(|probe| match probe {
        Ok(probe) => probe.collect(PATIENCE),
        Err(error) => Tried {
            cut_short: Some(format!(
                "{} could not be started: {error}",
                program.display()
            )),
            ..Tried::default()
        },
    });
    let mut machine = gather::machine();
    // Last, so that the probes' namespaces are gone from the kernel's to-do list by the end.
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

/// include/uapi/linux/capability.h
const CAP_SYS_ADMIN: u32 = 21;
