//! The plans that come with the program.

/// Every built-in plan: its name and its text.
pub const BUILTIN: &[(&str, &str)] = &[
    (
        "jumbo-or-not",
        include_str!("../../../plans/jumbo-or-not.yaml"),
    ),
    (
        "ipv6-or-not",
        include_str!("../../../plans/ipv6-or-not.yaml"),
    ),
];

/// The text of a built-in plan.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}
