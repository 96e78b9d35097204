//! What a check does, step by step.

use std::time::Duration;

/// A TCP transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulation {
    /// Bytes each way.
    pub bytes: u64,
    /// After that time it is given up.
    pub limit: Duration,
}

/// What happens, as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Agents are started.
    Reaching,
    /// Probes are sent.
    Probing,
    /// The place of a loss is looked for.
    Locating,
    /// Each hop is asked.
    Tracing,
    /// The hosts' devices are read.
    Reading,
    /// A TCP transfer goes over the path.
    Simulating,
}

impl Step {
    /// What is going on.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reaching => "starting the agents",
            Self::Probing => "probing",
            Self::Locating => "locating the loss",
            Self::Tracing => "tracing",
            Self::Reading => "reading the hosts' devices",
            Self::Simulating => "sending by TCP",
        }
    }
}
