//! OVN as its databases describe it: its hosts (ovn-sb(5)) and what was asked for (ovn-nb(5)), as far as an MTU depends on it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A host of the southbound database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chassis {
    /// Its name: `system-id` of its Open vSwitch.
    pub name: String,
    /// Its host name, by which it may be asked for too.
    pub hostname: String,
    /// Where others send their tunnels to.
    pub addresses: Vec<IpAddr>,
    /// Hosts have tunnels to each other where they share a zone, or both have none.
    pub transport_zones: Vec<String>,
    /// A host of another OVN (`is-remote`): only gateways have tunnels to it.
    pub elsewhere: bool,
}

/// The northbound database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Northbound {
    /// Where it was read, as `ovn-nbctl --db` takes it; `None`: where `ovn-nbctl` looks by itself.
    pub remote: Option<String>,
    /// Its switches.
    pub switches: Vec<LogicalSwitch>,
    /// Its routers.
    pub routers: Vec<LogicalRouter>,
    /// Hosts that it asks for by name or host name, and for what.
    pub wanted: BTreeMap<String, Vec<String>>,
}

/// A logical switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalSwitch {
    /// Its name.
    pub name: String,
    /// The physical network that it is joined to by a `localnet` port (`network_name`): its packets have no tunnel.
    pub physical: Option<String>,
    /// Its ports for guests.
    pub guests: Vec<String>,
    /// The router ports that it is joined to.
    pub routers: Vec<String>,
    /// The DHCPv4 options that its guests get.
    pub dhcp: Vec<DhcpOptions>,
}

/// A row of table `DHCP_Options`, for IPv4.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DhcpOptions {
    /// Its UUID, by which `ovn-nbctl` knows it.
    pub uuid: String,
    /// The subnet.
    pub cidr: String,
    /// Option 26, bytes; `None`: guests take 1500.
    pub mtu: Option<u32>,
}

/// A logical router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalRouter {
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<RouterPort>,
}

/// A port of a logical router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterPort {
    /// Its name.
    pub name: String,
    /// The port of another router that it leads to, where no switch is between.
    pub peer: Option<String>,
    /// Larger IP packets that leave through it are answered by ICMP, bytes.
    pub gateway_mtu: Option<u32>,
    /// Packets that match are not.
    pub gateway_mtu_bypass: Option<String>,
    /// The MTU in its router advertisements (`ipv6_ra_configs`), bytes.
    pub advertised_mtu: Option<u32>,
}
