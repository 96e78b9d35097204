//! What stands in a file.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

/// A network, a fault in it, and what a check has to say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// What it is, and who gets into it.
    pub about: String,
    /// MTU of every wire's ends, bytes, where the wire says nothing else.
    #[serde(default = "ethernet")]
    pub mtu: u32,
    /// Veths.
    pub wires: Vec<Wire>,
    /// Two routers, and equal paths between them.
    pub equal_paths: Option<EqualPaths>,
    /// Hosts, guests, switches, routers, by name.
    pub namespaces: BTreeMap<String, Namespace>,
    /// What is done once everything is up: the fault, where it is none of sizes.
    #[serde(default)]
    pub fault: Vec<NamespaceCommand>,
    /// The arguments of `wirecost check`, as they are typed.
    pub check: Vec<String>,
    /// What it has to say.
    pub expect: Expect,
    /// Why a check does not say so yet. Where it does, the test fails, and this line goes.
    pub not_yet: Option<String>,
}

const fn ethernet() -> u32 {
    1500
}

/// A veth: two ends, each `NAMESPACE.DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// `a.eth0`.
    pub ends: [String; 2],
    /// Their MTUs, bytes.
    pub mtus: Option<[u32; 2]>,
}

/// Wires between two routers, over which flows are divided by a hash of addresses and ports: `m0` and so on, with
/// addresses 10.255.N.1 and 10.255.N.2.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualPaths {
    /// The two namespaces.
    pub between: [String; 2],
    /// How many wires.
    pub members: u8,
    /// The network behind each of the two.
    pub leading_to: [String; 2],
}

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Namespace {
    /// Nobody can look into it, as into a switch: an audit does not find it.
    pub hidden: bool,
    /// It forwards IPv4 and IPv6.
    pub forwards: bool,
    /// Bridges by name.
    pub bridges: BTreeMap<String, Bridge>,
    /// Tunnels by name.
    pub vxlans: BTreeMap<String, Vxlan>,
    /// Devices that not every kernel has, by name: the commands that make each, run by name before anything is up.
    pub devices: BTreeMap<String, Vec<String>>,
    /// Addresses with prefix, by device.
    pub addresses: BTreeMap<String, Vec<String>>,
    /// What `ip route add` takes.
    pub routes: Vec<String>,
}

/// A bridge.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Devices.
    pub ports: Vec<String>,
    /// Set by hand, bytes; else it follows the smallest port, as the kernel does it.
    pub mtu: Option<u32>,
}

/// A VXLAN device of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vxlan {
    /// Its network's number.
    pub vni: u32,
    /// This end.
    pub local: IpAddr,
    /// The other end.
    pub remote: IpAddr,
    /// Bytes. The kernel does not hold it against the underlay's.
    pub mtu: u32,
    /// Destination port.
    #[serde(default = "vxlan_port")]
    pub port: u16,
    /// What else `ip link add … type vxlan` takes.
    #[serde(default)]
    pub options: String,
}

const fn vxlan_port() -> u16 {
    4789
}

/// A command in a namespace, for `sh`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceCommand {
    /// The namespace.
    pub at: String,
    /// The command.
    pub run: String,
}

/// What a check has to say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The program's exit code.
    pub exit: i32,
    /// Each direction.
    pub paths: Vec<ExpectedPath>,
    /// These findings and no others.
    pub findings: Vec<ExpectedFinding>,
    /// Findings that may come beside them, as chance has it.
    #[serde(default)]
    pub by_chance: Vec<ExpectedFinding>,
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPath {
    /// The sender's namespace.
    pub from: String,
    /// The receiver's.
    pub to: String,
    /// What the narrowest flow carries, bytes; `none`, written `~`: nothing passes.
    pub mtu: Option<u32>,
    /// Why that one carries no more.
    pub kind: String,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFinding {
    /// As docs/check.md has it.
    pub id: String,
    /// The namespace that it is about.
    pub at: String,
    /// The device in it.
    pub device: Option<String>,
}
