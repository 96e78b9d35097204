//! What `check` finds and does not find on devices that this machine's kernel may lack.

use crate::machine::Machine;

/// Bonds, VLANs, filtering bridges, VRFs.
pub(crate) fn healthy_paths(machine: &mut Machine) {
    let told = machine.sh(120, ". /scripts/healthy.sh").fine();
    println!("{}:\n{told}", machine.release);
}

/// A member of a bond that was reset, a tag's device that is narrow, a bridge that filters the tag.
pub(crate) fn faulty_paths(machine: &mut Machine) {
    let told = machine.sh(120, ". /scripts/faulty.sh").fine();
    println!("{}:\n{told}", machine.release);
}
