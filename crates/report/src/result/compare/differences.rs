//! Differences between two runs besides their figures: program, machine, plan.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use wirecost_model::cell::Experiment;
use wirecost_model::record::RunHead;

use super::matching::{MissingFactor, match_cells};

/// One difference between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where the two runs differ.
    pub area: Area,
    /// What differs: the path of a field of the record (`sysctls.net.ipv4.tcp_ecn`, `repeat.rounds`), or a
    /// factor's key.
    pub key: String,
    /// Its value before; absent where that record does not know it.
    pub before: Option<String>,
    /// Its value after; absent likewise.
    pub after: Option<String>,
}

/// Area in which two runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Version of the program or of its record.
    Program,
    /// Machine and hosts.
    Environment,
    /// The plan.
    Plan,
}

/// Fields of a plan that are not compared: factors, which are compared by their levels, and fields that say nothing
/// about the measurement.
const NOT_OF_THE_PLAN: [&str; 17] = [
    "acl",
    "datapath",
    "description",
    "encapsulation",
    "guest_ip",
    "guest_mtu",
    "guests",
    "loads",
    "offload",
    "pairs",
    "published",
    "seed",
    "steering",
    "topology",
    "udp_checksum",
    "underlay",
    "vary",
];

/// Key of the difference in what lies between the hosts: the part of the underlay that is no factor.
pub(crate) const TRANSIT: &str = "underlay.transit";

/// Memory sizes that differ by at most this fraction count as the same: kernels reserve more or less of it.
const MEMORY: f64 = 0.01;

/// The differences found, in the order of comparison.
#[derive(Default)]
pub(super) struct Differences(pub(super) Vec<Difference>);

impl Differences {
    /// Adds `key` if its values before and after differ.
    pub(super) fn add(&mut self, area: Area, key: &str, [before, after]: [Option<String>; 2]) {
        if before != after {
            self.0.push(Difference {
                area,
                key: key.to_owned(),
                before,
                after,
            });
        }
    }
}

/// Everything that differs, the program first, then the machine, then the plan.
pub(super) fn differences(before: &RunHead, after: &RunHead) -> Vec<Difference> {
    let mut all = Differences::default();
    let program = [before, after].map(|head| Some(head.program_version.clone()));
    all.add(Area::Program, "program_version", program);
    let record = [before, after].map(|head| Some(head.record_version.to_string()));
    all.add(Area::Program, "record_version", record);

    let environments = [before, after].map(|head| fields(&head.environment, &[]));
    let memory = [before, after].map(|head| head.environment.memory_bytes as f64);
    let same_memory = (memory[0] - memory[1]).abs() <= MEMORY * memory[0].max(memory[1]);
    for key in keys(&environments) {
        if key == "memory_bytes" && same_memory {
            continue;
        }
        all.add(Area::Environment, key, sides(&environments, key));
    }

    let plans = [before, after].map(|head| fields(&head.experiment.plan, &NOT_OF_THE_PLAN));
    for key in keys(&plans) {
        all.add(Area::Plan, key, sides(&plans, key));
    }
    let transit = [before, after].map(|head| head.experiment.plan.underlay.transit.to_string());
    all.add(Area::Plan, TRANSIT, transit.map(Some));
    let factors = factors(&before.experiment, &after.experiment);
    for (key, levels) in factors {
        all.add(Area::Plan, &key, levels);
    }
    all.0
}

/// The levels of every factor in both runs, in `after`'s order.
fn factors(before: &Experiment, after: &Experiment) -> Vec<(String, [Option<String>; 2])> {
    let unshared = match_cells(before, after).unshared;
    let levels = |experiment: &Experiment, is_before: bool, key: &str| {
        let own = experiment.factors.iter().find(|factor| factor.key == key);
        match own {
            Some(factor) => Some(factor.levels.join(", ")),
            None => unshared
                .iter()
                .find(|unshared| unshared.key == key && unshared.unknown_before == is_before)
                .and_then(|unshared| match &unshared.what {
                    MissingFactor::Had(had) if !had.is_empty() => Some(had.join(", ")),
                    _ => None,
                }),
        }
    };
    let mut keys: Vec<&String> = after.factors.iter().map(|factor| &factor.key).collect();
    for factor in &before.factors {
        if !keys.contains(&&factor.key) {
            keys.push(&factor.key);
        }
    }
    keys.into_iter()
        .filter(|key| {
            // A factor that applies to no cell of one run, as the underlay's IP without a tunnel, is no difference.
            let nothing = |unshared: &super::matching::UnsharedFactor| {
                unshared.key == **key && unshared.what == MissingFactor::Had(Vec::new())
            };
            !unshared.iter().any(nothing)
        })
        .map(|key| {
            let sides = [levels(before, true, key), levels(after, false, key)];
            (key.clone(), sides)
        })
        .collect()
}

/// The leaves of a part of the record by their path, so that fields of a later version are compared too.
/// `null` counts as absent.
pub(super) fn fields(part: &impl Serialize, without: &[&str]) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    // What was read from JSON can be written as JSON.
    if let Ok(Value::Object(fields)) = serde_json::to_value(part) {
        for (key, value) in fields {
            if !without.contains(&key.as_str()) {
                flatten(key, value, &mut leaves);
            }
        }
    }
    leaves
}

fn flatten(path: String, value: Value, leaves: &mut BTreeMap<String, String>) {
    let text = match value {
        Value::Null => return,
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(format!("{path}.{key}"), value, leaves);
            }
            return;
        }
        Value::Array(items) if items.is_empty() => return,
        Value::Array(items) => {
            let items = items.into_iter().map(scalar);
            items.collect::<Vec<_>>().join(", ")
        }
        value => scalar(value),
    };
    leaves.insert(path, text);
}

fn scalar(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

pub(super) fn keys(sides: &[BTreeMap<String, String>; 2]) -> Vec<&String> {
    let mut keys: Vec<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The value of `key` before and after, each side read by [`fields`].
pub(super) fn sides(sides: &[BTreeMap<String, String>; 2], key: &str) -> [Option<String>; 2] {
    sides.each_ref().map(|side| side.get(key).cloned())
}
