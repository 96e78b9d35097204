//! Outcomes of probing, as values and in words.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A message that a packet was too big: a hint that probes verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// The MTU that the message names: size of the largest IP packet, in bytes.
    pub mtu: u32,
    /// The sender of the message.
    pub source: Source,
}

/// The source of a too-big message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This host, before sending (`EMSGSIZE`).
    Local,
    /// The source of an ICMP message: a router, or a tunnel endpoint that answers in the destination's name.
    Router(IpAddr),
}

/// Why no larger packet passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// No larger packet was to be sent: the path may carry more.
    NotSought,
    /// The MTU of this host's own device.
    Device {
        /// The device's MTU in bytes.
        mtu: u32,
    },
    /// An ICMP message of a router.
    Signalled {
        /// The source of the message.
        by: IpAddr,
        /// MTU that the message names, in bytes. It is right if it equals the MTU that was found.
        mtu: u32,
    },
    /// Larger packets arrive in fragments, although they forbid fragmentation.
    Fragmented {
        /// Size of the largest fragment's IP packet, bytes.
        largest: u32,
    },
    /// PMTU black hole: larger packets are dropped without ICMP.
    BlackHole,
}

impl Limit {
    /// The word for documents: `ok`, `device`, `signalled`, `fragmented` or `silent`.
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
        /// Why packets of that size do not pass.
        limit: Limit,
    },
    /// The largest packet that passes was found, or confirmed.
    Carries {
        /// Size of the packet in bytes.
        mtu: u32,
        /// Why one byte more does not pass.
        limit: Limit,
    },
    /// The probes do not decide it.
    CannotTell {
        /// The reason.
        reason: CannotTellReason,
        /// Size of the largest packet that was acknowledged, in bytes.
        at_least: Option<u32>,
    },
}

/// Why the probes do not decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotTellReason {
    /// Nothing answers: the path, or the responder, is not there.
    #[error("no answer, not even to small probes")]
    NoAnswer,
    /// This host refuses to send even small probes.
    #[error("this host does not send even small probes")]
    Refused,
    /// The limit on rounds was reached.
    #[error("undecided after {rounds} rounds: of {sent} probes that can pass, {lost} were lost")]
    Undecided {
        /// Number of rounds.
        rounds: u32,
        /// Number of probes of sizes that pass.
        sent: u32,
        /// Number of these that were not acknowledged.
        lost: u32,
    },
    /// The limit on time or datagrams was reached.
    #[error("stopped at the limit on time or datagrams, undecided")]
    OutOfBudget,
}

impl Outcome {
    /// Whether the size to be proven passes.
    pub const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven { .. })
    }

    /// Size of the largest packet that is known to pass, in bytes.
    pub const fn mtu(&self) -> Option<u32> {
        match self {
            Self::Proven { size } => Some(*size),
            Self::TooBig { carries, .. } => *carries,
            Self::Carries { mtu, .. } => Some(*mtu),
            Self::CannotTell { at_least, .. } => *at_least,
        }
    }

    /// Why no larger packet passes, where that was found.
    pub const fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooBig { limit, .. } | Self::Carries { limit, .. } => Some(*limit),
            Self::Proven { .. } | Self::CannotTell { .. } => None,
        }
    }
}

/// Completes a sentence that says which size passes.
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
