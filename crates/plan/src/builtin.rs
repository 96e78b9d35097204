//! The plans that come with the program.

use crate::suggest::nearest;

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
];

/// The built-in plan that `name`, which may be a file's, was most likely meant to be.
pub fn nearest_builtin(name: &str) -> Option<&'static str> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file
        .strip_suffix(".yaml")
        .or_else(|| file.strip_suffix(".yml"));
    nearest(stem.unwrap_or(file), BUILTIN.iter().map(|(name, _)| *name))
}

/// The text of a built-in plan.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}
