//! The steps of a check, for progress messages.

use std::time::Duration;

/// The TCP transfers of `--simulate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulation {
    /// Bytes in each direction.
    pub bytes: u64,
    /// Time after which a transfer is given up.
    pub limit: Duration,
}

/// What a check is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStep {
    /// Agents are started.
    Reaching,
    /// Probes are sent.
    Probing,
    /// The place where packets are lost is located.
    Locating,
    /// Each direction is traced hop by hop.
    Tracing,
    /// The hosts' devices are read.
    Reading,
    /// A TCP transfer goes over the path.
    Simulating,
}

impl CheckStep {
    /// The step in words, for a progress line.
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
