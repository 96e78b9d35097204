//! The effective plan, with every key resolved and defaults filled in. Every result carries it.

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

/// What a run varies, loads and repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The plan's name: letters, digits, `-`, `_`, `.`. The run directory is named after it.
    pub name: String,
    /// One paragraph for readers of a report.
    #[serde(default)]
    pub description: Option<String>,
    /// Where the hosts come from.
    pub hosts: Hosts,
    /// Existing hosts besides a and b, by the plan's names for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more_hosts: BTreeMap<String, HostAddress>,
    /// Pairs of hosts that are measured, levels of one factor; empty where only a and b are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairNames>,
    /// Whether `vary` may change settings of existing hosts.
    #[serde(default, skip_serializing_if = "is_off")]
    pub allow_host_changes: bool,
    /// Upper bound on the rate of all streams of a load together, in one direction between existing hosts.
    #[serde(default, skip_serializing_if = "MaxRate::is_auto")]
    pub max_rate: MaxRate,
    /// How the lab's hosts share this machine's cores.
    pub cores: Cores,
    /// The network between the hosts; each of its lists is a factor.
    pub underlay: Underlay,
    /// The MTU of the guests' devices, levels of one factor.
    pub guest_mtu: Vec<GuestMtu>,
    /// IP version of the guests, levels of one factor.
    #[serde(default = "ipv4_only")]
    pub guest_ip: Vec<IpVersion>,
    /// Guests per host, levels of one factor.
    #[serde(default = "one_guest")]
    pub guests: Vec<u32>,
    /// How guest frames cross the underlay, levels of one factor.
    pub encapsulation: Vec<Encapsulation>,
    /// Whether tunnels compute the outer UDP checksum, levels of one factor. It does not apply to encapsulations
    /// without an outer UDP header, or with an option for it.
    #[serde(default = "no_checksum")]
    pub udp_checksum: Vec<bool>,
    /// Who encapsulates, levels of one factor; empty where the run chooses: the first of [`Datapath::AUTO`] that can
    /// build every cell.
    #[serde(default = "kernel_only")]
    pub datapath: Vec<Datapath>,
    /// How OVN joins the guests, levels of one factor; without a meaning for other datapaths.
    #[serde(default = "switched_only")]
    pub topology: Vec<Topology>,
    /// The access-control lists of OVN, levels of one factor; without a meaning for other datapaths.
    #[serde(default = "no_acl")]
    pub acl: Vec<Acl>,
    /// Offload profiles, levels of one factor.
    pub offload: Vec<Offload>,
    /// Queues and receive steering of the path's devices.
    #[serde(default)]
    pub steering: SteeringPlan,
    /// The loads, levels of one factor whose levels are never compared. (A record of version 1 or 2 has one TCP stream,
    /// under `load`.)
    #[serde(
        alias = "load",
        deserialize_with = "crate::load::levels_of_any_version"
    )]
    pub loads: Vec<LoadLevel>,
    /// Number and length of samples.
    pub repeat: Repeat,
    /// Whether the first cell is measured twice in every round, to show what the run finds where nothing differs (A/A
    /// test).
    #[serde(default, skip_serializing_if = "is_off")]
    pub self_test: bool,
    /// Factors that the plan defines itself: settings of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<Vary>,
    /// Combinations to leave out: a cell that has all levels of an entry is dropped.
    #[serde(default)]
    pub exclude: Vec<Levels>,
    /// Figures that others published for some of the cells.
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
    /// Existing hosts and the network between them, on which nothing is built; `None` until the command line names the
    /// hosts.
    Existing(Option<Box<HostPair>>),
    /// Existing hosts, on which guests and tunnels over their own network are built for the run; `None` until the
    /// command line names the hosts.
    Tunnel(Option<Box<HostPair>>),
}

impl Hosts {
    /// Whether the network is that of existing hosts, unchanged.
    pub const fn is_existing(&self) -> bool {
        matches!(self, Self::Existing(_))
    }

    /// Whether tunnels are built over the network of existing hosts.
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

/// The names of two of a plan's hosts. In cells of the pair the first is host a, the second host b.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairNames(pub [String; 2]);

/// The level's label: `a and c`.
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
    /// The plan's names.
    pub names: PairNames,
    /// The hosts' addresses.
    pub hosts: HostPair,
}

/// Key of the factor whose levels are pairs of hosts.
pub const PAIRS: &str = "pairs";

impl Plan {
    /// The names of all hosts that pairs can be made of, a and b first.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        let more = self.more_hosts.keys().map(String::as_str);
        ["a", "b"].into_iter().chain(more)
    }

    /// The address of an existing host; `None` where it is not known.
    pub fn host(&self, name: &str) -> Option<&HostAddress> {
        match (name, self.hosts.pair()) {
            ("a", Some(pair)) => Some(&pair.a),
            ("b", Some(pair)) => Some(&pair.b),
            (name, _) => self.more_hosts.get(name),
        }
    }

    /// The pairs of existing hosts that are measured, in the order of [`Plan::pairs`]; `None` where an address is not
    /// known, and in a lab.
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

    /// Index into [`Plan::host_pairs`] of the pair of the cell with these levels.
    pub fn pair_of(&self, levels: &Levels) -> usize {
        let label = levels.get(PAIRS);
        let is = |pair: &PairNames| label.is_some_and(|label| *label == pair.to_string());
        self.pairs.iter().position(is).unwrap_or(0)
    }
}

/// Two existing hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPair {
    /// Host a, which sends or requests unless a load says otherwise.
    pub a: HostAddress,
    /// Host b, which receives or responds unless a load says otherwise.
    pub b: HostAddress,
}

/// Upper bound on what all loads together send in each direction over an existing network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxRate {
    /// Half the speed of the slower device, or 1 Gbit/s where that is unknown; no limit between hosts of one machine.
    #[default]
    Auto,
    /// No limit.
    None,
    /// An upper bound, bit/s.
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
    /// Line rate of each link, bit/s; `None` for a veth without a limit.
    pub rate: Vec<Option<u64>>,
    /// Number of links between the hosts.
    #[serde(default = "one_guest", skip_serializing_if = "is_one")]
    pub links: Vec<u32>,
    /// IP version of the tunnels' outer packets; without a meaning where there is no tunnel.
    #[serde(default = "ipv4_only")]
    pub ip: Vec<IpVersion>,
    /// Switches, routers and equal-cost paths between the hosts; no factor.
    #[serde(default)]
    pub transit: Transit,
    /// Whether guests may have an MTU above the path MTU between the hosts.
    #[serde(default, skip_serializing_if = "is_off")]
    pub oversize: bool,
    /// Microseconds between two releases of the line, the same in all cells; `None` where no cell has a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_us: Option<u32>,
}

/// The number of guests or links in plans of records without the field.
fn one_guest() -> Vec<u32> {
    vec![1]
}

/// Whether there is a single link only; records leave the field out then.
fn is_one(links: &[u32]) -> bool {
    links == [1]
}

/// How received frames are spread over queues and cores; each list is a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteeringPlan {
    /// Number of transmit and of receive queues of every veth of the path.
    pub queues: Vec<u32>,
    /// Receive packet steering of packets from the underlay.
    pub rps: Vec<Rps>,
}

/// The values in records before version 3.
impl Default for SteeringPlan {
    fn default() -> Self {
        Self {
            queues: vec![1],
            rps: vec![Rps::Own],
        }
    }
}

/// The value in records without the field: no outer UDP checksum.
fn no_checksum() -> Vec<bool> {
    vec![false]
}

/// The value in records without the field: the kernel's datapath.
fn kernel_only() -> Vec<Datapath> {
    vec![Datapath::Kernel]
}

/// The value in records without the field: one logical switch.
fn switched_only() -> Vec<Topology> {
    vec![Topology::Switched]
}

/// The value in records without the field: no access-control lists.
fn no_acl() -> Vec<Acl> {
    vec![Acl::None]
}

/// The value in records of version 1: IPv4.
fn ipv4_only() -> Vec<IpVersion> {
    vec![IpVersion::Ipv4]
}

/// A level of the factor `guest_mtu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestMtu {
    /// This many bytes, 576 to 65535.
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

/// Number and length of samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Number of rounds, at least 1; every round measures each cell once. Confidence intervals need 2. With `until`,
    /// the upper bound.
    pub rounds: u32,
    /// Length of a sample's measured window, seconds.
    pub seconds: f64,
    /// Time under load before the window, seconds; not measured.
    pub warmup: f64,
    /// The smallest change worth having, as a fraction (0.05 is 5 %).
    pub worth: f64,
    /// The stopping rule of an adaptive run; `None` is a fixed number of rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<StoppingRule>,
}

/// Stopping rule of an adaptive run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Half-width of a confidence interval that is narrow enough, as a fraction (0.02 is 2 %).
    pub precision: f64,
    /// Smallest number of rounds before the run may stop, at least 4 and at most [`Repeat::rounds`].
    pub min_rounds: u32,
    /// Wall-clock budget of the run, seconds, building included: once it is spent no further round begins, except to
    /// reach `min_rounds`.
    pub budget_s: f64,
    /// The effects whose intervals have to be narrow enough.
    #[serde(default)]
    pub ask: AwaitedEffects,
}

/// The effects that an adaptive run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AwaitedEffects {
    /// Effects on every metric.
    #[default]
    All,
    /// Effects on what gets through: throughput, transactions or datagrams per second, the share delivered.
    Throughput,
    /// Effects on latencies.
    Latency,
    /// Effects on CPU per Gbit/s or per transaction, of each host or of the machine.
    Cpu,
}

impl AwaitedEffects {
    /// Whether the run waits for effects on `metric`.
    pub const fn includes(self, metric: Metric) -> bool {
        match self {
            Self::All => true,
            Self::Throughput => !metric.is_cpu() && !metric.is_latency(),
            Self::Latency => metric.is_latency(),
            Self::Cpu => metric.is_cpu(),
        }
    }
}
