//! Judges the evidence. No I/O: the same evidence gives the same result.

mod advice;
mod feature;
mod kernel_feature;
mod machine;
mod namespaces;
mod summary;

use crate::check::{Check, Examination, Group, MachineSummary};
use crate::evidence::Evidence;

/// Judges every check, and sums them up. `seconds` is how long the examination took.
pub(crate) fn examination(evidence: &Evidence, seconds: f64) -> Examination {
    let checks = checks(evidence);
    let verdict = summary::verdict(evidence, &checks);
    let machine = &evidence.machine;
    Examination {
        summary: verdict.sentence,
        can_run_labs: verdict.can_run_labs,
        as_root: verdict.as_root,
        as_plain_user: verdict.as_plain_user,
        machine: MachineSummary {
            kernel: machine.release.clone(),
            cpu_model: machine.cpu_model.clone(),
            virtual_machine: machine.is_guest,
            online_cpus: machine.online.clone(),
            allowed_cpus: machine.allowed.clone(),
            kernel_config: machine.config.as_ref().map(|config| config.path.clone()),
        },
        checks,
        seconds,
    }
}

/// Kernel modules that advice may name.
pub(crate) fn modules() -> impl Iterator<Item = &'static str> {
    kernel_feature::FEATURES
        .iter()
        .filter_map(|feature| feature.module)
}

fn checks(evidence: &Evidence) -> Vec<Check> {
    let mut checks = namespaces::checks(evidence).to_vec();
    let features = kernel_feature::FEATURES.iter();
    checks.extend(features.map(|feature| feature::check(feature, evidence)));
    checks.extend(machine::checks(evidence));
    // Stable: within a group the order is that of the tables.
    checks.sort_by_key(|check: &Check| Group::ALL.iter().position(|group| *group == check.group));
    checks
}

#[cfg(test)]
mod tests;
