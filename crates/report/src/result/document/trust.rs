//! Whether a run's verdicts can be relied on.

use serde::Serialize;

/// Whether a run can be relied on, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Trust {
    /// The level.
    pub level: TrustLevel,
    /// Why it is not [`TrustLevel::Sound`], in words.
    pub reasons: Vec<String>,
    /// Samples that others or the hypervisor disturbed.
    pub disturbed: u32,
}

/// How far a run can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// It came to its end, and hardly anything disturbed it.
    #[default]
    Sound,
    /// It stopped early, or too many of its samples were disturbed.
    Doubtful,
}
