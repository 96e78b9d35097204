//! What probing comes to, as values and in words.

use std::fmt;
use std::net::IpAddr;

/// A message that a packet was too big: a hint, which is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// The largest IP packet that is said to pass, in bytes.
    pub mtu: u32,
    /// Who said so.
    pub source: Source,
}

/// Who said that a packet was too big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This host, before sending (`EMSGSIZE`).
    Local,
    /// An ICMP message with this source: a router's, or one that a tunnel made in the destination's name.
    Router(IpAddr),
}

/// How probing ended.
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
        /// What was heard about it; `None`: nothing, they vanish.
        hint: Option<TooBig>,
    },
    /// A search found the largest packet that passes.
    Carries {
        /// Its size in bytes.
        mtu: u32,
        /// Whether one byte more was seen not to pass; `false` where `mtu` is the upper end of the search.
        verified_above: bool,
        /// What was heard about larger ones; `None`: nothing, they vanish.
        hint: Option<TooBig>,
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
    Silent,
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
}

impl Outcome {
    /// Whether the size to be proven was.
    pub const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven { .. })
    }
}

/// Why nothing above passes, as the end of a sentence that says what does.
struct Because(Option<TooBig>);

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(" and drops more without a word"),
            Some(TooBig {
                mtu,
                source: Source::Local,
            }) => {
                write!(f, " (this host sends no more than {mtu})")
            }
            Some(TooBig {
                mtu,
                source: Source::Router(address),
            }) => {
                write!(f, " ({address} reports an MTU of {mtu})")
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
                hint,
            } => {
                let because = Because(*hint);
                write!(
                    f,
                    "{size} bytes do not pass: the path carries {mtu}{because}"
                )
            }
            Self::TooBig {
                size,
                carries: None,
                hint: Some(hint),
            } => {
                write!(f, "{size} bytes do not pass{}", Because(Some(*hint)))
            }
            Self::TooBig { size, .. } => write!(f, "{size} bytes do not pass"),
            Self::Carries {
                mtu,
                verified_above: false,
                ..
            } => {
                write!(f, "the path carries {mtu} and perhaps more")
            }
            Self::Carries { mtu, hint, .. } => {
                write!(f, "the path carries {mtu}{}", Because(*hint))
            }
            Self::CannotTell {
                reason,
                at_least: Some(mtu),
            } => write!(f, "{reason} ({mtu} bytes pass)"),
            Self::CannotTell { reason, .. } => reason.fmt(f),
        }
    }
}
