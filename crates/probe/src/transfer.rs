//! A TCP transfer over a path, watched where it arrives: what a fault of sizes does to an application. First some small
//! messages there and back, as heartbeats are, then as many bytes as were asked for, then the end.
//!
//! A connection whose large segments vanish goes on trying for a quarter of an hour. Here it is given a limit, and then
//! ended at once (`SO_LINGER` 0), so that the kernel does not go on without us.

mod receive;
mod send;

use std::time::Duration;

pub use receive::{Received, Receiver};
pub use send::{Sent, transfer};

/// Small messages before the bytes, each answered by the same.
pub const HEARTBEATS: u32 = 10;
/// Bytes of one.
const HEARTBEAT_BYTES: usize = 64;
/// Nothing for so long is a stall: the kernel's shortest retransmission timeout (`TCP_RTO_MIN`, include/net/tcp.h).
pub const STALL: Duration = Duration::from_millis(200);
/// How often it is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// What is to be sent, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Bytes after the small messages.
    pub bytes: u64,
    /// From the connection's start; then it is given up.
    pub limit: Duration,
}

#[cfg(test)]
mod tests;
