//! The options of a load: both of its ends are given the same.

use std::net::IpAddr;

pub use wirecost_model::load::{
    Limit, Load, Rate, Receiving, Segmentation, Sending, WaitMode, Workload,
};

use crate::error::TrafficError;

/// A load, and what its ends need to run it.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The load. Its direction is not used here: the caller knows which host has the client.
    pub load: Load,
    /// Source address of a client; `None`: the kernel's choice. Ignored by a server.
    pub source: Option<IpAddr>,
    /// At a storage client: name of the export of an NBD server that is not ours. The flows then have no handshake but
    /// NBD's. `None`: the server is ours.
    pub export: Option<String>,
    /// Identifies the flows of this load; the same at both ends.
    pub secret: [u8; 16],
    /// For benchmarks and tests: how a thread waits for several connections.
    #[doc(hidden)]
    pub multiplexing: Multiplexing,
}

/// How a thread that sleeps waits for several connections.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Multiplexing {
    /// What measured better: io_uring where threads have several connections each and no request is timed, else epoll.
    #[default]
    Auto,
    /// epoll(7).
    Epoll,
    /// io_uring(7), where the kernel has it, however few connections there are.
    Ring,
}

impl Options {
    /// A workload with its defaults: one flow, as fast as possible.
    pub fn new(workload: Workload, secret: [u8; 16]) -> Self {
        Self::of(Load::new(workload), secret)
    }

    /// Options of a load with defaults for the rest.
    pub fn of(load: Load, secret: [u8; 16]) -> Self {
        Self {
            load,
            source: None,
            export: None,
            secret,
            multiplexing: Multiplexing::Auto,
        }
    }

    /// These options with a changed load.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Load)) -> Self {
        change(&mut self.load);
        self
    }

    /// Checks the load ([`Load::faults`]).
    ///
    /// # Errors
    /// [`TrafficError::Options`] with all faults together.
    pub fn validate(&self) -> Result<(), TrafficError> {
        let wrong: Vec<String> = self
            .load
            .faults()
            .into_iter()
            .map(|fault| fault.message)
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(TrafficError::Options(wrong.join("; ")))
        }
    }

    /// Whether a stream sends full segments only (`TCP_CORK`). Not with a small socket buffer: a corked segment that
    /// the buffer has no room to fill is sent after 200 ms (tcp(7)). Such a stream uses Nagle's algorithm (RFC 896).
    pub fn corks(&self) -> bool {
        !self.load.nodelay
            && self
                .load
                .socket_buffer
                .is_none_or(|bytes| bytes >= CORKED_BUFFER)
    }

    /// Whether each message of a stream may be a segment of its own.
    pub(crate) fn has_small_segments(&self) -> bool {
        self.load.nodelay && self.load.request < SMALL
    }

    /// Whether a stream's thread paces each message, and not the kernel. The kernel's pacing joins waiting messages to
    /// full segments (tcp_sendmsg_locked in net/ipv4/tcp.c), `TCP_NODELAY` or not.
    pub(crate) fn paces_messages(&self) -> bool {
        self.has_small_segments() && matches!(self.load.rate, Some(Rate::BitsPerSecond(_)))
    }

    /// Upper bound on one read of a stream, bytes: 128 KiB; with `nodelay` one message, as other generators and most
    /// applications read (docs/loads.md).
    pub(crate) fn read_at_once(&self) -> usize {
        if self.load.nodelay {
            self.load.request.max(self.load.response) as usize
        } else {
            READ_BUFFER
        }
    }
}

/// Messages smaller than this may be segments of their own, bytes.
const SMALL: u32 = 16 << 10;

/// Smallest read buffer, and the size of a stream's reads, bytes (docs/loads.md).
pub(crate) const READ_BUFFER: usize = 128 << 10;

/// Upper bound on the bytes that one call discards (`MSG_TRUNC`).
pub(crate) const DISCARDED_AT_ONCE: usize = 1 << 20;

/// Smallest socket buffer of a corked stream, bytes: it holds several segments at any MTU.
const CORKED_BUFFER: u32 = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::DATAGRAM_BYTES;
    use wirecost_model::load::DATAGRAM_HEADER;

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let mut options = Options::new(Workload::TcpCrr, [0; 16]);
        options.load.streams = 0;
        options.load.depth = 2;
        options.load.dscp = Some(64);
        let text = options.validate().unwrap_err().to_string();
        insta::assert_snapshot!(text, @"the load's options: streams is 0: 1 to 1024; depth is 2, but tcp-crr has at most one request outstanding on a connection; dscp is 64: 0 to 63");
    }

    #[test]
    fn the_smallest_datagram_is_its_header() {
        assert_eq!(DATAGRAM_BYTES as u32, DATAGRAM_HEADER);
    }
}
