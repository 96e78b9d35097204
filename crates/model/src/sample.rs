//! Samples: one measured run of one cell in one round. A sample is never discarded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::end_window::End;
use crate::offload::Role;
use crate::switch::OpenVswitch;
use crate::usage::HostUsage;

mod core_distance;
mod join;
mod older;
mod result;
mod schedule;

pub use crate::end_window::{Interval, Socket};
pub use core_distance::CoreDistance;
pub use result::{
    DatagramResult, Flow, Generator, LoadResult, RequestResult, StreamResult, ZeroCopyCounts,
};
pub use schedule::MissedSchedule;

/// One line of `samples.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round of the sample, from 0.
    pub round: u32,
    /// Position within the round's random order, from 0.
    pub position: u32,
    /// Number of the cell ([`crate::cell::Cell::index`]).
    pub cell: u32,
    /// Start of the work on this sample, seconds since the run began.
    pub started_s: f64,
    /// Duration of the sample, seconds, including the building of a lab.
    pub took_s: f64,
    /// Why the sample enters no verdict; `None` for a valid sample.
    pub invalid: Option<Invalid>,
    /// Earlier attempts at this sample, in order: each was invalid, and the sample was measured again at once. Absent
    /// where there were none, and in records of earlier programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_attempts: Vec<FailedAttempt>,
    /// What may have disturbed the sample; a marked sample still enters verdicts.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Proofs of the path in both directions, before and after the window.
    #[serde(default)]
    pub proofs: Vec<Proof>,
    /// The devices of the path as read back.
    #[serde(default)]
    pub devices: Vec<DeviceState>,
    /// The Open vSwitch of both hosts; `None` with other datapaths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_vswitch: Option<OpenVswitch>,
    /// Whether receive steering to the hosts' own cores ([`crate::steering::Rps::Own`]) was wanted and could not be
    /// set: before Linux 6.3 a plain user cannot set it. Absent where false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_steered: bool,
    /// Distances of the lab's cores, for the same pairs of cores in every sample. Empty in records of versions before
    /// 5, and with one core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores_apart: Vec<CoreDistance>,
    /// Results of the cell's loads, in the cell's order; empty where they never ran. (In a record of version 1 or 2,
    /// which knew TCP streams only, its `stream`.)
    #[serde(default, alias = "stream", deserialize_with = "older::of_any_version")]
    pub loads: Vec<LoadResult>,
    /// Usage of host a, which sends unless a load says otherwise ([`LoadResult::direction`]).
    pub sender: Option<HostUsage>,
    /// Usage of host b.
    pub receiver: Option<HostUsage>,
    /// The window without the line, where the cell has a line and a load that would fill it: CPU per Gbit/s comes from
    /// it. Absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated: Option<Saturated>,
    /// The window in which storage loads with `network_share` have their initiator on the target's host, over a Unix
    /// socket. Absent for other cells, and in records of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_target: Option<AtTarget>,
}

/// A window in which storage initiators run on their targets' hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtTarget {
    /// Results of the cell's loads, in the cell's order.
    pub loads: Vec<LoadResult>,
}

/// A window of a cell without its line, where only the network stack is the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saturated {
    /// Results of the cell's loads, in the cell's order.
    pub loads: Vec<LoadResult>,
    /// Usage of host a.
    pub sender: HostUsage,
    /// Usage of host b.
    pub receiver: HostUsage,
    /// Marks of this window: backlog drops, a generator that was the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

impl Sample {
    /// A sample of `cell` that has measured nothing yet, without loads, hosts, marks or proofs; `started_s` is in
    /// seconds since the run began.
    pub fn begun(round: u32, position: u32, cell: u32, started_s: f64) -> Self {
        Self {
            round,
            position,
            cell,
            started_s,
            took_s: 0.0,
            invalid: None,
            failed_attempts: Vec::new(),
            marks: Vec::new(),
            proofs: Vec::new(),
            devices: Vec::new(),
            open_vswitch: None,
            not_steered: false,
            cores_apart: Vec::new(),
            loads: Vec::new(),
            sender: None,
            receiver: None,
            saturated: None,
            at_target: None,
        }
    }

    /// The result of the load of that name, where it ran.
    pub fn load(&self, name: &str) -> Option<&LoadResult> {
        self.loads.iter().find(|load| load.name == name)
    }

    /// Every flow of every load.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.loads.iter().flat_map(|load| &load.flows)
    }
}

/// An attempt at a sample that was not valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Why it was not valid.
    pub invalid: Invalid,
    /// What may have disturbed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Duration of the attempt, seconds.
    pub took_s: f64,
}

/// Why a sample is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "reason")]
pub enum Invalid {
    /// The path did not carry the guest's MTU.
    Proof(String),
    /// The network could not be built as planned.
    Build(String),
    /// A load did not run to its end.
    Load(String),
    /// A setting of the cell could not be applied or undone.
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
    /// Other programs used more of the machine's cores than the threshold.
    ForeignLoad {
        /// Cores that other programs used: 1.0 is one core busy all the time.
        cores: f64,
        /// The threshold, cores.
        threshold: f64,
    },
    /// The hypervisor took more of a host's core time than the threshold.
    Steal {
        /// The host, `a` or `b`.
        host: String,
        /// Share of the host's core time that the hypervisor took, 0 to 1.
        fraction: f64,
        /// The threshold, 0 to 1.
        threshold: f64,
    },
    /// Packets were dropped because a core's backlog was full.
    BacklogDrops {
        /// The host, `a` or `b`.
        host: String,
        /// Number of dropped packets.
        packets: u64,
    },
    /// The threads at one end of a load had something to do all the time, so that they and not the path were the limit;
    /// see [`GENERATOR_BOUND_ADVICE`]. Expected with a flood of small datagrams.
    GeneratorBound {
        /// The load's name.
        load: String,
        /// The host of that end, `a` or `b`.
        host: String,
        /// The end of the load.
        end: End,
    },
    /// The hypervisor moved a core of the lab during the sample: the round trip of a cache line between two cores took
    /// much longer after the load than before, or much shorter.
    CoresMoved {
        /// The two cores, by the kernel's numbers.
        cpus: [u32; 2],
        /// Round trip before the load, nanoseconds.
        before_ns: f64,
        /// Round trip after the load, nanoseconds.
        after_ns: f64,
        /// Ratio of the longer to the shorter round trip above which a core counts as moved.
        threshold: f64,
    },
}

impl Mark {
    /// The names of all kinds, in the order of reports.
    pub const KINDS: [&str; 5] = [
        "foreign-load",
        "steal",
        "backlog-drops",
        "generator-bound",
        "cores-moved",
    ];

    /// Kinds that the load itself causes; the others come from what else the machine does.
    pub const OF_THE_LOAD: [&str; 2] = [Self::KINDS[2], Self::KINDS[3]];

    /// The name of its kind in records, counts and columns.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ForeignLoad { .. } => Self::KINDS[0],
            Self::Steal { .. } => Self::KINDS[1],
            Self::BacklogDrops { .. } => Self::KINDS[2],
            Self::GeneratorBound { .. } => Self::KINDS[3],
            Self::CoresMoved { .. } => Self::KINDS[4],
        }
    }
}

/// Advice where a load's own threads were the limit.
pub const GENERATOR_BOUND_ADVICE: &str = "the load's own threads never waited for the path, so they were the limit: \
     give them more processors or threads, use larger messages, more streams or segmentation offload";

/// Result of a path proof: whether a path carries datagrams of exactly one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Whether it was made before or after the window.
    pub when: ProofTime,
    /// The host whose guest sent, `a` or `b`.
    pub from: String,
    /// IP datagram size in bytes: the guest's MTU.
    pub size: u32,
    /// Whether a datagram of that size was acknowledged.
    pub proven: bool,
    /// Why the size is not proven; `None` where it is.
    pub reason: Option<String>,
    /// Number of probes sent.
    pub probes: u32,
    /// Duration of the proof, seconds.
    pub seconds: f64,
    /// The frame that was captured on the receiving host's underlay; `None` where none was looked for.
    pub seen: Option<CapturedFrame>,
}

/// When a proof was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofTime {
    /// Before the load starts.
    Before,
    /// After the load has ended.
    After,
}

/// A probe as seen on the underlay. Inside an encrypted tunnel a probe cannot be identified: there it is a data packet
/// of the tunnel, from and to the tunnel's port, of exactly the size that a full-size datagram must have, seen while
/// such a datagram was acknowledged. Neither that it held this datagram nor its inner headers are seen; smaller
/// datagrams that are padded to the same size look alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedFrame {
    /// Total length of the outermost IP header, bytes: guest MTU plus overhead.
    pub outer_ip_bytes: u32,
    /// Size of the frame, bytes, including the Ethernet header but not the FCS.
    pub frame_bytes: u32,
    /// The expected value of `outer_ip_bytes`.
    pub expected_outer_ip_bytes: u32,
    /// The expected value of `frame_bytes`, including a VLAN tag; absent in older records.
    #[serde(default)]
    pub expected_frame_bytes: Option<u32>,
    /// Whether the outermost IP header marks a fragment.
    pub fragment: bool,
}

/// A device of the path, as read back after its settings were applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// The host, `a` or `b`.
    pub host: String,
    /// The device's name.
    pub name: String,
    /// The device's role on the path.
    pub role: Role,
    /// The device's MTU, bytes.
    pub mtu: u32,
    /// States of the `ethtool -k` features of the profile and of the cell's settings, by the kernel's name; a feature
    /// that the device lacks is absent.
    pub features: BTreeMap<String, bool>,
    /// The receive steering mask (`rps_cpus`) of the first queue, where it was readable; all queues have the same.
    pub rps_cpus: Option<String>,
    /// Number of transmit queues; absent in records before version 3.
    #[serde(default)]
    pub tx_queues: Option<u32>,
    /// Number of receive queues; absent in records before version 3.
    #[serde(default)]
    pub rx_queues: Option<u32>,
    /// Number of devices with this state, this one included: each guest of a host has its own.
    #[serde(default = "one")]
    pub count: u32,
}

/// The number of devices in records without the field.
const fn one() -> u32 {
    1
}
