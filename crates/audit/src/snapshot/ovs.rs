//! Open vSwitch as its database describes it (ovs-vswitchd.conf.db(5)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Chassis, Northbound, Remote};

/// Configuration of Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ovs {
    /// Version of Open vSwitch.
    pub version: String,
    /// The bridges.
    pub bridges: Vec<OvsBridge>,
    /// `external_ids` of table `Open_vSwitch`: OVN's encapsulation type and address among them.
    pub external_ids: BTreeMap<String, String>,
    /// The chassis in OVN's southbound database; `None`: it was not read.
    pub chassis: Option<Vec<Chassis>>,
    /// OVN's northbound database, where it can be read from this host.
    pub northbound: Option<Northbound>,
}

impl Ovs {
    /// Whether OVN controls this Open vSwitch: its tunnels then carry an option of 8 bytes.
    pub fn is_ovn(&self) -> bool {
        self.external_ids.contains_key("ovn-encap-type")
            || self.external_ids.contains_key("ovn-remote")
    }
}

/// One bridge of Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OvsBridge {
    /// Name of the bridge.
    pub name: String,
    /// Datapath type: `system` (kernel), `netdev` (userspace) or empty.
    pub datapath: String,
    /// The interfaces of the bridge's ports.
    pub interfaces: Vec<OvsInterface>,
}

/// One interface of Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OvsInterface {
    /// Name of the interface.
    pub name: String,
    /// Type: `internal`, `patch`, `vxlan`, `geneve`, `gre`, ...; empty for a device of the host.
    pub kind: String,
    /// MTU that Open vSwitch reports, bytes.
    pub mtu: Option<u32>,
    /// Requested MTU, bytes.
    pub mtu_request: Option<u32>,
    /// Options: `remote_ip`, `key`, `csum`, `df_default`, ...
    pub options: BTreeMap<String, String>,
    /// Name of the logical switch port that the interface implements (`external_ids:iface-id`).
    pub logical_port: Option<String>,
    /// The route of packets to `remote_ip`.
    pub remote: Option<Remote>,
}

impl OvsInterface {
    /// Whether the interface is a device of the host.
    pub fn is_device(&self) -> bool {
        matches!(self.kind.as_str(), "" | "system")
    }

    /// Whether the interface is a tunnel.
    pub fn is_tunnel(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "vxlan"
                | "geneve"
                | "gre"
                | "ip6gre"
                | "stt"
                | "lisp"
                | "erspan"
                | "ip6erspan"
                | "gtpu"
        )
    }
}
