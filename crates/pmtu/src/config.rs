//! Options of probing, and the probes it asks for.

use std::time::Duration;

/// Options of probing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Copies of each size in a round, at least 1. A round of more than eight sizes sends at most
    /// two: a loss there is only a suspicion, and is probed again.
    pub copies: u32,
    /// Wait for answers after a round's last probe while no round trip is known. Rounds of control
    /// probes alone follow, at growing intervals.
    pub wait: Duration,
    /// Time without any answer after which the outcome is
    /// [`CannotTellReason::NoAnswer`](crate::CannotTellReason::NoAnswer), while no round trip is known.
    pub patience: Duration,
    /// Once a round trip is known, the wait is that of RFC 6298, but at least the slowest of the
    /// recent round trips plus this. It covers the time that a busy machine takes to schedule the
    /// other end. Too short a wait makes no verdict wrong: control probes are then late as well,
    /// and nothing is concluded.
    pub min_wait: Duration,
    /// Number of rounds after which the outcome is [`CannotTell`](crate::Outcome::CannotTell), at least 1.
    pub max_rounds: u32,
    /// IP packet size of the control probes in bytes: small enough to pass anywhere, large enough
    /// for a probe's payload.
    pub control_size: u32,
}

/// A [`Config::patience`] longer than any round trip: two satellite hops, or a mobile network with
/// full queues, take three seconds.
pub const FAR_PATIENCE: Duration = Duration::from_millis(3600);

impl Default for Config {
    /// For a lab or a data centre: 3 copies, 50 ms wait, 0.8 s patience, 10 ms minimum wait, 32
    /// rounds, control probes of 64 bytes.
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
    /// Id of the probe, counted from 0, which its acknowledgement repeats.
    pub id: u64,
    /// Size of the IP packet in bytes, its header included.
    pub size: u32,
    /// Whether it is a control probe, which only shows that the path is alive.
    pub control: bool,
}

/// How a probe arrived, according to its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// In one piece.
    Whole,
    /// In fragments, although it forbids them: a device on the path ignores the DF bit.
    Fragmented {
        /// Size of the largest fragment's IP packet, bytes (`IP_RECVFRAGSIZE`).
        largest: u32,
    },
}
