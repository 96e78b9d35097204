//! How fast a load goes, and what ends it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How fast each flow of a load goes where it is not as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Streams: bits of messages per second and flow; of a migration of each machine, at most. TCP is paced by the kernel (`SO_MAX_PACING_RATE`), datagrams by
    /// their sending thread, in bursts of 0.2 to 1 ms; what a delay of more than 10 ms kept back is not made up for.
    BitsPerSecond(u64),
    /// Request/response: requests per second and flow, due at random (a Poisson process), whether answers came or not.
    /// From due to sent is lateness, from sent to answered latency.
    RequestsPerSecond(f64),
}

impl Rate {
    /// Each flow's part of what is meant for all of them.
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

/// What ends a load by itself; without one it runs until it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// So long after the start.
    Time(Duration),
    /// Streams: so many bytes, all flows together.
    Bytes(u64),
    /// So many transactions, or datagrams of a stream, all flows together.
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
