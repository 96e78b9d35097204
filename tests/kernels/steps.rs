//! What is tried on every kernel, one after the other. A step is a file of its own; one more is one line here.

use crate::machine::{Kernel, Machine};
use crate::{
    by_ebpf, by_the_kernel, checks, diagnose, ebpf_and_kernel, journal, killed, line, line_core,
    make_run, open_vswitch, ovn, paths, storage, two_machines, verdicts,
};

/// One thing that is tried on every kernel.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// For docs/kernels.md.
    pub(crate) looks_at: &'static str,
    /// Features of `features.rs`: a kernel that lacks one does not run the step, another must.
    pub(crate) needs: &'static [&'static str],
    /// Panics where something is wrong.
    pub(crate) run: fn(&mut Machine),
}

/// What boots machines of its own kind.
pub(crate) struct OwnMachineStep {
    pub(crate) name: &'static str,
    /// For docs/kernels.md.
    pub(crate) looks_at: &'static str,
    /// For docs/kernels.md: every kernel here has them.
    pub(crate) needs: &'static [&'static str],
    pub(crate) needs_root: bool,
    /// It takes minutes: only where `WIRECOST_STEP` asks for it.
    pub(crate) by_name: bool,
    /// Panics where something is wrong.
    pub(crate) run: fn(&Kernel),
}

pub(crate) const OWN_MACHINE_STEPS: &[OwnMachineStep] = &[
    two_machines::STEP,
    verdicts::STEP,
    storage::STEP,
    line_core::STEP,
    journal::RANDOM,
    journal::SWITCHED_OFF,
    diagnose::CHECKSUM,
    diagnose::LARGE,
    diagnose::JOINED,
    diagnose::FINE,
    diagnose::LINE,
];

/// Whether a plain user's devices can be steered there.
pub(crate) fn has_default_mask(machine: &mut Machine) -> bool {
    let test = "test -e /proc/sys/net/core/rps_default_mask";
    machine.sh(10, test).code == 0
}

pub(crate) const STEPS: &[Step] = &[
    by_the_kernel::STEP,
    by_ebpf::STEP,
    ebpf_and_kernel::STEP,
    open_vswitch::STEP,
    ovn::STEP,
    line::AT_ITS_RATE,
    line::IN_A_RUN,
    make_run::STEP,
    Step {
        name: "healthy paths",
        looks_at: "a bond; a VLAN through a filtering bridge; a router in a VRF: no finding",
        needs: &["bond", "vlan", "vrf"],
        run: checks::healthy_paths,
    },
    Step {
        name: "faulty paths",
        looks_at: "a bond's member at 1500 (`bond-member-differs`), a port without the tag, a port of 1500 at 10 ms",
        needs: &["netem", "bond", "vlan"],
        run: checks::faulty_paths,
    },
    paths::FAR,
    paths::CATALOGUE,
    diagnose::STEP,
    journal::CLOCK,
    killed::STEP,
];
