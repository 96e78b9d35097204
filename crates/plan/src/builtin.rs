//! The plans and studies that come with the program.

mod on_hosts;

use crate::suggest::nearest;

pub use on_hosts::on_hosts;

/// Every built-in plan: its name and its text.
pub const BUILTIN: &[(&str, &str)] = &[
    (
        "jumbo-or-not",
        include_str!("../../../plans/jumbo-or-not.yaml"),
    ),
    (
        "overlay-or-not",
        include_str!("../../../plans/overlay-or-not.yaml"),
    ),
    ("ovn-or-not", include_str!("../../../plans/ovn-or-not.yaml")),
    (
        "ipv6-or-not",
        include_str!("../../../plans/ipv6-or-not.yaml"),
    ),
    (
        "latency-or-not",
        include_str!("../../../plans/latency-or-not.yaml"),
    ),
    (
        "storage-or-not",
        include_str!("../../../plans/storage-or-not.yaml"),
    ),
    (
        "migration-or-not",
        include_str!("../../../plans/migration-or-not.yaml"),
    ),
    (
        "many-small-sessions",
        include_str!("../../../plans/many-small-sessions.yaml"),
    ),
    ("mtu-scan", include_str!("../../../plans/mtu-scan.yaml")),
];

/// Every published study: its name and its plan's text.
pub const STUDIES: &[(&str, &str)] = &[
    (
        "vswitchzero-jumbo-vxlan",
        include_str!("../../../plans/studies/vswitchzero-jumbo-vxlan.yaml"),
    ),
    (
        "ovn-geneve-vs-vxlan",
        include_str!("../../../plans/studies/ovn-geneve-vs-vxlan.yaml"),
    ),
    (
        "vsphere51-vxlan",
        include_str!("../../../plans/studies/vsphere51-vxlan.yaml"),
    ),
    (
        "multi-nic-vmotion",
        include_str!("../../../plans/studies/multi-nic-vmotion.yaml"),
    ),
    (
        "ip-storage-jumbo",
        include_str!("../../../plans/studies/ip-storage-jumbo.yaml"),
    ),
];

/// The built-in plan or study whose name is nearest to `name`, which may be that of a file; `None` if none is near.
pub fn nearest_builtin(name: &str) -> Option<&'static str> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file
        .strip_suffix(".yaml")
        .or_else(|| file.strip_suffix(".yml"));
    let names = BUILTIN.iter().chain(STUDIES).map(|(name, _)| *name);
    nearest(stem.unwrap_or(file), names)
}

/// The text of a built-in plan or study.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .chain(STUDIES)
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Upper bound on the rounds of a quick run.
const QUICK_ROUNDS: u32 = 5;
/// Share of the measured seconds that a quick run keeps, and lower bound on the seconds of a sample.
const QUICK_SECONDS: (f64, f64) = (0.5, 0.25);

/// The text of a plan with fewer rounds and shorter windows, so that the record's plan is the one
/// that was run. `None` where the plan has no `repeat` key in one line.
pub fn quick(name: &str, text: &str) -> Option<String> {
    let repeat = crate::load(name, text).ok()?.plan.repeat;
    let rounds = repeat.rounds.min(QUICK_ROUNDS);
    let (share, least) = QUICK_SECONDS;
    let seconds = (repeat.seconds * share).max(least).min(repeat.seconds);
    let warmup = repeat.warmup * share;
    let line = format!(
        "repeat: {{ rounds: {rounds}, seconds: {seconds}, warmup: {warmup}, worth: {} }}",
        repeat.worth
    );
    let mut changed = false;
    let lines = text.lines().map(|own| {
        let is_repeat = own.starts_with("repeat: {") && own.ends_with('}');
        changed |= is_repeat;
        if is_repeat { line.as_str() } else { own }
    });
    let quick: String = lines.flat_map(|line| [line, "\n"]).collect();
    changed.then_some(quick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_study_is_the_same_cells_in_fewer_and_shorter_samples() {
        for (name, text) in STUDIES {
            let quick = quick(name, text).expect("one line says how often");
            let whole = crate::load(name, text).expect("a right plan");
            let quick = crate::load(name, &quick).expect("a right plan");
            assert_eq!(quick.cells, whole.cells, "{name}");
            assert_eq!(quick.plan.published, whole.plan.published, "{name}");
            let (less, more) = (quick.plan.repeat, whole.plan.repeat);
            assert!(
                less.rounds < more.rounds && less.seconds <= more.seconds,
                "{name}"
            );
            assert!(less.rounds >= 2, "an interval needs two");
        }
    }
}
