//! OVN's databases as far as an MTU depends on them: chassis (ovn-sb(5)) and the logical network (ovn-nb(5)).

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A chassis (host) of the southbound database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chassis {
    /// Name of the chassis: `system-id` of its Open vSwitch.
    pub name: String,
    /// Host name, which the northbound database may use instead of the name.
    pub hostname: String,
    /// Encapsulation addresses: the remotes of other chassis' tunnels.
    pub addresses: Vec<IpAddr>,
    /// Transport zones. Two chassis have a tunnel where they share a zone, or where neither has one.
    pub transport_zones: Vec<String>,
    /// Whether the chassis belongs to another OVN (`is-remote`): only gateways have tunnels to it.
    pub elsewhere: bool,
}

/// The northbound database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Northbound {
    /// Address where the database was read, as `ovn-nbctl --db` takes it; `None`: the default of `ovn-nbctl`.
    pub remote: Option<String>,
    /// The logical switches.
    pub switches: Vec<LogicalSwitch>,
    /// The logical routers.
    pub routers: Vec<LogicalRouter>,
    /// Chassis that the database asks for, by name or host name, each with what it is asked for.
    #[serde(rename = "wanted")]
    pub requested_chassis: BTreeMap<String, Vec<String>>,
}

/// A logical switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalSwitch {
    /// Name of the switch.
    pub name: String,
    /// The physical network that the switch is joined to by a `localnet` port (`network_name`): its packets use no
    /// tunnel.
    pub physical: Option<String>,
    /// Names of the ports for guests.
    pub guests: Vec<String>,
    /// Names of the router ports that the switch is joined to.
    pub routers: Vec<String>,
    /// The DHCPv4 options of the switch's guests.
    pub dhcp: Vec<DhcpOptions>,
}

/// A row of table `DHCP_Options`, for IPv4.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DhcpOptions {
    /// UUID of the row, as `ovn-nbctl` takes it.
    pub uuid: String,
    /// The subnet, as a prefix.
    pub cidr: String,
    /// MTU (DHCP option 26), bytes; `None`: guests take 1500.
    pub mtu: Option<u32>,
}

/// A logical router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalRouter {
    /// Name of the router.
    pub name: String,
    /// Ports of the router.
    pub ports: Vec<RouterPort>,
}

/// A port of a logical router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterPort {
    /// Name of the port.
    pub name: String,
    /// Name of another router's port that this one is joined to without a switch.
    pub peer: Option<String>,
    /// Size above which the router answers leaving IP packets with an ICMP error, bytes.
    pub gateway_mtu: Option<u32>,
    /// Match of packets that are exempt from `gateway_mtu`.
    pub gateway_mtu_bypass: Option<String>,
    /// MTU in the port's router advertisements (`ipv6_ra_configs`), bytes.
    pub advertised_mtu: Option<u32>,
}
