//! The outcomes of probing, as values and in words.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A message that a packet was too big: a hint, which is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// The largest IP packet that is said to pass, in bytes.
    pub mtu: u32,
    /// Who said so.
    pub source: Source,
}

/// The source of a too-big message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This host, before sending (`EMSGSIZE`).
    Local,
    /// An ICMP message with this source: a router's, or one that a tunnel made in the destination's name.
    Router(IpAddr),
}

/// Why nothing larger passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing larger was to be sent: the path may carry more.
    NotSought,
    /// This host's own device sends no more.
    Device {
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// A router reports it by ICMP.
    Signalled {
        /// The source of the message.
        by: IpAddr,
        /// What it says passes, in bytes; the truth where it is what was found.
        mtu: u32,
    },
    /// Larger packets arrive, but in fragments, although they forbid it.
    Fragmented {
        /// The largest fragment's IP packet, bytes.
        largest: u32,
    },
    /// PMTU black hole: larger packets are dropped without ICMP.
    BlackHole,
}

impl Limit {
    /// In a word, for documents: `ok`, `device`, `signalled`, `fragmented` or `silent`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NotSought => "ok",
            Self::Device { .. } => "device",
            Self::Signalled { .. } => "signalled",
            Self::Fragmented { .. } => "fragmented",
            Self::BlackHole => "silent",
        }
    }
}

/// The outcome of probing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A packet of exactly `size` bytes was acknowledged.
    Proven {
        /// The size that was to be proven, in bytes.
        size: u32,
    },
    /// Packets of `size` bytes do not pass.
    TooBig {
        /// The size that was to be proven, in bytes.
        size: u32,
        /// The largest packet that passes, where it was searched for and found.
        carries: Option<u32>,
        /// Why not.
        limit: Limit,
    },
    /// The largest packet that passes was found, or confirmed.
    Carries {
        /// Its size in bytes.
        mtu: u32,
        /// Why one byte more does not.
        limit: Limit,
    },
    /// The probes do not say.
    CannotTell {
        /// Why not.
        reason: CannotTell,
        /// The largest packet that was acknowledged, in bytes.
        at_least: Option<u32>,
    },
}

/// Why the probes do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotTell {
    /// Nothing answers: the path, or the responder, is not there.
    #[error("no answer, not even to small probes")]
    NoAnswer,
    /// This host refuses to send even small probes.
    #[error("this host does not send even small probes")]
    Refused,
    /// The rounds ran out.
    #[error("undecided after {rounds} rounds: of {sent} probes that can pass, {lost} were lost")]
    Undecided {
        /// Rounds that were made.
        rounds: u32,
        /// Probes that were sent of sizes that pass.
        sent: u32,
        /// How many of them were not acknowledged.
        lost: u32,
    },
    /// The time or the datagrams that were allowed ran out.
    #[error("stopped at the limit on time or datagrams, undecided")]
    OutOfBudget,
}

impl Outcome {
    /// Whether the size to be proven was.
    pub const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven { .. })
    }

    /// The largest packet that is known to pass, in bytes.
    pub const fn mtu(&self) -> Option<u32> {
        match self {
            Self::Proven { size } => Some(*size),
            Self::TooBig { carries, .. } => *carries,
            Self::Carries { mtu, .. } => Some(*mtu),
            Self::CannotTell { at_least, .. } => *at_least,
        }
    }

    /// Why nothing larger passes, where that was found out.
    pub const fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooBig { limit, .. } | Self::Carries { limit, .. } => Some(*limit),
            Self::Proven { .. } | Self::CannotTell { .. } => None,
        }
    }
}

/// As the end of a sentence that says what does pass.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSought => f.write_str(" and perhaps more"),
            Self::BlackHole => f.write_str(" and drops larger packets without ICMP"),
            Self::Device { mtu } => write!(f, " (this host sends no more than {mtu})"),
            Self::Signalled { by, mtu } => write!(f, " ({by} reports an MTU of {mtu})"),
            Self::Fragmented { largest } => {
                write!(f, " (larger ones arrive in fragments of at most {largest})")
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven { size } => write!(f, "{size} bytes pass"),
            Self::TooBig {
                size,
                carries: Some(mtu),
                limit,
            } => write!(f, "{size} bytes do not pass: the path carries {mtu}{limit}"),
            Self::TooBig {
                size,
                carries: None,
                limit: Limit::BlackHole | Limit::NotSought,
            } => write!(f, "{size} bytes do not pass"),
            Self::TooBig { size, limit, .. } => write!(f, "{size} bytes do not pass{limit}"),
            Self::Carries { mtu, limit } => write!(f, "the path carries {mtu}{limit}"),
            Self::CannotTell {
                reason,
                at_least: Some(mtu),
            } => write!(f, "{reason} ({mtu} bytes pass)"),
            Self::CannotTell { reason, .. } => reason.fmt(f),
        }
    }
}
