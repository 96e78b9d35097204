//! What one end of a load did over one window: agents answer with it, and [`LoadResult`]s are made of it.
//!
//! [`LoadResult`]: crate::sample::LoadResult

use serde::{Deserialize, Serialize};

pub use crate::counts::Counts;
use crate::latency::Latency;
use crate::machine_move::MachineMove;
use crate::path_access::PathAccess;

/// Which end of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The end that opens the flows, and sends or requests.
    Client,
    /// The end that listens, and receives or responds.
    Server,
}

impl End {
    /// The end's name: `client` or `server`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What one flow did over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowWindow {
    /// Counters of this window; [`Counts::jitter_ns`] has the value at its end.
    pub counts: Counts,
    /// Datagrams lost: those that must have been sent less those received. Negative where datagrams came that an
    /// earlier window had counted as lost.
    pub lost: i64,
    /// For a flow that is one TCP connection: the gain of its counters, with its state at the window's end.
    pub tcp: Option<Socket>,
}

/// One of a load's threads over a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreadWindow {
    /// Share of the window for which the thread ran on a core, 0 to 1, in user and kernel mode.
    pub busy: f64,
    /// Share of the window for which the thread could have run and waited for a core, 0 to 1.
    pub runnable: f64,
    /// Share of its polls that found nothing to do, 0 to 1; `None` for a thread that does not spin.
    pub idle_looks: Option<f64>,
}

impl ThreadWindow {
    /// Share of the window for which the thread slept, 0 to 1: it waited for its sockets, or until its next message was
    /// due.
    pub fn slept(&self) -> f64 {
        (1.0 - self.busy - self.runnable).max(0.0)
    }
}

/// What one end of a load did over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndWindow {
    /// Length of the window in seconds: the time between the two readings of this end's counters.
    pub seconds: f64,
    /// Each flow, by index.
    pub flows: Vec<FlowWindow>,
    /// Latencies of the transactions that ended in the window, at the client.
    pub latency: Latency,
    /// The load's own threads.
    pub threads: Vec<ThreadWindow>,
    /// Whether the load's threads had something to do all the time, so that they and not the path were the limit.
    pub generator_bound: bool,
    /// Connections and datagrams dropped in the window because they were not this load's.
    pub strays: u32,
    /// Bytes read and messages received at this end, in consecutive parts of the window.
    pub intervals: Vec<Interval>,
    /// Datagrams of a stream that were sent within the window; at the server those of them that arrived before the
    /// load's end, each counted once. `None` until the load has ended.
    pub datagrams: Option<u64>,
    /// At a client of requests with a rate: time from when a request was due until its first byte was handed to the
    /// kernel, for requests sent within the window.
    pub lateness: Latency,
    /// Latencies of the flushes that ended in the window, at a storage client.
    pub flushes: Latency,
    /// The schedule's totals over the window, at a client with a rate.
    pub schedule: Option<Schedule>,
    /// How this end reads and writes; constant for the whole load.
    pub io: Option<Io>,
    /// At a migration client: the move of each machine, completed or not.
    pub moves: Vec<MachineMove>,
    /// At a client of storage at a path: how the path is read and written.
    pub path: Option<PathAccess>,
}

/// A part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// End of this part, seconds since the window began.
    pub end_s: f64,
    /// Bytes received in this part.
    pub bytes: u64,
    /// Messages received in this part: datagrams, requests, or at a client responses in time. 0 for a TCP stream. Never
    /// left out: agents send intervals in a format that cannot tell.
    #[serde(default)]
    pub messages: u64,
}

/// A TCP socket: the gain of its `TCP_INFO` counters over the window, and its state at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Socket {
    /// Segments sent, retransmits and pure ACKs included.
    pub segs_out: u64,
    /// Segments received, counted as on the wire.
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

/// Messages that a rate asked for within one window, all flows of one end. A TCP stream counts its bytes as fractions
/// of a message.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Messages that became due.
    pub due: f64,
    /// Messages that were handed to the kernel.
    pub sent: f64,
    /// Messages that were due and not sent when the window began, including those that a stream dropped from its
    /// schedule after a stall.
    pub backlog_before: f64,
    /// Messages that were due and not sent when the window ended, counted likewise.
    pub backlog_after: f64,
}

/// How one end of a load reads and writes. It follows from the load's options alone and does not change while the load
/// runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Upper bound on the bytes that one write offers to the kernel; 0 where this end writes nothing.
    pub write_bytes: u32,
    /// Upper bound on the bytes that one read asks for; 0 where this end reads nothing.
    pub read_bytes: u32,
    /// How the load's threads wait.
    pub waits: WaitMethod,
}

/// The kernel interface in which a load's threads wait for their sockets; see [`WaitMode`](crate::load::WaitMode) for
/// what a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMethod {
    /// Blocking in the socket's own read or write: one thread for each flow and direction.
    Socket,
    /// Blocking in epoll(7).
    Epoll,
    /// Blocking in an io_uring(7).
    Ring,
    /// Not at all: the thread polls.
    Spin,
}

impl EndWindow {
    /// The counts of all flows together.
    pub fn counts(&self) -> Counts {
        self.flows.iter().map(|flow| flow.counts).sum()
    }

    /// Datagrams lost, all flows; see [`FlowWindow::lost`].
    pub fn lost(&self) -> i64 {
        self.flows.iter().map(|flow| flow.lost).sum()
    }

    /// TCP segments retransmitted, all flows.
    pub fn retransmits(&self) -> u64 {
        let sockets = self.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        sockets.map(|socket| socket.retransmits).sum()
    }
}
