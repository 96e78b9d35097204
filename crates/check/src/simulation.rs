//! Results of TCP transfers over a path, for the document and as a line of text.

use std::fmt;

use serde::Serialize;

/// The result of one transfer in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// `net.ipv4.tcp_mtu_probing` of the sender during the transfer: 0, 1 or 2.
    pub tcp_mtu_probing: u8,
    /// The congestion control of the sender's kernel.
    pub congestion_control: String,
    /// Small messages before the transfer that were answered: with a PMTU black hole these pass, and the transfer
    /// hangs.
    pub heartbeats: u32,
    /// Small messages that were sent.
    pub of_heartbeats: u32,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Bytes to transfer.
    pub of_bytes: u64,
    /// Time until the last byte arrived or the transfer was given up, seconds.
    pub seconds: f64,
    /// Sum of the pauses of 0.2 s and more in which nothing arrived, seconds.
    pub stalled_seconds: f64,
    /// Time until data arrived to the end without a pause, seconds: 0 without any pause; `None`: not within the time
    /// limit.
    pub recovered_after_seconds: Option<f64>,
    /// Payload of a full segment at the start of the transfer, bytes.
    pub mss_before: u32,
    /// Payload of a full segment at the end of the transfer, bytes.
    pub mss_after: u32,
    /// Retransmitted segments.
    pub retransmits: u32,
}

impl Simulated {
    /// Whether all bytes arrived.
    pub const fn is_complete(&self) -> bool {
        self.bytes == self.of_bytes
    }
}

/// Bytes in a megabyte.
const MB: f64 = 1e6;

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            heartbeats,
            of_heartbeats,
            ..
        } = self;
        let [bytes, of] = [self.bytes, self.of_bytes].map(|bytes| bytes as f64 / MB);
        write!(f, "tcp_mtu_probing {}: ", self.tcp_mtu_probing)?;
        if heartbeats < of_heartbeats {
            return write!(
                f,
                "{heartbeats} of {of_heartbeats} small messages answered, no transfer"
            );
        }
        if self.is_complete() {
            write!(f, "{of:.1} MB in {:.1} s", self.seconds)?;
        } else {
            write!(f, "{bytes:.1} of {of:.1} MB in {:.1} s", self.seconds)?;
        }
        match self.recovered_after_seconds {
            _ if !self.is_complete() && self.recovered_after_seconds.is_none() => write!(
                f,
                ", stalled {:.1} s and did not recover; small messages pass",
                self.stalled_seconds
            )?,
            Some(after) if self.stalled_seconds > 0.0 => write!(
                f,
                ", stalled {:.1} s, recovered after {after:.1} s",
                self.stalled_seconds
            )?,
            _ => f.write_str(", no stall")?,
        }
        if self.mss_before == self.mss_after {
            write!(f, "; segments of {}", self.mss_after)?;
        } else {
            write!(
                f,
                "; segments of {}, then {}",
                self.mss_before, self.mss_after
            )?;
        }
        match self.retransmits {
            0 => Ok(()),
            1 => f.write_str("; 1 sent again"),
            more => write!(f, "; {more} sent again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated() -> Simulated {
        Simulated {
            from: "a".into(),
            to: "b".into(),
            tcp_mtu_probing: 0,
            congestion_control: "cubic".into(),
            heartbeats: 10,
            of_heartbeats: 10,
            bytes: 16_000_000,
            of_bytes: 16_000_000,
            seconds: 0.04,
            stalled_seconds: 0.0,
            recovered_after_seconds: Some(0.0),
            mss_before: 8948,
            mss_after: 8948,
            retransmits: 0,
        }
    }

    #[test]
    fn a_transfer_is_told_in_a_line() {
        let fine = simulated();
        assert_eq!(
            fine.to_string(),
            "tcp_mtu_probing 0: 16.0 MB in 0.0 s, no stall; segments of 8948"
        );
        let stuck = Simulated {
            bytes: 0,
            seconds: 10.0,
            stalled_seconds: 10.0,
            recovered_after_seconds: None,
            retransmits: 6,
            ..simulated()
        };
        assert_eq!(
            stuck.to_string(),
            "tcp_mtu_probing 0: 0.0 of 16.0 MB in 10.0 s, stalled 10.0 s and did not recover; small messages pass; \
             segments of 8948; 6 sent again"
        );
        let recovered = Simulated {
            tcp_mtu_probing: 1,
            seconds: 6.4,
            stalled_seconds: 6.2,
            recovered_after_seconds: Some(6.2),
            mss_after: 1024,
            retransmits: 1,
            ..simulated()
        };
        assert_eq!(
            recovered.to_string(),
            "tcp_mtu_probing 1: 16.0 MB in 6.4 s, stalled 6.2 s, recovered after 6.2 s; segments of 8948, then 1024; \
             1 sent again"
        );
        let dead = Simulated {
            heartbeats: 0,
            ..stuck
        };
        assert_eq!(
            dead.to_string(),
            "tcp_mtu_probing 0: 0 of 10 small messages answered, no transfer"
        );
    }
}
