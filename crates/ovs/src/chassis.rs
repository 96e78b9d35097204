//! A host of OVN (chassis), and the settings that its ovn-controller reads.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;
use wirecost_model::plan::{Encapsulation, OuterDf};
use wirecost_model::switch::OvsDatapath;

use crate::database::map;
use crate::names::{INTEGRATION_BRIDGE, PHYSICAL_NETWORK, UNDERLAY_BRIDGE};

/// A host as OVN knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chassis {
    /// Name of the host in the southbound database.
    pub name: String,
    /// Path of the socket of OVN's databases (`Central::remote`).
    pub remote: PathBuf,
    /// Names of the guests' logical ports, by the guest's number.
    pub ports: Vec<String>,
}

impl Chassis {
    /// Settings that ovn-controller reads in table Open_vSwitch, column external_ids (ovn-controller(8)).
    pub(crate) fn settings(
        &self,
        encapsulation: &Encapsulation,
        local: IpAddr,
        datapath: OvsDatapath,
    ) -> Value {
        let udp = encapsulation.udp();
        // ovn-controller wants a tunnel to every other host, used or not.
        let kind = match encapsulation {
            Encapsulation::Vxlan(_) => "vxlan",
            _ => "geneve",
        };
        let flag = |on: Option<bool>| on.unwrap_or_default().to_string();
        let mut settings = vec![
            ("system-id", self.name.clone()),
            ("hostname", self.name.clone()),
            ("ovn-remote", format!("unix:{}", self.remote.display())),
            // Without probes, a process that is stopped causes no work in the others.
            ("ovn-remote-probe-interval", "0".to_owned()),
            ("ovn-monitor-all", "true".to_owned()),
            ("ovn-bridge", INTEGRATION_BRIDGE.to_owned()),
            ("ovn-bridge-datapath-type", datapath.kind().to_owned()),
            ("ovn-encap-type", kind.to_owned()),
            ("ovn-encap-ip", local.to_string()),
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
