//! Results of a load over one window: totals, and each flow.

use serde::{Deserialize, Serialize};

use crate::end_window::{End, Interval, Io, Schedule, Socket, ThreadWindow};
use crate::latency::Latency;
use crate::load::{Direction, Workload};
use crate::machine_move::MachineMove;
use crate::path_access::PathAccess;

/// The result of one load over one window, from both its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// The load's name ([`crate::load::NamedLoad::name`]).
    pub name: String,
    /// The load's workload.
    pub workload: Workload,
    /// Which host ran the client.
    pub direction: Direction,
    /// Length of the server's window, seconds; counters of what the server received are of this window.
    pub seconds: f64,
    /// Length of the client's window, seconds; counters of the client, transactions included, are of this window.
    pub client_seconds: f64,
    /// Result of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamResult>,
    /// Result of requests and responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestResult>,
    /// Result of a stream of datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramResult>,
    /// Counts of zero-copy sends, where zero copy was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<ZeroCopyCounts>,
    /// Each flow's result.
    pub flows: Vec<Flow>,
    /// Connections and datagrams that were dropped because they were not this load's.
    #[serde(default)]
    pub strays: u32,
    /// How busy the load's threads were, at each end; absent in records of versions 1 and 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generator: Vec<Generator>,
    /// For a load with a rate, the messages that were due and sent; absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How client and server read and write, in this order; absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<Io>,
    /// For a migration the move of each machine, the machines of several guests one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MachineMove>,
    /// For storage at a path, how the path was read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAccess>,
}

/// The result of a stream over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Bytes that the server's application read within the server's window.
    pub bytes: u64,
    /// Bytes that the client's application read within the client's window; 0 unless both ends send.
    #[serde(default)]
    pub back_bytes: u64,
    /// Jain's fairness index of the flows' bytes: 1 where all flows have the same, 1/n where one of n flows has all
    /// (Jain, Chiu, Hawe, DEC-TR-301); absent where nothing arrived.
    #[serde(default)]
    pub fairness: Option<f64>,
    /// What the server read in consecutive parts of the window; never used as replication.
    pub intervals: Vec<Interval>,
}

/// The result of requests and responses over one window, counted at the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Requests that were answered in time.
    pub transactions: u64,
    /// Requests without a response in time; they enter no latency.
    pub timeouts: u64,
    /// Responses to requests that had timed out; in records of versions before 5 also repeated responses.
    pub late: u64,
    /// Repeated responses, over UDP.
    #[serde(default)]
    pub duplicated: u64,
    /// Latencies of all transactions: from when a request was handed to the kernel until its response was read. With a
    /// rate, in records of versions before 6, from when the request was due.
    pub latency: Latency,
    /// With a rate, lateness: from when a request was due until it was handed to the kernel. Empty in records of
    /// versions before 6.
    #[serde(default)]
    pub lateness: Latency,
    /// Storage with `flush_every`: latencies of all flushes, which are no transactions. Absent without flushes.
    #[serde(default, skip_serializing_if = "Latency::is_empty")]
    pub flushes: Latency,
    /// Transactions in consecutive parts of the window; never used as replication.
    pub intervals: Vec<Interval>,
}

/// The result of a stream of datagrams over one window, counted at the server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DatagramResult {
    /// Datagrams that the client handed to the kernel within its window.
    pub sent: u64,
    /// Datagrams that the server read, each counted once.
    pub received: u64,
    /// Datagrams sent within the window that had not arrived by the end of the load. For a load that was aborted, and
    /// in records of versions before 5: datagrams that must have been sent, by the sequence numbers read within the
    /// window, and were not read in it; negative where datagrams arrived that had counted as lost before.
    pub lost: i64,
    /// Received datagrams that came after one with a higher number (RFC 4737).
    pub reordered: u64,
    /// Datagrams read that had been read before.
    pub duplicated: u64,
    /// Datagrams so late that duplicates could no longer be recognised.
    pub too_old: u64,
    /// Interarrival jitter at the window's end, seconds, the mean over the flows (RFC 3550).
    pub jitter_s: f64,
}

impl DatagramResult {
    /// The share of the datagrams sent that arrived, 0 to 1; `None` where none were sent.
    pub fn delivered(&self) -> Option<f64> {
        (self.sent > 0).then(|| (1.0 - self.lost as f64 / self.sent as f64).clamp(0.0, 1.0))
    }
}

/// Counts of zero-copy sends, from the load's own pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ZeroCopyCounts {
    /// Number of zero-copy sends.
    pub sends: u64,
    /// Sends that the kernel has completed.
    pub completed: u64,
    /// Completed sends whose data the kernel copied after all.
    pub copied: u64,
    /// Sends with a copy, because the kernel pinned no more pages.
    pub fallbacks: u64,
}

/// How busy the threads of one end of a load were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// The host of this end, `a` or `b`.
    pub host: String,
    /// The end of the load.
    pub end: End,
    /// Each thread's window.
    pub threads: Vec<ThreadWindow>,
    /// Whether all threads had something to do all the time, so that they and not the path were the limit.
    pub bound: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One flow: a connection, a succession of connections, or a pair of UDP ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Bytes that the server received within the server's window.
    pub bytes: u64,
    /// Bytes that the client received within the client's window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub back_bytes: u64,
    /// The client's socket, which sends the stream; absent where the flow is not one TCP connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Socket>,
    /// The server's socket; absent where the flow is not one TCP connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Socket>,
}
