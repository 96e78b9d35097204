//! The effective plan: every key resolved, defaults filled in. It travels with every result.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::cores::Cores;
pub use crate::encapsulation::*;
pub use crate::levels::Levels;
pub use crate::published::*;

use crate::datapath::Datapath;
use crate::host::HostAddress;
use crate::ip::IpVersion;
use crate::load::LoadLevel;
use crate::logical::{Acl, Topology};
use crate::metric::Metric;
use crate::offload::Offload;
use crate::steering::Rps;
use crate::transit::Transit;
use crate::vary::Vary;

/// What to vary, what to load, how often, how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The plan's name: letters, digits, `-`, `_`, `.`; it names the run directory.
    pub name: String,
    /// One paragraph for the reader of a report.
    #[serde(default)]
    pub description: Option<String>,
    /// Where the hosts come from.
    pub hosts: Hosts,
    /// Existing hosts beside a and b, by the plan's names for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more_hosts: BTreeMap<String, HostAddress>,
    /// Which two hosts are measured, levels of one factor; empty where that is a and b.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairNames>,
    /// Whether `vary` may change settings of existing hosts.
    #[serde(default, skip_serializing_if = "is_off")]
    pub allow_host_changes: bool,
    /// Most bits per second that all streams of a load send together in one direction between existing hosts.
    #[serde(default, skip_serializing_if = "MaxRate::is_auto")]
    pub max_rate: MaxRate,
    /// How the hosts share this machine's cores.
    pub cores: Cores,
    /// The network between the hosts; each of its lists is a factor.
    pub underlay: Underlay,
    /// The MTU of the guests' devices, levels of one factor.
    pub guest_mtu: Vec<GuestMtu>,
    /// Which IP the guests speak, levels of one factor.
    #[serde(default = "ipv4_only")]
    pub guest_ip: Vec<IpVersion>,
    /// Guests of each host, levels of one factor.
    #[serde(default = "one_guest")]
    pub guests: Vec<u32>,
    /// How guest frames cross the underlay, levels of one factor.
    pub encapsulation: Vec<Encapsulation>,
    /// Whether tunnels compute the outer UDP checksum, levels of one factor; of no meaning to an encapsulation
    /// that has no UDP header, or that says it itself.
    #[serde(default = "no_checksum")]
    pub udp_checksum: Vec<bool>,
    /// Who encapsulates, levels of one factor; empty where the run is to choose: the first of [`Datapath::AUTO`] that
    /// can build every cell.
    #[serde(default = "kernel_only")]
    pub datapath: Vec<Datapath>,
    /// How OVN joins the guests, levels of one factor; of no meaning to other datapaths.
    #[serde(default = "switched_only")]
    pub topology: Vec<Topology>,
    /// What of OVN filters their packets, levels of one factor; as `topology`.
    #[serde(default = "no_acl")]
    pub acl: Vec<Acl>,
    /// Offload profiles, levels of one factor.
    pub offload: Vec<Offload>,
    /// Queues and receive steering of the path's devices.
    #[serde(default)]
    pub steering: SteeringPlan,
    /// What is run, levels of one factor whose levels are never compared. (A record of version 1 or 2 has one TCP
    /// stream, under `load`.)
    #[serde(
        alias = "load",
        deserialize_with = "crate::load::levels_of_any_version"
    )]
    pub loads: Vec<LoadLevel>,
    /// How often and how long.
    pub repeat: Repeat,
    /// Whether the first cell is measured twice in every round, to see what the run shows where nothing
    /// differs.
    #[serde(default, skip_serializing_if = "is_off")]
    pub self_test: bool,
    /// Factors of the plan's own: settings of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<Vary>,
    /// Combinations to leave out: a cell that matches every level of an entry is dropped.
    #[serde(default)]
    pub exclude: Vec<Levels>,
    /// Figures published by others for some of these cells.
    #[serde(default)]
    pub published: Option<Published>,
    /// Seed of the random order; chosen at the start of the run where the plan names none.
    #[serde(default)]
    pub seed: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
const fn is_off(switch: &bool) -> bool {
    !*switch
}

/// Where the hosts of a run come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hosts {
    /// Two hosts made of network namespaces on this machine.
    Lab,
    /// Existing hosts and the network between them, of which nothing is built; `None` until the command line names them.
    Existing(Option<Box<HostPair>>),
    /// Existing hosts, on which guests and tunnels over their own network are made for the run; `None` likewise.
    Tunnel(Option<Box<HostPair>>),
}

impl Hosts {
    /// Whether the network is used as it is.
    pub const fn is_existing(&self) -> bool {
        matches!(self, Self::Existing(_))
    }

    /// Whether tunnels are made over the network of existing hosts.
    pub const fn is_tunnel(&self) -> bool {
        matches!(self, Self::Tunnel(_))
    }

    /// The existing hosts, where the plan or the command line names them.
    pub fn pair(&self) -> Option<&HostPair> {
        match self {
            Self::Lab => None,
            Self::Existing(pair) | Self::Tunnel(pair) => pair.as_deref(),
        }
    }
}

/// The names of two of a plan's hosts. In cells of the pair the first is host a and the second host b.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairNames(pub [String; 2]);

/// As the level is labelled: `a and c`.
impl fmt::Display for PairNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([first, second]) = self;
        write!(f, "{first} and {second}")
    }
}

/// Hosts a and b.
impl Default for PairNames {
    fn default() -> Self {
        Self(["a", "b"].map(str::to_owned))
    }
}

/// Two existing hosts and what the plan calls them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPair {
    /// Their names.
    pub names: PairNames,
    /// Where they are.
    pub hosts: HostPair,
}

/// The factor whose levels are pairs of hosts.
pub const PAIRS: &str = "pairs";

impl Plan {
    /// The names of all hosts that pairs may be of, where the plan is for existing ones: a and b first.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        let more = self.more_hosts.keys().map(String::as_str);
        ["a", "b"].into_iter().chain(more)
    }

    /// The address of one of its existing hosts.
    pub fn host(&self, name: &str) -> Option<&HostAddress> {
        match (name, self.hosts.pair()) {
            ("a", Some(pair)) => Some(&pair.a),
            ("b", Some(pair)) => Some(&pair.b),
            (name, _) => self.more_hosts.get(name),
        }
    }

    /// The pairs of existing hosts that are measured, in the order of [`Plan::pairs`]; `None` where the address of one is
    /// not known, and in a lab.
    pub fn host_pairs(&self) -> Option<Vec<NamedPair>> {
        let only = [PairNames::default()];
        let pairs = if self.pairs.is_empty() {
            &only[..]
        } else {
            &self.pairs[..]
        };
        let pair = |names: &PairNames| {
            let [a, b] = names.0.each_ref().map(|name| self.host(name).cloned());
            Some(NamedPair {
                names: names.clone(),
                hosts: HostPair { a: a?, b: b? },
            })
        };
        pairs.iter().map(pair).collect()
    }

    /// The number of a cell's pair in [`Plan::host_pairs`], by the cell's levels.
    pub fn pair_of(&self, levels: &Levels) -> usize {
        let label = levels.get(PAIRS);
        let is = |pair: &PairNames| label.is_some_and(|label| *label == pair.to_string());
        self.pairs.iter().position(is).unwrap_or(0)
    }
}

/// Two existing hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPair {
    /// Host a, which sends or asks where a load does not say otherwise.
    pub a: HostAddress,
    /// Host b.
    pub b: HostAddress,
}

/// The most that streams may send over an existing network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxRate {
    /// Half of the slower device's speed, or 1 Gbit/s where that is unknown; no limit between hosts of one machine.
    #[default]
    Auto,
    /// No limit.
    None,
    /// Bits per second.
    BitsPerSecond(u64),
}

impl MaxRate {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The network between the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Underlay {
    /// MTU of the underlay devices in bytes, 576 to 65535.
    pub mtu: Vec<u32>,
    /// Line rate in bits per second; `None` is an unlimited veth.
    pub rate: Vec<Option<u64>>,
    /// Links, each of that rate.
    #[serde(default = "one_guest", skip_serializing_if = "is_one")]
    pub links: Vec<u32>,
    /// Which IP carries the tunnels; of no meaning where nothing tunnels.
    #[serde(default = "ipv4_only")]
    pub ip: Vec<IpVersion>,
    /// What lies between the hosts; no factor.
    #[serde(default)]
    pub transit: Transit,
    /// Whether guests may have an MTU that something between the hosts does not carry.
    #[serde(default, skip_serializing_if = "is_off")]
    pub oversize: bool,
    /// Microseconds between two releases of the line, the same in all cells; `None` where no cell has a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_us: Option<u32>,
}

/// What a plan meant before there was a choice.
fn one_guest() -> Vec<u32> {
    vec![1]
}

/// Whether there is but one link, as before there was a choice.
fn is_one(links: &[u32]) -> bool {
    links == [1]
}

/// How received frames are spread; each list is a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteeringPlan {
    /// Transmit and receive queues of every veth of the path.
    pub queues: Vec<u32>,
    /// Receive packet steering of what comes from the underlay.
    pub rps: Vec<Rps>,
}

/// What a plan of a record before version 3 had.
impl Default for SteeringPlan {
    fn default() -> Self {
        Self {
            queues: vec![1],
            rps: vec![Rps::Own],
        }
    }
}

/// What a plan meant before there was a choice.
fn no_checksum() -> Vec<bool> {
    vec![false]
}

/// The same.
fn kernel_only() -> Vec<Datapath> {
    vec![Datapath::Kernel]
}

/// The same.
fn switched_only() -> Vec<Topology> {
    vec![Topology::Switched]
}

/// The same.
fn no_acl() -> Vec<Acl> {
    vec![Acl::None]
}

/// What a plan of a record of version 1 had.
fn ipv4_only() -> Vec<IpVersion> {
    vec![IpVersion::Ipv4]
}

/// A level of the guests' MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestMtu {
    /// That many bytes, 576 to 65535.
    Bytes(u32),
    /// The underlay's MTU less the encapsulation's overhead.
    Max,
}

impl fmt::Display for GuestMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// How often and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Rounds: every cell is measured once in each. At least 1; intervals need 2. Where `until` is
    /// there, the most that are measured.
    pub rounds: u32,
    /// Measured window of one sample in seconds.
    pub seconds: f64,
    /// Load before the window in seconds, not measured.
    pub warmup: f64,
    /// The smallest change worth having, as a fraction (0.05 is 5 %).
    pub worth: f64,
    /// The stopping rule of an adaptive run; `None` is a fixed number of rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// When a run without a fixed number of rounds may stop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Half-width of an interval that is narrow enough, as a fraction (0.02 is 2 %).
    pub precision: f64,
    /// Rounds below which it does not stop, at least 4 and at most [`Repeat::rounds`].
    pub min_rounds: u32,
    /// Wall-clock seconds of the run, building included, after which no further round is begun
    /// once there are `min_rounds`.
    pub budget_s: f64,
    /// Which effects are waited for.
    #[serde(default)]
    pub ask: Ask,
}

/// Which effects a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Those of every metric.
    #[default]
    All,
    /// Those on what gets through: throughput, transactions or datagrams per second, the share delivered.
    Throughput,
    /// Those on latencies.
    Latency,
    /// Those on CPU per Gbit/s or transaction, of each host or of the machine.
    Cpu,
}

impl Ask {
    /// Whether effects on `metric` are waited for.
    pub const fn asks(self, metric: Metric) -> bool {
        match self {
            Self::All => true,
            Self::Throughput => !metric.is_cpu() && !metric.is_latency(),
            Self::Latency => metric.is_latency(),
            Self::Cpu => metric.is_cpu(),
        }
    }
}
