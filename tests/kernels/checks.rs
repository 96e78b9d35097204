//! What the program finds and does not find on devices that this machine's kernel may lack.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::machine::Machine;

/// What every kernel of Debian's has: what `doctor` must say of each.
const EVERYWHERE: &[&str] = &[
    "veth",
    "bridge",
    "vxlan",
    "geneve",
    "gre",
    "ipip",
    "vlan",
    "ipv6",
    "ifb",
    "ebpf",
    "btf",
    "tbf",
    "netem",
    "fq",
    "receive-steering",
];

pub(crate) fn doctor(machine: &mut Machine) {
    let told = machine.sh(60, "wirecost doctor --json").fine();
    let document: Value = serde_json::from_str(&told).expect("one document");
    let said: BTreeMap<&str, &str> = document["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| {
            let text = |key: &str| check[key].as_str().expect("text");
            (text("id"), text("status"))
        })
        .collect();
    println!("{}: {said:?}", machine.release);
    for id in EVERYWHERE {
        let status = said
            .get(id)
            .unwrap_or_else(|| panic!("no check {id}: {said:?}"));
        assert!(["yes", "limited"].contains(status), "{id}: {status}");
    }
}

/// netem's delay, jitter, reordering, duplicates and loss; bonds, teams, VLANs, filtering bridges, VRFs.
pub(crate) fn healthy_paths(machine: &mut Machine) {
    let told = machine.sh(240, ". /scripts/healthy.sh").fine();
    println!("{}:\n{told}", machine.release);
}

/// A member of a bond that was reset, a tag's device that is narrow, a bridge that filters the tag.
pub(crate) fn faulty_paths(machine: &mut Machine) {
    let told = machine.sh(120, ". /scripts/faulty.sh").fine();
    println!("{}:\n{told}", machine.release);
}
