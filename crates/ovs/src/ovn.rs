//! OVN, private to a lab: its databases and ovn-northd at one host ([`Central`]), an ovn-controller at each
//! ([`Controller`], started by [`crate::Switch`]).
//!
//! ```text
//! host a: ovsdb-server (northbound, southbound) ── ovn-northd
//!              │ a Unix socket, which host b reaches through host a's descriptor in /proc
//! each host:  ovn-controller ── ovsdb-server, ovs-vswitchd: br-int, guests' ports, tunnel to the other host
//! ```
//!
//! The files are where those of the switches are, and the daemons end as they do ([`crate`]). Guests are logical ports
//! with the numbers that the hosts know them by, so that both can say what is on the wire.

mod central;
mod controller;
mod logical;
mod programs;

use std::path::PathBuf;

use serde_json::Value;
use wirecost_model::plan::{Encapsulation, OuterDf};
use wirecost_model::switch::OvsDatapath;

use crate::config::{INTEGRATION_BRIDGE, SwitchSpec, UNDERLAY_BRIDGE};
use crate::database::map;

pub use central::{Central, try_central};
pub(crate) use controller::Controller;
pub use logical::{LogicalNetwork, LogicalPort, LogicalRouter, port_key, port_name};
pub use programs::OvnPrograms;

/// The underlay as a physical network of OVN's, where no tunnel leads to it (ovn-controller(8), `ovn-bridge-mappings`).
const PHYSICAL_NETWORK: &str = "underlay";

/// A host as OVN knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chassis {
    /// Its name in the southbound database.
    pub name: String,
    /// The socket of OVN's databases ([`Central::remote`]).
    pub remote: PathBuf,
    /// The logical ports of the guests, by number.
    pub ports: Vec<String>,
}

impl Chassis {
    /// What ovn-controller reads in table Open_vSwitch, column external_ids (ovn-controller(8)).
    pub(crate) fn settings(&self, wanted: &SwitchSpec, datapath: OvsDatapath) -> Value {
        let udp = wanted.encapsulation.udp();
        // It wants a tunnel to every other host, used or not.
        let kind = match wanted.encapsulation {
            Encapsulation::Vxlan(_) => "vxlan",
            _ => "geneve",
        };
        let flag = |on: Option<bool>| on.unwrap_or_default().to_string();
        let mut settings = vec![
            ("system-id", self.name.clone()),
            ("hostname", self.name.clone()),
            ("ovn-remote", format!("unix:{}", self.remote.display())),
            // A process that is stopped must not have the others work.
            ("ovn-remote-probe-interval", "0".to_owned()),
            ("ovn-monitor-all", "true".to_owned()),
            ("ovn-bridge", INTEGRATION_BRIDGE.to_owned()),
            ("ovn-bridge-datapath-type", datapath.kind().to_owned()),
            ("ovn-encap-type", kind.to_owned()),
            ("ovn-encap-ip", wanted.local.to_string()),
            ("ovn-encap-csum", flag(udp.map(|udp| udp.udp_checksum))),
            (
                "ovn-encap-df_default",
                flag(udp.map(|udp| udp.df == OuterDf::Set)),
            ),
        ];
        if udp.is_none() {
            let mapping = format!("{PHYSICAL_NETWORK}:{UNDERLAY_BRIDGE}");
            settings.push(("ovn-bridge-mappings", mapping));
        }
        map(settings)
    }
}
