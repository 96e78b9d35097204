//! How the ends of a load pass data to the kernel and from it, and how their threads wait.

use serde::{Deserialize, Serialize};

/// How the sending side passes data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// The kernel copies the data.
    Copy,
    /// The kernel sends from the load's pages without a copy (`MSG_ZEROCOPY`), where it can.
    ZeroCopy,
}

/// What the receiving side does with received data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receiving {
    /// The kernel copies the data to the load, as to any application.
    Copy,
    /// The kernel discards the data without a copy (`MSG_TRUNC`); of a datagram the load reads the first bytes.
    Discard,
}

/// Whether a load's threads sleep or poll while they wait for their sockets, as a plan asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMode {
    /// They sleep until the kernel wakes them up.
    Sleep,
    /// They poll, and the kernel polls the device where it can (`SO_BUSY_POLL`): each thread takes a core.
    Spin,
}

/// UDP segmentation offload, separately for each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Segmentation {
    /// The sender passes many datagrams to the kernel as one (`UDP_SEGMENT`).
    pub send: bool,
    /// The receiver takes many datagrams from the kernel as one (`UDP_GRO`).
    pub receive: bool,
}
