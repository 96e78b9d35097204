//! What a load did over one window: figures of the whole, and of each flow.

use serde::{Deserialize, Serialize};

use crate::end_window::{End, Interval, Io, Schedule, Socket, ThreadWindow};
use crate::latency::Latency;
use crate::load::{Direction, Workload};
use crate::moved::MachineMove;
use crate::path_access::PathAccess;

/// What one load did over one window, both of its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// [`crate::load::NamedLoad::name`].
    pub name: String,
    /// What was run.
    pub workload: Workload,
    /// Which host had the client.
    pub direction: Direction,
    /// The server's window in seconds: what it received belongs to it.
    pub seconds: f64,
    /// The client's window in seconds: what it counted, transactions included, belongs to it.
    pub client_seconds: f64,
    /// Of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamResult>,
    /// Of requests and responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestResult>,
    /// Of a stream of datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramResult>,
    /// Where zero copy was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<ZeroCopyCounts>,
    /// One entry per flow.
    pub flows: Vec<Flow>,
    /// Connections and datagrams that were dropped, since they were none of this load's.
    #[serde(default)]
    pub strays: u32,
    /// How busy the load's own threads were, at either end; absent in records of version 1 and 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generator: Vec<Generator>,
    /// Of a load with a rate, what was due and what was sent; absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How its client and its server read and write, in that order; absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<Io>,
    /// Of a migration, each machine's move; those of several guests one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MachineMove>,
    /// Of storage at a path: how it was read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAccess>,
}

/// A stream over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Bytes that the server's application read within its window.
    pub bytes: u64,
    /// Bytes that the client's application read within its own window: 0 but where both send.
    #[serde(default)]
    pub back_bytes: u64,
    /// Jain's fairness index over the flows' bytes: 1 where all have the same, 1/n where one has all (Jain, Chiu,
    /// Hawe, DEC-TR-301); absent where nothing arrived.
    #[serde(default)]
    pub fairness: Option<f64>,
    /// What the server read within the window, in order; never used as replication.
    pub intervals: Vec<Interval>,
}

/// Requests and responses over one window, as the client saw them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Requests that were answered in time.
    pub transactions: u64,
    /// Requests given up: never a latency.
    pub timeouts: u64,
    /// Responses to requests that had been given up; in records of versions before 5 also those that came again.
    pub late: u64,
    /// Responses that came again, over UDP.
    #[serde(default)]
    pub duplicated: u64,
    /// The latency of every transaction: from when its request was handed to the kernel until its response was read. In
    /// records of versions before 6, with a rate, from when it was due.
    pub latency: Latency,
    /// With a rate: from when a request was due until it was handed to the kernel; empty in records of versions before 6.
    #[serde(default)]
    pub lateness: Latency,
    /// Of storage with `flush_every`: the latency of every flush, which is no transaction. Absent where there was none.
    #[serde(default, skip_serializing_if = "Latency::is_empty")]
    pub flushes: Latency,
    /// Transactions within the window, in order; never used as replication.
    pub intervals: Vec<Interval>,
}

/// A stream of datagrams over one window, as the server saw them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DatagramResult {
    /// Handed to the kernel by the client within its window.
    pub sent: u64,
    /// Read by the server, each counted once.
    pub received: u64,
    /// Of those sent within the window, the ones that had not come when the load had ended. Of a load that was broken
    /// off: that must have been sent, by the numbers read within the window, and did not come in it, negative where some
    /// came that had counted as lost before; so also in records of versions before 5.
    pub lost: i64,
    /// Of those received, the ones that came after a higher number (RFC 4737).
    pub reordered: u64,
    /// Read again.
    pub duplicated: u64,
    /// So late that it is not known whether they were duplicates.
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

/// Sends from the load's own pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ZeroCopyCounts {
    /// Sends.
    pub sends: u64,
    /// Of these, the ones that the kernel is done with.
    pub completed: u64,
    /// Of these, the ones that it copied after all.
    pub copied: u64,
    /// Sends with a copy since the kernel took no more pages.
    pub fallbacks: u64,
}

/// How busy the threads of one end of a load were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// `a` or `b`.
    pub host: String,
    /// The end.
    pub end: End,
    /// Each thread.
    pub threads: Vec<ThreadWindow>,
    /// Whether all of them had something to do all the time: they and not the path were the limit.
    pub bound: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One flow: a connection, a succession of connections, or a pair of UDP ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Bytes that the server received within its window.
    pub bytes: u64,
    /// Bytes that the client received within its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub back_bytes: u64,
    /// The client's socket, which sends the stream; absent where a flow is not one TCP connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Socket>,
    /// The server's socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Socket>,
}
