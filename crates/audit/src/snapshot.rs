//! A host as it was read: plain data, serialisable, with defaults for everything that a host may not have, so that a
//! recorded fixture holds only what it is about.

mod ovn;
mod ovs;
mod route;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use ovn::{Chassis, DhcpOptions, LogicalRouter, LogicalSwitch, Northbound, RouterPort};
pub use ovs::{Ovs, OvsBridge, OvsInterface};
pub use route::{EgressRoute, Neighbour, RouteWords};

/// Version of the document.
pub const VERSION: u32 = 1;

/// One host: its network namespaces and what lies in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStack {
    /// [`VERSION`].
    pub version: u32,
    /// What the host is called.
    pub host: String,
    /// The namespace that was asked for first, then those that devices of it lead to.
    pub namespaces: Vec<Namespace>,
    /// Open vSwitch, where it runs and may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ovs: Option<Ovs>,
    /// Processors that are online.
    #[serde(default)]
    pub cpus: u32,
    /// What could not be read, and why: nothing is concluded from it.
    #[serde(default)]
    pub unread: Vec<Unread>,
}

impl HostStack {
    /// A host of which nothing could be read.
    pub fn unread(host: &str, what: &str, why: &str) -> Self {
        Self {
            version: VERSION,
            host: host.to_owned(),
            unread: vec![Unread {
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
pub struct Unread {
    /// What.
    pub what: String,
    /// Why, and what would help.
    pub why: String,
}

/// How a command gets into a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enter {
    /// It is there already.
    #[default]
    Here,
    /// A name in /run/netns.
    Named(String),
    /// The namespace of a process.
    Process(u32),
}

impl Enter {
    /// A command as it is typed to have it run in the namespace.
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
    /// For people: `host`, a name, or a process.
    pub label: String,
    /// How to get in.
    #[serde(default)]
    pub enter: Enter,
    /// Inode of its file below /proc/PID/ns: on one machine the same namespace has the same, whoever looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Routes with an MTU of their own.
    #[serde(default)]
    pub route_mtus: Vec<RouteMtu>,
    /// What too-big messages left behind.
    #[serde(default)]
    pub exceptions: Vec<RouteException>,
    /// `net.` sysctls, by name without `net.`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Rules that change the MSS of TCP; `None`: could not be read.
    #[serde(default)]
    pub mss_clamps: Option<Vec<MssClamp>>,
    /// The device of the default route.
    #[serde(default)]
    pub default_device: Option<u32>,
}

impl Namespace {
    /// A device by its index.
    pub fn device(&self, index: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.index == index)
    }

    /// A sysctl that is a number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.sysctls.get(name)?.trim().parse().ok()
    }
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its index in its namespace.
    pub index: u32,
    /// `IFLA_INFO_KIND`: `veth`, `bridge`, `vxlan`, ...; empty for network cards and loopback.
    #[serde(default)]
    pub kind: String,
    /// IP MTU, bytes.
    pub mtu: u32,
    /// IPv6's own MTU on it (`net.ipv6.conf.DEV.mtu`), bytes, where it is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_mtu: Option<u32>,
    /// The largest MTU that its driver takes, bytes; 0: not told.
    #[serde(default)]
    pub max_mtu: u32,
    /// Switched on.
    #[serde(default = "yes")]
    pub up: bool,
    /// Whether it is a loopback device.
    #[serde(default)]
    pub loopback: bool,
    /// Whether hardware (or an emulation of it) is behind it.
    #[serde(default)]
    pub physical: bool,
    /// The bridge, bond or team that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<u32>,
    /// The device that it stands on, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<u32>,
    /// A veth's other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<VethPeer>,
    /// VLAN id of a VLAN device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Where it is a tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// Its addresses.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Features that it has, by the kernel's names, and whether they are in force.
    #[serde(default)]
    pub features: BTreeMap<String, Feature>,
    /// Queues, receive steering and rings.
    #[serde(default)]
    pub queues: Queues,
    /// Root queueing discipline.
    #[serde(default)]
    pub qdisc: String,
    /// Packets that the device dropped since it came up.
    #[serde(default)]
    pub drops: Drops,
}

const fn yes() -> bool {
    true
}

/// A veth's other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VethPeer {
    /// Position of its namespace in [`HostStack::namespaces`]; `None`: one that could not be read.
    pub namespace: Option<usize>,
    /// Its index there.
    pub index: u32,
}

/// One feature of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// In force.
    pub on: bool,
    /// Can be changed.
    #[serde(default = "yes")]
    pub changeable: bool,
}

/// How a device receives and sends with more than one core.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Receive queues.
    pub rx: u32,
    /// Send queues.
    pub tx: u32,
    /// Receive queues with a mask of cores that share their work (RPS).
    pub rps: u32,
    /// Send queues that are tied to cores (XPS).
    pub xps: u32,
    /// Receive descriptors: in use, and at most.
    pub rx_ring: Option<(u32, u32)>,
    /// Send descriptors: in use, and at most.
    pub tx_ring: Option<(u32, u32)>,
}

/// `IFLA_STATS64`, what was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Drops {
    /// By the receiving side.
    pub rx: u64,
    /// By the sending side.
    pub tx: u64,
    /// For want of descriptors.
    pub rx_missed: u64,
}

/// A tunnel device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tunnel {
    /// As `wirecost overhead` writes it: `vxlan`, `geneve:8`, `gre:key`; empty where its overhead is not known.
    pub stack: String,
    /// The other ends, and how packets to them leave.
    pub remotes: Vec<Remote>,
    /// Position of the namespace that its packets leave from, in [`HostStack::namespaces`]; `None`: the device's own. A
    /// tunnel's socket stays where the device was made, wherever that is moved (container overlays).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<usize>,
    /// Destination port of a UDP tunnel.
    pub port: u16,
    /// The first and the last source port that a UDP tunnel picks from; `None`: those of
    /// `net.ipv4.ip_local_port_range`.
    pub source_ports: Option<(u16, u16)>,
    /// Whether its packets carry an outer UDP checksum.
    pub udp_checksum: bool,
    /// Whether each packet tells its own other end (`external`): the device's MTU then says nothing.
    pub external: bool,
    /// Whether packets over IPv6 are sent, and taken, without a checksum.
    pub zero_checksum6: Option<(bool, bool)>,
}

/// How packets to a tunnel's other end leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// The other end.
    pub address: IpAddr,
    /// The device; `None`: there is no route.
    pub device: Option<u32>,
    /// The route's own MTU, bytes.
    #[serde(default)]
    pub route_mtu: Option<u32>,
}

/// A route with an MTU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteMtu {
    /// The destination, as `ip route` prints it.
    pub destination: String,
    /// Its device.
    pub device: Option<u32>,
    /// Bytes.
    pub mtu: u32,
    /// Whether path-MTU discovery is off for it (`mtu lock`).
    #[serde(default)]
    pub locked: bool,
    /// The route itself; `None`: it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<RouteWords>,
}

/// A destination's smaller MTU, learned from a too-big message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteException {
    /// To whom.
    pub destination: IpAddr,
    /// Through which device.
    pub device: Option<u32>,
    /// Bytes.
    pub mtu: u32,
    /// What packets showed to pass meanwhile, bytes, where that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<u32>,
}

/// A rule that changes the MSS of TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MssClamp {
    /// Where it was read: `nft` or `iptables`.
    pub from: String,
    /// The rule.
    pub rule: String,
    /// The size it sets, bytes; `None`: what the route carries.
    pub mss: Option<u32>,
}
