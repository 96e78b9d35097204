//! Requests about a TCP transfer over a path: one end receives, the other sends.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Secret;

/// Questions about transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferRequest {
    /// Opens the receiving end, in place of the one before; answered with [`TransferReply::Listening`].
    Receive {
        /// Where; port 0 is any.
        address: SocketAddr,
        /// What the sender has to know.
        secret: Secret,
    },
    /// Sends, and waits until that is over; answered with [`TransferReply::Sent`].
    Send(TransferOrder),
    /// Ends the receiving end; answered with [`TransferReply::Received`].
    Received,
}

/// What is to be sent, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferOrder {
    /// The address that it leaves with.
    pub from: IpAddr,
    /// The receiving end.
    pub to: SocketAddr,
    /// Bytes.
    pub bytes: u64,
    /// After that time it is given up.
    pub limit: Duration,
    /// Of both ends.
    pub secret: Secret,
    /// `net.ipv4.tcp_mtu_probing` of the sender's namespace meanwhile: 0, 1 or 2. Afterwards it is what it was.
    pub tcp_mtu_probing: u8,
}

impl TransferRequest {
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Self::Receive { .. } => "opening the receiving end of a transfer",
            Self::Send(_) => "sending over the path",
            Self::Received => "ending a transfer",
        }
    }
}

/// Answers about transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferReply {
    /// Where the receiving end listens.
    Listening(SocketAddr),
    /// What the sender knows.
    Sent(TransferSent),
    /// What arrived.
    Received(TransferReceived),
}

/// As [`wirecost_probe::transfer::Sent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSent {
    /// Small messages that were answered.
    pub heartbeats: u32,
    /// Of so many.
    pub of_heartbeats: u32,
    /// Bytes of a segment's payload when the transfer began.
    pub mss_before: u32,
    /// The same at its end.
    pub mss_after: u32,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// The kernel's congestion control.
    pub congestion_control: String,
}

/// As [`wirecost_probe::transfer::Received`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReceived {
    /// Bytes after the small messages.
    pub bytes: u64,
    /// Until the last byte, or until it was given up.
    pub took: Duration,
    /// Pauses together.
    pub stalled: Duration,
    /// When the last pause was over.
    pub flows_since: Option<Duration>,
    /// Whether that was all.
    pub ended: bool,
}
