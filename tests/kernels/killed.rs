//! Processes killed while a run measures.

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "kills",
    looks_at: "controller, agent, all, by SIGKILL, in a run of both datapaths: no process, device, namespace, program or \
               file is left",
    needs: &["ebpf", "vxlan", "tbf"],
    run,
};

fn run(machine: &mut Machine) {
    machine.sh(120, ". /scripts/killed.sh").fine();
}
