//! A TCP transfer over a path, observed where it arrives: what a size-dependent fault does to an
//! application. It begins with some small messages in both directions, like heartbeats, followed by
//! the bytes asked for, and the end of the stream.
//!
//! A connection whose large segments are dropped goes on retransmitting for a quarter of an hour.
//! This one has a time limit, and is then closed at once (`SO_LINGER` 0), so that the kernel does
//! not retransmit any longer.

mod receive;
mod send;

use std::time::Duration;

pub use receive::{Receiver, ReceiverResult};
pub use send::{SenderResult, transfer};

/// Number of small messages before the bytes, each echoed by the receiver.
pub const HEARTBEATS: u32 = 10;
/// Length of a small message, bytes.
const HEARTBEAT_BYTES: usize = 64;
/// A pause of at least this length is a stall: the kernel's shortest retransmission timeout (`TCP_RTO_MIN`,
/// include/net/tcp.h).
pub const STALL: Duration = Duration::from_millis(200);
/// Interval at which an end checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(20);

/// How much to send, and for how long at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferSize {
    /// Number of bytes after the small messages.
    pub bytes: u64,
    /// Time limit from the start of the connection.
    pub limit: Duration,
}

#[cfg(test)]
mod tests;
