//! Open vSwitch as its database describes it (ovs-vswitchd.conf.db(5)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Chassis, Northbound, Remote};

/// The switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ovs {
    /// Its version.
    pub version: String,
    /// Its bridges.
    pub bridges: Vec<OvsBridge>,
    /// `external_ids` of table `Open_vSwitch`: OVN's encapsulation type and address among them.
    pub external_ids: BTreeMap<String, String>,
    /// The hosts that OVN's southbound database has; `None` where it was not read.
    pub chassis: Option<Vec<Chassis>>,
    /// OVN's northbound database, where it can be read from this host.
    pub northbound: Option<Northbound>,
}

impl Ovs {
    /// Whether OVN drives it: its tunnels then carry an option of 8 bytes.
    pub fn is_ovn(&self) -> bool {
        self.external_ids.contains_key("ovn-encap-type")
            || self.external_ids.contains_key("ovn-remote")
    }
}

/// One bridge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OvsBridge {
    /// Its name.
    pub name: String,
    /// `system` (kernel), `netdev` (userspace) or empty.
    pub datapath: String,
    /// The interfaces of its ports.
    pub interfaces: Vec<OvsInterface>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OvsInterface {
    /// Its name.
    pub name: String,
    /// `internal`, `patch`, `vxlan`, `geneve`, `gre`, ...; empty for a device of the host.
    pub kind: String,
    /// Bytes, as the switch sees it.
    pub mtu: Option<u32>,
    /// Bytes, as it was asked for.
    pub mtu_request: Option<u32>,
    /// `remote_ip`, `key`, `csum`, `df_default`, ...
    pub options: BTreeMap<String, String>,
    /// The port of a logical switch that it is (`external_ids:iface-id`).
    pub logical_port: Option<String>,
    /// Where packets to `remote_ip` leave the host.
    pub remote: Option<Remote>,
}

impl OvsInterface {
    /// Whether it is a device of the host.
    pub fn is_device(&self) -> bool {
        matches!(self.kind.as_str(), "" | "system")
    }

    /// Whether it is a tunnel.
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
