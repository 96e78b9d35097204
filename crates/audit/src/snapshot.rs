//! A host's configuration as it was read: plain data, serialisable, with defaults for everything that a host may lack,
//! so that a recorded fixture holds only what its test needs.

mod ovn;
mod ovs;
mod route;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use ovn::{Chassis, DhcpOptions, LogicalRouter, LogicalSwitch, Northbound, RouterPort};
pub use ovs::{Ovs, OvsBridge, OvsInterface};
pub use route::{EgressRoute, IpRoute, Neighbour};

/// Version of the document's format.
pub const VERSION: u32 = 1;

/// One host: its network namespaces and the devices in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStack {
    /// Format version: [`VERSION`].
    pub version: u32,
    /// Name of the host.
    pub host: String,
    /// The namespace that was read first, then those that its devices lead to.
    pub namespaces: Vec<Namespace>,
    /// Open vSwitch, where it runs and its database may be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ovs: Option<Ovs>,
    /// Number of online processors.
    #[serde(default)]
    pub cpus: u32,
    /// What could not be read, and why: nothing is concluded from the absence of findings there.
    #[serde(default)]
    pub unread: Vec<ReadFailure>,
}

impl HostStack {
    /// A host about which nothing could be read.
    pub fn unreadable(host: &str, what: &str, why: &str) -> Self {
        Self {
            version: VERSION,
            host: host.to_owned(),
            unread: vec![ReadFailure {
                what: what.to_owned(),
                why: why.to_owned(),
            }],
            ..Self::default()
        }
    }
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFailure {
    /// The part that could not be read.
    pub what: String,
    /// Why it could not be read, and what would help.
    pub why: String,
}

/// How a command enters a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetnsEntry {
    /// The command runs in the current namespace.
    #[default]
    Here,
    /// The name of a namespace in /run/netns.
    Named(String),
    /// The id of a process whose namespace is entered.
    Process(u32),
}

impl NetnsEntry {
    /// The command line that runs `command` in the namespace.
    pub fn command(&self, command: &str) -> String {
        match self {
            Self::Here => command.to_owned(),
            Self::Named(name) => match command.strip_prefix("ip ") {
                Some(rest) => format!("ip -n {name} {rest}"),
                None => format!("ip netns exec {name} {command}"),
            },
            Self::Process(pid) => format!("nsenter -t {pid} -n {command}"),
        }
    }
}

/// One network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Name for output: `host`, the namespace's name, or a process in it.
    pub label: String,
    /// How a command enters the namespace.
    #[serde(default)]
    pub enter: NetnsEntry,
    /// Inode of the namespace's file (/proc/PID/ns/net), which identifies the namespace on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// The namespace's devices.
    pub devices: Vec<Device>,
    /// Routes with an MTU of their own.
    #[serde(default)]
    pub route_mtus: Vec<RouteMtu>,
    /// MTUs of destinations learned from ICMP too-big messages.
    #[serde(default)]
    pub exceptions: Vec<RouteException>,
    /// Values of `net.` sysctls, by name without `net.`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Firewall rules that change the MSS of TCP; `None`: they could not be read.
    #[serde(default)]
    pub mss_clamps: Option<Vec<MssClamp>>,
    /// Index of the device of the default route.
    #[serde(default)]
    pub default_device: Option<u32>,
}

impl Namespace {
    /// The device with this index.
    pub fn device(&self, index: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.index == index)
    }

    /// The value of a sysctl as a number; `None` where it was not read or is not one.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.sysctls.get(name)?.trim().parse().ok()
    }
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name of the device.
    pub name: String,
    /// Interface index in the device's namespace.
    pub index: u32,
    /// `IFLA_INFO_KIND`: `veth`, `bridge`, `vxlan`, ...; empty for network cards and loopback.
    #[serde(default)]
    pub kind: String,
    /// IP MTU, bytes.
    pub mtu: u32,
    /// IPv6 MTU of the device (`net.ipv6.conf.DEV.mtu`), bytes, where it is smaller than `mtu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_mtu: Option<u32>,
    /// Largest MTU that the driver accepts, bytes; 0: not reported.
    #[serde(default)]
    pub max_mtu: u32,
    /// Whether the device is administratively up (`IFF_UP`).
    #[serde(default = "yes")]
    pub up: bool,
    /// Whether it is a loopback device.
    #[serde(default)]
    pub loopback: bool,
    /// Whether it is a device of hardware, or of an emulation of hardware.
    #[serde(default)]
    pub physical: bool,
    /// Index of the bridge, bond or team that the device is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<u32>,
    /// Index of the lower device, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<u32>,
    /// The peer of a veth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<VethPeer>,
    /// VLAN id of a VLAN device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Configuration of a tunnel device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// IP addresses of the device.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Features of the device, by the kernel's names.
    #[serde(default)]
    pub features: BTreeMap<String, Feature>,
    /// Queues, receive steering and rings.
    #[serde(default)]
    pub queues: Queues,
    /// Root queueing discipline.
    #[serde(default)]
    pub qdisc: String,
    /// Limit of a root `pfifo`, packets, or `bfifo`, bytes; `None`: another qdisc, or not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc_limit: Option<u32>,
    /// Length of the transmit queue (`qlen` of `ip link`), packets; `None`: not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queue_len: Option<u32>,
    /// Packets that the device dropped since it was created.
    #[serde(default)]
    pub drops: Drops,
}

const fn yes() -> bool {
    true
}

/// The peer of a veth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VethPeer {
    /// Position of the peer's namespace in [`HostStack::namespaces`]; `None`: that namespace could not be read.
    pub namespace: Option<usize>,
    /// Interface index of the peer in its namespace.
    pub index: u32,
}

/// One feature of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Whether the feature is active.
    pub on: bool,
    /// Whether the feature can be changed.
    #[serde(default = "yes")]
    pub changeable: bool,
}

/// Queues, receive and transmit steering, and rings of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Number of receive queues.
    pub rx: u32,
    /// Number of transmit queues.
    pub tx: u32,
    /// Number of receive queues with an RPS mask of cores.
    pub rps: u32,
    /// Number of transmit queues with an XPS mask of cores.
    pub xps: u32,
    /// Receive descriptors: in use, and the largest possible number.
    pub rx_ring: Option<(u32, u32)>,
    /// Transmit descriptors: in use, and the largest possible number.
    pub tx_ring: Option<(u32, u32)>,
}

/// Drop counters of `IFLA_STATS64`, packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Drops {
    /// Packets dropped on receive (`rx_dropped`).
    pub rx: u64,
    /// Packets dropped on transmit (`tx_dropped`).
    pub tx: u64,
    /// Packets dropped for lack of receive descriptors (`rx_missed_errors`).
    pub rx_missed: u64,
}

/// Configuration of a tunnel device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tunnel {
    /// The encapsulation in the notation of `wirecost overhead`: `vxlan`, `geneve:8`, `gre:key`; empty where its
    /// overhead is not known.
    pub stack: String,
    /// The remote ends, and the routes of packets to them.
    pub remotes: Vec<Remote>,
    /// Position in [`HostStack::namespaces`] of the namespace that the tunnel's packets leave from; `None`: the
    /// device's own. A tunnel's socket stays in the namespace where the device was created, even when the device is
    /// moved (container overlays).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<usize>,
    /// UDP destination port; 0 for a tunnel without UDP.
    pub port: u16,
    /// First and last source port of a UDP tunnel; `None`: those of `net.ipv4.ip_local_port_range`.
    pub source_ports: Option<(u16, u16)>,
    /// Whether the tunnel's packets carry an outer UDP checksum.
    pub udp_checksum: bool,
    /// Whether each packet carries its own remote (`external`): the device's MTU then limits nothing.
    pub external: bool,
    /// Whether a UDP tunnel over IPv6 sends, and accepts, packets without an outer checksum; `None` for others.
    pub zero_checksum6: Option<(bool, bool)>,
}

/// The route of packets to a tunnel's remote end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Address of the remote end.
    pub address: IpAddr,
    /// Index of the output device; `None`: there is no route.
    pub device: Option<u32>,
    /// MTU of the route itself, bytes.
    #[serde(default)]
    pub route_mtu: Option<u32>,
}

/// A route with an MTU of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteMtu {
    /// The destination, as `ip route` prints it.
    pub destination: String,
    /// Index of the route's device.
    pub device: Option<u32>,
    /// MTU of the route, bytes.
    pub mtu: u32,
    /// Whether path-MTU discovery is off for the route (`mtu lock`).
    #[serde(default)]
    pub locked: bool,
    /// The route as `ip route` takes it; `None`: it was not recorded.
    #[serde(rename = "words", default, skip_serializing_if = "Option::is_none")]
    pub route: Option<IpRoute>,
}

/// The smaller MTU of a destination, learned from an ICMP too-big message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteException {
    /// Address of the destination.
    pub destination: IpAddr,
    /// Index of the device.
    pub device: Option<u32>,
    /// The learned MTU, bytes.
    pub mtu: u32,
    /// Largest packet that probes showed to pass since then, bytes, where that is more than `mtu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<u32>,
}

/// A firewall rule that changes the MSS of TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MssClamp {
    /// Source of the rule: `nft`, `iptables` or `ip6tables`.
    pub from: String,
    /// The rule, as its program prints it.
    pub rule: String,
    /// The MSS that the rule sets, bytes; `None`: the one that the route carries.
    pub mss: Option<u32>,
}
