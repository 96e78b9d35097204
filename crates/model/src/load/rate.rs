//! The rate of a load, and what ends it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The rate of each flow of a load that does not go as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Streams: message bits per second and flow; for a migration an upper bound per machine. The kernel paces TCP
    /// (`SO_MAX_PACING_RATE`); the sending thread paces datagrams, in bursts of 0.2 to 1 ms. What a delay of more than
    /// 10 ms held back is not caught up.
    BitsPerSecond(u64),
    /// Request/response: requests per second and flow, due at random times (a Poisson process), whether responses came
    /// or not. The time from due to sent is lateness, the time from sent to answered is latency.
    RequestsPerSecond(f64),
}

impl Rate {
    /// The rate of each flow where this is the rate of all `flows` together.
    #[must_use]
    pub fn shared_by(self, flows: u32) -> Self {
        let flows = flows.max(1);
        match self {
            Self::BitsPerSecond(bits) => Self::BitsPerSecond(bits / u64::from(flows)),
            Self::RequestsPerSecond(requests) => {
                Self::RequestsPerSecond(requests / f64::from(flows))
            }
        }
    }
}

/// What ends a load by itself; a load without a limit runs until it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// This long after the start.
    Time(Duration),
    /// Streams: this many bytes, all flows together.
    Bytes(u64),
    /// This many transactions, or datagrams of a stream, all flows together.
    Transactions(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_the_rate_of_all() {
        let bits = Rate::BitsPerSecond(1000).shared_by(4);
        assert_eq!(bits, Rate::BitsPerSecond(250));
        let requests = Rate::RequestsPerSecond(10.0).shared_by(4);
        assert_eq!(requests, Rate::RequestsPerSecond(2.5));
    }
}
