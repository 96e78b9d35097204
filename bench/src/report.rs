//! What comes of it all, as the JSON document has it.

use clap::ValueEnum;
use serde::Serialize;
use wirecost_model::plan::Cores;

use crate::comparison::Comparison;
use crate::sample::Sample;

/// Everything that is printed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Every peer, with its version or why it is absent.
    pub(crate) peers: Vec<PeerReport>,
    pub(crate) kernel: String,
    pub(crate) cpu_model: String,
    pub(crate) cores: Cores,
    /// Cores of the sending host and what runs there.
    pub(crate) cpus_a: Vec<u32>,
    /// Cores of the receiving host and what runs there.
    pub(crate) cpus_b: Vec<u32>,
    pub(crate) guest_mtu: u32,
    /// Whether every bridged frame walks the firewall's hooks (`br_netfilter`).
    pub(crate) hooked: bool,
    /// Pairs asked for with each opponent.
    pub(crate) pairs: u32,
    /// Pairs at most where the interval is still on both sides of the bound.
    pub(crate) most: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) seed: u32,
    /// As it was asked for.
    pub(crate) cpu: CountedBy,
    pub(crate) rows: Vec<RowResult>,
}

/// How CPU is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CountedBy {
    /// What loops of the lowest priority, one on each core, do not get; they keep the cores awake
    Looper,
    /// The window without the kernel's idle time, as a run counts it; cores may sleep
    Idle,
}

/// A peer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PeerReport {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) presence: Presence,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Presence {
    Version(String),
    Absent(String),
}

/// One row's outcomes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) bound: String,
    pub(crate) cpu: CountedBy,
    pub(crate) outcomes: Vec<Outcome>,
}

/// Ours against one opponent.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(crate) opponent: &'static str,
    #[serde(flatten)]
    pub(crate) what: OutcomeKind,
    /// What it said each time that it broke and was started again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) broken: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutcomeKind {
    Compared(Box<Comparison>),
    /// Nobody to compare with: it worked, and how.
    Alone {
        sample: Sample,
        /// Whether what has to hold does.
        holds: bool,
    },
    /// The peer is not on this machine.
    Absent(String),
    /// The peer has no such load.
    Cannot(String),
    /// It was begun and broke.
    Failed(String),
}

impl OutcomeKind {
    /// Whether nothing was missed.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Compared(comparison) => comparison.judgement.holds(),
            Self::Alone { holds, .. } => *holds,
            Self::Absent(_) | Self::Cannot(_) => true,
            Self::Failed(_) => false,
        }
    }
}
