//! Whether a run's verdicts can be relied on.

use serde::Serialize;

/// Whether a run can be relied on, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Trust {
    /// How far the run can be relied on.
    pub level: TrustLevel,
    /// Why the level is not [`TrustLevel::Sound`], in words.
    pub reasons: Vec<String>,
    /// Samples that other programs or the hypervisor disturbed.
    pub disturbed: u32,
}

/// How far a run can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// The run came to its end, and few samples were disturbed.
    #[default]
    Sound,
    /// The run stopped early, or too many of its samples were disturbed.
    Doubtful,
}
