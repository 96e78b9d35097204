//! One sample: one measured run of one cell in one round. Never discarded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::offload::Role;
use crate::usage::HostUsage;

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
    /// The load's figures; `None` where it never ran.
    pub stream: Option<StreamResult>,
    /// The sending host, a.
    pub sender: Option<HostUsage>,
    /// The receiving host, b.
    pub receiver: Option<HostUsage>,
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
    /// An agent ended or did not answer.
    Agent(String),
}

impl Invalid {
    /// The reason in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Proof(text) | Self::Build(text) | Self::Load(text) | Self::Agent(text) => text,
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
}

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
    /// ethtool features of the profile's table, by the kernel's name; absent: the device has no such feature.
    pub features: BTreeMap<String, bool>,
    /// The receive steering mask of its first queue, where it was readable.
    pub rps_cpus: Option<String>,
    /// Devices that were read back like this one, itself included: a host's guests have one each.
    #[serde(default = "one")]
    pub count: u32,
}

/// What a record from before there were several means.
const fn one() -> u32 {
    1
}

/// A TCP stream load, over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Bytes that the receiving application read within the window.
    pub bytes: u64,
    /// The receiver's window in seconds.
    pub seconds: f64,
    /// The sender's window in seconds: what its sockets' counts belong to.
    pub sender_seconds: f64,
    /// Figures within the window, in order; never used as replication.
    pub intervals: Vec<Interval>,
    /// One entry per connection.
    pub flows: Vec<Flow>,
}

/// A part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds since the window began, at its end.
    pub end_s: f64,
    /// Bytes received in it.
    pub bytes: u64,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Bytes received within the window.
    pub bytes: u64,
    /// The sending socket.
    pub sender: Socket,
    /// The receiving socket.
    pub receiver: Socket,
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
