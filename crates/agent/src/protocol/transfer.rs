//! Requests about a TCP transfer over a path: one end receives, the other sends.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Secret;

/// Requests about TCP transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferRequest {
    /// Opens the receiving end, in place of an earlier one; answered with [`TransferReply::Listening`].
    Receive {
        /// Address to bind; port 0 for any port.
        address: SocketAddr,
        /// Secret that the sender must know.
        secret: Secret,
    },
    /// Sends a transfer to its end or its time limit; answered with [`TransferReply::Sent`].
    Send(TransferOrder),
    /// Ends the receiving end; answered with [`TransferReply::Received`].
    Received,
}

/// An order to send one transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferOrder {
    /// Source address.
    pub from: IpAddr,
    /// Address and port of the receiving end.
    pub to: SocketAddr,
    /// Number of bytes to send.
    pub bytes: u64,
    /// Time limit after which the transfer is abandoned.
    pub limit: Duration,
    /// Secret of both ends.
    pub secret: Secret,
    /// Value of `net.ipv4.tcp_mtu_probing` in the sender's namespace during the transfer: 0, 1 or 2. It is restored
    /// afterwards.
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

/// Replies to [`TransferRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferReply {
    /// Address of the receiving end.
    Listening(SocketAddr),
    /// Result at the sender.
    Sent(TransferSent),
    /// Result at the receiver.
    Received(TransferReceived),
}

/// Result of a transfer at the sender, as in [`wirecost_probe::transfer::SenderResult`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSent {
    /// Number of small messages that were answered.
    pub heartbeats: u32,
    /// Number of small messages that were to be sent.
    pub of_heartbeats: u32,
    /// MSS when the transfer began, bytes of payload.
    pub mss_before: u32,
    /// MSS at the end of the transfer, bytes of payload.
    pub mss_after: u32,
    /// Number of retransmitted segments.
    pub retransmits: u32,
    /// The kernel's name of the connection's congestion control.
    pub congestion_control: String,
}

/// Result of a transfer at the receiver, as in [`wirecost_probe::transfer::ReceiverResult`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReceived {
    /// Bytes received after the small messages.
    pub bytes: u64,
    /// Time until the last byte arrived, or until the transfer was abandoned.
    pub took: Duration,
    /// Sum of the pauses.
    pub stalled: Duration,
    /// End of the last pause; `None`: there was none, or it did not end.
    pub flows_since: Option<Duration>,
    /// Whether the sender said that these were all bytes.
    pub ended: bool,
}
