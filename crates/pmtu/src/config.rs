//! What probing is told, and what it asks for.

use std::time::Duration;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Copies of each size in a round, at least 1. Rounds of many sizes send two at most: what is lost there is only
    /// suspected, and asked for again.
    pub copies: u32,
    /// How long answers are waited for after a round's last probe while no round trip is known; then a knock follows,
    /// and others at growing intervals.
    pub wait: Duration,
    /// Where nothing was answered for so long, nothing is there to answer.
    pub patience: Duration,
    /// Once one is known, the wait is what RFC 6298 makes of the round trips, at least the slowest of the last ones and
    /// this. It covers what a busy machine takes to run the other end. Too short a wait makes no verdict wrong: control
    /// probes come late as well, so that nothing is concluded.
    pub min_wait: Duration,
    /// Rounds after which the outcome is [`CannotTell`](crate::CannotTell), at least 1.
    pub max_rounds: u32,
    /// IP packet size of the control probes in bytes: small enough to pass anywhere, large enough for what a probe
    /// has to carry.
    pub control_size: u32,
}

/// Longer than any answer on the way takes: two satellites, or a mobile network whose queues are full, take three
/// seconds. For [`Config::patience`].
pub const FAR_AWAY: Duration = Duration::from_millis(3600);

impl Default for Config {
    /// 3 copies, 50 ms, 0.8 s, 10 ms, 32 rounds, controls of 64 bytes: for a lab or a data centre.
    fn default() -> Self {
        Self {
            copies: 3,
            wait: Duration::from_millis(50),
            patience: Duration::from_millis(800),
            min_wait: Duration::from_millis(10),
            max_rounds: 32,
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

/// How a probe arrived, as its acknowledgement tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// In one piece.
    Whole,
    /// In fragments, although it forbids them: something on the way ignores that.
    Fragmented {
        /// The largest fragment's IP packet, bytes (`IP_RECVFRAGSIZE`).
        largest: u32,
    },
}
