//! One sample: one measured run of one cell in one round. Never discarded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::end_window::{End, ThreadWindow};
use crate::latency::Latency;
use crate::load::{Direction, Workload};
use crate::offload::Role;
use crate::switch::OpenVswitch;
use crate::usage::HostUsage;

mod join;
mod older;

/// One line of `samples.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round, from 0.
    pub round: u32,
    /// Position within the round's random order, from 0.
    pub position: u32,
    /// [`crate::cell::Cell::index`].
    pub cell: u32,
    /// Seconds since the run began, at the start of this sample's work.
    pub started_s: f64,
    /// Seconds this sample took in all, lab building included.
    pub took_s: f64,
    /// Why this sample enters no verdict; `None` is a valid sample.
    pub invalid: Option<Invalid>,
    /// What may have disturbed it; a marked sample still counts.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// The path before and after the window, both directions.
    #[serde(default)]
    pub proofs: Vec<Proof>,
    /// The devices of the path as they were read back.
    #[serde(default)]
    pub devices: Vec<DeviceState>,
    /// The Open vSwitch that both hosts have; `None` where another datapath carried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_vswitch: Option<OpenVswitch>,
    /// What each of the cell's loads did, in the cell's order; empty where they never ran. (Of a record of version 1
    /// or 2, which knew TCP streams only, its `stream`.)
    #[serde(default, alias = "stream", deserialize_with = "older::of_any_version")]
    pub loads: Vec<LoadResult>,
    /// Host a, which sends where nothing says otherwise ([`LoadResult::direction`]).
    pub sender: Option<HostUsage>,
    /// Host b.
    pub receiver: Option<HostUsage>,
}

impl Sample {
    /// The load of that name, where it ran.
    pub fn load(&self, name: &str) -> Option<&LoadResult> {
        self.loads.iter().find(|load| load.name == name)
    }

    /// Every flow of every load.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.loads.iter().flat_map(|load| &load.flows)
    }
}

/// Why a sample does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "reason")]
pub enum Invalid {
    /// The path did not carry the guest's MTU.
    Proof(String),
    /// The network could not be built as planned.
    Build(String),
    /// The load did not run to its end.
    Load(String),
    /// A setting of the cell could not be put in force, or not be undone.
    Setting(String),
    /// An agent ended or did not answer.
    Agent(String),
}

impl Invalid {
    /// The reason in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Proof(text)
            | Self::Build(text)
            | Self::Load(text)
            | Self::Setting(text)
            | Self::Agent(text) => text,
        }
    }
}

/// What may have disturbed a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Mark {
    /// Tasks of others used more of the machine than the threshold.
    ForeignLoad {
        /// Cores they used.
        cores: f64,
        /// The threshold in cores.
        threshold: f64,
    },
    /// The hypervisor took more than the threshold.
    Steal {
        /// Which host.
        host: String,
        /// Share of its core time.
        fraction: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Packets were dropped from a core's backlog.
    BacklogDrops {
        /// Which host.
        host: String,
        /// How many.
        packets: u64,
    },
    /// The threads of one end of a load had something to do all the time: they and not the path were the limit. What
    /// to change is [`GENERATOR_BOUND_ADVICE`]. A flood of small datagrams is expected to be so.
    GeneratorBound {
        /// The load's name.
        load: String,
        /// Which host.
        host: String,
        /// Which end.
        end: End,
    },
}

impl Mark {
    /// The kinds, in the order in which they are told.
    pub const KINDS: [&str; 4] = ["foreign-load", "steal", "backlog-drops", "generator-bound"];

    /// Its kind, as records, counts and columns write it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ForeignLoad { .. } => Self::KINDS[0],
            Self::Steal { .. } => Self::KINDS[1],
            Self::BacklogDrops { .. } => Self::KINDS[2],
            Self::GeneratorBound { .. } => Self::KINDS[3],
        }
    }
}

/// What to do where a load's own threads were the limit.
pub const GENERATOR_BOUND_ADVICE: &str = "the load's own threads never waited for the path, so they were the limit: \
     give them more processors or threads, use larger messages, more streams or segmentation offload";

/// A path proven, or not, to carry datagrams of exactly one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Before or after the window.
    pub when: ProofTime,
    /// `a` or `b`: the host whose guest sent.
    pub from: String,
    /// IP datagram size in bytes: the guest's MTU.
    pub size: u32,
    /// Whether a datagram of that size was acknowledged.
    pub proven: bool,
    /// What went wrong, where it is not proven.
    pub reason: Option<String>,
    /// Probes sent.
    pub probes: u32,
    /// Seconds it took.
    pub seconds: f64,
    /// Where looked for: the frame that the receiving host's underlay showed.
    pub seen: Option<SeenFrame>,
}

/// Before or after the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofTime {
    /// Before the load starts.
    Before,
    /// After it ended.
    After,
}

/// A probe as it was seen on the underlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFrame {
    /// Total length field of the outermost IP header: guest MTU plus overhead.
    pub outer_ip_bytes: u32,
    /// The frame's bytes, Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// What it should have been.
    pub expected_outer_ip_bytes: u32,
    /// What the frame's bytes should have been, a VLAN tag included; absent in records of before it was looked at.
    #[serde(default)]
    pub expected_frame_bytes: Option<u32>,
    /// Whether the outermost header said it is a fragment.
    pub fragment: bool,
}

/// A device of the path as read back after it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// `a` or `b`.
    pub host: String,
    /// The device's name.
    pub name: String,
    /// What it is on the path.
    pub role: Role,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// ethtool features of the profile's table and of the cell's settings, by the kernel's name; absent: the
    /// device has no such feature.
    pub features: BTreeMap<String, bool>,
    /// The receive steering mask of its first queue, where it was readable; the other queues have the same.
    pub rps_cpus: Option<String>,
    /// Transmit queues that it has; absent in records before version 3.
    #[serde(default)]
    pub tx_queues: Option<u32>,
    /// Receive queues that it has.
    #[serde(default)]
    pub rx_queues: Option<u32>,
    /// Devices that were read back like this one, itself included: a host's guests have one each.
    #[serde(default = "one")]
    pub count: u32,
}

/// What a record from before there were several means.
const fn one() -> u32 {
    1
}

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
    /// Responses to requests that had been given up or answered.
    pub late: u64,
    /// The latency of every transaction.
    pub latency: Latency,
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
    /// Must have been sent, by their numbers, and did not come. Negative where some came that had counted as lost
    /// before the window.
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
    /// The share of the datagrams sent that arrived, 0 to 1, by the numbers that the server saw; `None` where it saw
    /// none.
    pub fn delivered(&self) -> Option<f64> {
        let expected = self.received as f64 + self.lost as f64;
        (self.received > 0 && expected > 0.0).then(|| (self.received as f64 / expected).min(1.0))
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
    /// Which end.
    pub end: End,
    /// Each thread.
    pub threads: Vec<ThreadWindow>,
    /// Whether all of them had something to do all the time: they and not the path were the limit.
    pub bound: bool,
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
