//! One sample: one measured run of one cell in one round. Never discarded.

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
pub use schedule::Behind;

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
    /// Whether the hosts were to handle what they receive on their own cores ([`crate::steering::Rps::Own`]) and could not:
    /// before Linux 6.3 a plain user cannot set it. Absent where false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_steered: bool,
    /// How far apart the lab's cores were; the same pairs in every sample. Empty of a record of version 4 or before, and
    /// where the run had one core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores_apart: Vec<CoreDistance>,
    /// What each of the cell's loads did, in the cell's order; empty where they never ran. (Of a record of version 1
    /// or 2, which knew TCP streams only, its `stream`.)
    #[serde(default, alias = "stream", deserialize_with = "older::of_any_version")]
    pub loads: Vec<LoadResult>,
    /// Host a, which sends where nothing says otherwise ([`LoadResult::direction`]).
    pub sender: Option<HostUsage>,
    /// Host b.
    pub receiver: Option<HostUsage>,
    /// The same load without the line, where the cell has a line and a load that would fill it: CPU per Gbit/s is taken
    /// from here. Absent in records of versions before 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated: Option<Saturated>,
    /// The same loads once more, of which storage that asks for the network's share has its initiator on its target's host,
    /// over a Unix socket. Absent of other cells, and in records of programs before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_target: Option<AtTarget>,
}

/// A window in which initiators of storage were on their targets' hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtTarget {
    /// What each of the cell's loads did, in the cell's order.
    pub loads: Vec<LoadResult>,
}

/// A window of a cell without its line: the stack alone is the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saturated {
    /// What each of the cell's loads did, in the cell's order.
    pub loads: Vec<LoadResult>,
    /// Host a.
    pub sender: HostUsage,
    /// Host b.
    pub receiver: HostUsage,
    /// What this window's own figures are to be read with: a backlog that dropped, a generator that was the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

impl Sample {
    /// A sample of `cell` that has begun and measured nothing yet: no loads, hosts, marks or proofs. `started_s` is in seconds
    /// since the run began.
    pub fn begun(round: u32, position: u32, cell: u32, started_s: f64) -> Self {
        Self {
            round,
            position,
            cell,
            started_s,
            took_s: 0.0,
            invalid: None,
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
        /// The host.
        host: String,
        /// Share of its core time.
        fraction: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Packets were dropped from a core's backlog.
    BacklogDrops {
        /// The host.
        host: String,
        /// How many.
        packets: u64,
    },
    /// The threads of one end of a load had something to do all the time: they and not the path were the limit. What
    /// to change is [`GENERATOR_BOUND_ADVICE`]. A flood of small datagrams is expected to be so.
    GeneratorBound {
        /// The load's name.
        load: String,
        /// The host.
        host: String,
        /// The end.
        end: End,
    },
    /// The hypervisor moved a core of the lab while the sample was taken: before the load a cache line took so much longer
    /// to another core and back than after it, or so much shorter.
    CoresMoved {
        /// The two cores.
        cpus: [u32; 2],
        /// Before, nanoseconds.
        before_ns: f64,
        /// After.
        after_ns: f64,
        /// How many times the other one of them was at least.
        threshold: f64,
    },
}

impl Mark {
    /// The kinds, in the order in which they are reported.
    pub const KINDS: [&str; 5] = [
        "foreign-load",
        "steal",
        "backlog-drops",
        "generator-bound",
        "cores-moved",
    ];

    /// Kinds that come of the load itself; the others come of what else the machine does.
    pub const OF_THE_LOAD: [&str; 2] = [Self::KINDS[2], Self::KINDS[3]];

    /// Its kind, as records, counts and columns write it.
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

/// A probe as it was seen on the underlay. What a tunnel encrypts cannot be told from another packet of the same size: there
/// it is a data packet of the tunnel's, from and to its port, of exactly the size that a full-size datagram must have, seen while
/// such a datagram was acknowledged. Neither that it held this datagram nor what it says inside is seen; of smaller datagrams,
/// those that are padded to the same size look alike.
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
