//! What probing is told, and what it asks for.

use std::time::Duration;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Copies of each size in a round, at least 1.
    pub copies: u32,
    /// How long answers are waited for after a round's last probe: 2 round trips and some. Where answers turn out
    /// slower than half of it, it is stretched to twice what they took.
    pub wait: Duration,
    /// Rounds after which the outcome is [`CannotTell`](crate::CannotTell), at least 1.
    pub max_rounds: u32,
    /// IP packet size of the control probes in bytes: small enough to pass anywhere, large enough for what a probe
    /// has to carry.
    pub control_size: u32,
}

impl Default for Config {
    /// 3 copies, 50 ms, 24 rounds, controls of 64 bytes: for a lab or a data centre.
    fn default() -> Self {
        Self {
            copies: 3,
            wait: Duration::from_millis(50),
            max_rounds: 24,
            control_size: 64,
        }
    }
}

/// A packet to send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Counts from 0; the acknowledgement names it.
    pub id: u64,
    /// Size of the IP packet in bytes, its header included.
    pub size: u32,
    /// Whether it only shows that the path is alive.
    pub control: bool,
}
