//! What a kernel has of what the program and these tests need: by the program's own word (`doctor`) and, for what labs
//! of the tests are made of, by making it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::machine::Machine;

/// Beside what `doctor` names: made by scripts/features.sh under this name, and what needs it.
pub(crate) const DRIVERS: &[(&str, &str)] = &[
    ("bond", "`check` of hosts with bonds"),
    ("team", "`check` of hosts with teams"),
    ("vrf", "`check` of hosts with VRFs"),
    ("clsact", "`datapath: ebpf` where there is no tcx"),
    ("openvswitch", "`datapath: ovs` in the kernel"),
    (
        "rps_default_mask",
        "`cores: split` without root steers what is received",
    ),
];

/// Checks of `doctor` that every kernel of Debian's passes, if with a restriction.
pub(crate) const EVERYWHERE: &[&str] = &[
    "veth",
    "bridge",
    "vxlan",
    "geneve",
    "gre",
    "ipip",
    "wireguard",
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

/// Checks of `doctor` that say something of the kernel and not of the machine.
const GROUPS: [&str; 3] = ["essentials", "encapsulations", "sockets"];

/// One thing that a kernel has or lacks.
#[derive(Debug, Clone)]
pub(crate) struct Feature {
    pub(crate) title: String,
    pub(crate) needed_for: String,
    /// `doctor`'s word: `yes`, `limited`, `no`, `unknown`.
    pub(crate) status: String,
}

impl Feature {
    pub(crate) fn is_there(&self) -> bool {
        ["yes", "limited"].contains(&self.status.as_str())
    }
}

/// By name, in the order in which they are told.
pub(crate) type Features = Vec<(String, Feature)>;

pub(crate) fn of(machine: &mut Machine) -> Features {
    let told = machine.sh(60, "wirecost doctor --json").fine();
    let document: Value = serde_json::from_str(&told).expect("one document");
    let checks = document["checks"].as_array().expect("checks");
    let mut features: Features = checks
        .iter()
        .filter(|check| GROUPS.iter().any(|group| check["group"] == *group))
        .map(|check| {
            let text = |key: &str| check[key].as_str().expect("text").to_owned();
            let feature = Feature {
                title: text("title"),
                needed_for: text("needed_for"),
                status: text("status"),
            };
            (text("id"), feature)
        })
        .collect();
    let told = machine.sh(60, ". /scripts/features.sh").fine();
    let made: BTreeMap<&str, &str> = told.lines().filter_map(|l| l.split_once(' ')).collect();
    for (name, needed_for) in DRIVERS {
        let status = made
            .get(name)
            .unwrap_or_else(|| panic!("features.sh does not try {name}: {told}"));
        let feature = Feature {
            title: (*name).to_owned(),
            needed_for: (*needed_for).to_owned(),
            status: (*status).to_owned(),
        };
        features.retain(|(known, _)| known != name);
        features.push(((*name).to_owned(), feature));
    }
    features
}

pub(crate) fn has(features: &Features, name: &str) -> bool {
    let found = features.iter().find(|(known, _)| known == name);
    let (_, feature) = found.unwrap_or_else(|| panic!("no feature is called {name}"));
    feature.is_there()
}
