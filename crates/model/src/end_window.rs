//! What one end of a load did over one window: what agents answer with, and what [`LoadResult`]s are made of.
//!
//! [`LoadResult`]: crate::sample::LoadResult

use serde::{Deserialize, Serialize};

pub use crate::counts::Counts;
use crate::latency::Latency;
use crate::moved::MachineMove;
use crate::path_access::PathAccess;

/// Which end of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The one that opens the flows, and asks or sends.
    Client,
    /// The one that listens, and answers or receives.
    Server,
}

impl End {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What one flow did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowWindow {
    /// What it counted; of [`Counts::jitter_ns`] the value at the end.
    pub counts: Counts,
    /// Datagrams lost: those that must have been sent less those that came. Negative where some came that an earlier
    /// window had counted as lost.
    pub lost: i64,
    /// Of a flow that is one TCP connection: what its counters gained, with its state at the end.
    pub tcp: Option<Socket>,
}

/// One of a load's threads over a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreadWindow {
    /// Share of the window on a core, 0 to 1, in user and kernel mode.
    pub busy: f64,
    /// Share of the window in which it could have run and waited for a core.
    pub runnable: f64,
    /// Share of its looks at its sockets that found nothing to do, where it spins.
    pub idle_looks: Option<f64>,
}

impl ThreadWindow {
    /// Share of the window in which it slept: it waited for its sockets, or for the time of its next message.
    pub fn slept(&self) -> f64 {
        (1.0 - self.busy - self.runnable).max(0.0)
    }
}

/// What one end of a load did over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndWindow {
    /// Its length in seconds: the time between the two readings of this end's counters.
    pub seconds: f64,
    /// By flow index.
    pub flows: Vec<FlowWindow>,
    /// Of the transactions that ended in it, at the client.
    pub latency: Latency,
    /// The load's own threads.
    pub threads: Vec<ThreadWindow>,
    /// Whether they had something to do all the time, so that they and not the path were the limit.
    pub generator_bound: bool,
    /// Connections and datagrams dropped in it since they were none of this load's.
    pub strays: u32,
    /// Bytes read and messages received at this end, in parts of the window.
    pub intervals: Vec<Interval>,
    /// Datagrams of a stream that were sent within the window; at the server those of them that came until the load's
    /// end, each counted once. Known once the load has ended.
    pub datagrams: Option<u64>,
    /// At a client of requests with a rate: from when a request was due until the kernel was handed its first byte, of those
    /// sent within the window.
    pub lateness: Latency,
    /// Of the flushes that ended in it, at a client of storage.
    pub flushes: Latency,
    /// At a client with a rate.
    pub schedule: Option<Schedule>,
    /// How this end reads and writes; the same for the whole load.
    pub io: Option<Io>,
    /// At a client of a migration: its machines that have moved, or did not.
    pub moves: Vec<MachineMove>,
    /// At a client of storage at a path: how it is read and written.
    pub path: Option<PathAccess>,
}

/// A part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds since the window began, at its end.
    pub end_s: f64,
    /// Bytes received in it.
    pub bytes: u64,
    /// Messages received in it: datagrams, requests, or at a client responses in time. A TCP stream has none.
    /// Never left out: agents send intervals in a format that cannot tell.
    #[serde(default)]
    pub messages: u64,
}

/// A TCP socket: what its TCP_INFO gained over the window, and its state at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Socket {
    /// Segments sent, retransmits and pure ACKs included.
    pub segs_out: u64,
    /// Segments received, as they were on the wire.
    pub segs_in: u64,
    /// Segments with data sent.
    pub data_segs_out: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Smoothed round-trip time at the end, microseconds.
    pub rtt_us: u32,
    /// Smallest round-trip time seen, microseconds.
    pub min_rtt_us: u32,
    /// Sending MSS at the end, bytes.
    pub snd_mss: u32,
    /// Path MTU that the socket uses, bytes.
    pub pmtu: u32,
    /// Congestion window at the end, segments.
    pub snd_cwnd: u32,
    /// Congestion control in use.
    pub congestion: String,
    /// `SO_SNDBUF` at the end, bytes.
    pub sndbuf: u32,
    /// `SO_RCVBUF` at the end, bytes.
    pub rcvbuf: u32,
}

/// Messages that a rate asked for within one window, all flows of one end. Of a TCP stream they are its bytes, in parts of a
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Messages that became due.
    pub due: f64,
    /// Messages that were handed to the kernel.
    pub sent: f64,
    /// Messages that were due and not sent when the window began, those that a stream has let go included.
    pub backlog_before: f64,
    /// The same when it ended.
    pub backlog_after: f64,
}

/// How one end of a load reads and writes. It follows from the load's options alone and never changes while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes that one write offers to the kernel at most; 0 where this end writes nothing.
    pub write_bytes: u32,
    /// Bytes that one read asks for at most; 0 where this end reads nothing.
    pub read_bytes: u32,
    /// How its threads wait.
    pub waits: Waits,
}

/// How a load's threads wait for their sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// In the socket's own read or write: a thread for each flow and direction.
    Socket,
    /// In epoll(7).
    Epoll,
    /// In an io_uring(7).
    Ring,
    /// Never: it polls.
    Spin,
}

impl EndWindow {
    /// What all flows counted together.
    pub fn counts(&self) -> Counts {
        self.flows.iter().map(|flow| flow.counts).sum()
    }

    /// Datagrams lost, all flows; see [`FlowWindow::lost`].
    pub fn lost(&self) -> i64 {
        self.flows.iter().map(|flow| flow.lost).sum()
    }

    /// TCP segments sent again, all flows.
    pub fn retransmits(&self) -> u64 {
        let sockets = self.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        sockets.map(|socket| socket.retransmits).sum()
    }
}
