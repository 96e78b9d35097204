//! What a check says of paths and faults that need drivers which this machine's kernel may lack.

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const FAR: Step = Step {
    name: "far, slow and lossy paths",
    looks_at: "round trips of 2 ms to 3 s, reordering, duplicates, 1 to 5 % loss, shapers and policers of 1 to 10 Mbit/s: that \
               there is a netem is named, and nothing that is not true",
    needs: &["netem", "tbf"],
    run: far,
};

pub(crate) const CATALOGUE: Step = Step {
    name: "the catalogue of faults",
    looks_at: "what of it needs bonds, teams, VLANs, filtering bridges, VRFs or Geneve, and the healthy twins",
    needs: &["bond", "team", "vlan", "vrf", "geneve"],
    run: catalogue,
};

/// Round trips of up to 3 s, shapers, policers, loss: netem and tbf.
fn far(machine: &mut Machine) {
    let told = machine.sh(400, ". /scripts/far.sh").fine();
    println!("{}:\n{told}", machine.release);
}

/// Of the catalogue of faults what needs bonds, teams, VLANs, filtering bridges or VRFs, by its own test program.
fn catalogue(machine: &mut Machine) {
    for part in ["bond", "team", "vlan", "vrf", "geneve"] {
        let run = format!(
            "WIRECOST_REQUIRE_ROOT=1 WIRECOST_EVERY_DEVICE=1 WIRECOST_FAULTS={part} \
             faults --test-threads 1 --nocapture every_fault_of 2>&1"
        );
        let told = machine.sh(200, &run).fine();
        assert!(told.contains("right"), "{part}: {told}");
        println!("{}: {told}", machine.release);
    }
}
