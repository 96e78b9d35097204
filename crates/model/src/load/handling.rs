//! How the ends of a load hand data to the kernel and take it, and how their threads wait.

use serde::{Deserialize, Serialize};

/// How the sending side hands data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// The kernel copies it.
    Copy,
    /// The kernel sends from our pages (`MSG_ZEROCOPY`) where it can.
    ZeroCopy,
}

/// What the receiving side does with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receiving {
    /// Has it copied, as an application would.
    Copy,
    /// Has the kernel throw it away uncopied (`MSG_TRUNC`); of datagrams the first bytes are looked at.
    Discard,
}

/// How threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// They sleep until the kernel wakes them.
    Sleep,
    /// They ask again and again, and the device is polled where it can be (`SO_BUSY_POLL`): a core for each thread.
    Spin,
}

/// UDP segmentation offload, each end apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Segmentation {
    /// The sender hands over many datagrams as one (`UDP_SEGMENT`).
    pub send: bool,
    /// The receiver takes many datagrams as one (`UDP_GRO`).
    pub receive: bool,
}
