//! `plans/ovn-or-not.yaml` over the kernel's openvswitch module.

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "what OVN costs",
    looks_at: "`plans/ovn-or-not.yaml` by `ovn-kernel` in short windows (4 rounds of 0.2 s): every cell has valid samples, and \
               every factor its verdicts, which the test prints; figures of an emulated processor",
    needs: &["openvswitch", "tbf"],
    run,
};

const SHORT: &str = "wirecost plans ovn-or-not | sed -e 's/^datapath: .*/datapath: ovn-kernel/' \
                     -e 's/^repeat: .*/repeat: { rounds: 4, seconds: 0.2, warmup: 0.1, worth: 5% }/' >/tmp/short.yaml";

fn run(machine: &mut Machine) {
    let measure = format!(
        "{SHORT}; rm -rf /tmp/run; wirecost run /tmp/short.yaml --out /tmp/run --seed 1 >/tmp/shown; \
         grep -c '\"invalid\":null' /tmp/run/samples.jsonl; grep -c '\"datapath\":\"kernel\"' /tmp/run/samples.jsonl"
    );
    let counted = machine.sh(900, &measure).fine();
    let counted: Vec<&str> = counted.split_whitespace().collect();
    assert_eq!(counted, ["32", "32"]);
    let shown = machine.sh(60, "wirecost report /tmp/run").fine();
    for factor in [
        "Encapsulation",
        "The outer UDP checksum",
        "An ACL with connection tracking",
    ] {
        assert!(shown.contains(factor), "{factor}: {shown}");
    }
    for line in shown.lines() {
        println!("{} (emulated) | {line}", machine.release);
    }
}
