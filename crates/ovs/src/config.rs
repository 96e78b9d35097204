//! The wanted switch as rows of its database (ovs-vswitchd.conf.db(5)).
//!
//! ```text
//! guest0 ─┐                                  guest0 ─┐
//! guest1 ─┤ br-int ── tunnel0                guest1 ─┤ br-int ── underlay
//!           br-underlay ── underlay          (no tunnel; and the kernel datapath's tunnels need no br-underlay)
//! ```
//!
//! The userspace datapath routes its tunnels by the addresses and routes of its own bridges: `br-underlay` has the
//! host's address on the underlay, and the underlay's device as a port.

use std::net::IpAddr;

use serde_json::{Value, json};
use wirecost_model::plan::{Encapsulation, OuterDf, UdpTunnel};
use wirecost_model::switch::OvsDatapath;

use crate::chassis::Chassis;
use crate::database::{Operation, map, named, set};
use crate::error::Error;
use crate::names::{INTEGRATION_BRIDGE, UNDERLAY_BRIDGE};

/// Name of the tunnel's port.
pub(crate) const TUNNEL_PORT: &str = "tunnel0";
/// TTL of outer headers: Open vSwitch's default.
const TTL: &str = "64";

/// The configuration of a host's switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSpec {
    /// How frames are encapsulated.
    pub encapsulation: Encapsulation,
    /// Name of the device towards the other host.
    pub underlay: String,
    /// MTU of that device, bytes.
    pub underlay_mtu: u32,
    /// Names of the host's ends of the guests' devices.
    pub guests: Vec<String>,
    /// This host's address on the underlay.
    pub local: IpAddr,
    /// The other host's address on the underlay.
    pub peer: IpAddr,
    /// Hardware address to which the underlay sends the packets for `local`.
    pub mac: [u8; 6],
    /// The host as OVN knows it, where OVN programs the switch.
    pub ovn: Option<Chassis>,
}

impl SwitchSpec {
    /// Whether the underlay's device is a port of [`UNDERLAY_BRIDGE`] instead of the guests' bridge: where that has the
    /// host's address, and where OVN programs the guests' bridge and no tunnel is used.
    fn separates_underlay(&self, datapath: OvsDatapath) -> bool {
        let without_tunnel = self.ovn.is_some() && !self.encapsulation.is_tunnel();
        self.has_underlay_bridge(datapath) || without_tunnel
    }

    /// Whether [`UNDERLAY_BRIDGE`] has the host's address on the underlay.
    pub fn has_underlay_bridge(&self, datapath: OvsDatapath) -> bool {
        self.encapsulation.is_tunnel() && datapath == OvsDatapath::Userspace
    }

    /// Name of the kernel's tunnel device, where the kernel datapath creates one (`lib/dpif-netlink-rtnl.c`).
    pub fn tunnel_device(&self, datapath: OvsDatapath) -> Option<String> {
        let prefix = match (&self.encapsulation, datapath) {
            (Encapsulation::Vxlan(_), OvsDatapath::Kernel) => "vxlan_sys_",
            (Encapsulation::Geneve(_), OvsDatapath::Kernel) => "genev_sys_",
            _ => return None,
        };
        let port = self.encapsulation.udp()?.port;
        Some(format!("{prefix}{port}"))
    }

    /// Checks that this datapath can send what is wanted.
    ///
    /// # Errors
    /// [`Error::Cannot`] with the reason and what to write instead.
    pub(crate) fn check(&self, datapath: OvsDatapath) -> Result<(), Error> {
        let Some(udp) = self.encapsulation.udp() else {
            return Ok(());
        };
        let reason = match datapath {
            // lib/netdev-native-tnl.c, `udp_build_header`.
            OvsDatapath::Userspace if self.peer.is_ipv6() && !udp.udp_checksum => {
                "Open vSwitch's userspace datapath always computes the outer UDP checksum over IPv6: write \
                 `udp_checksum: on`"
            }
            OvsDatapath::Kernel if udp.source_ports.is_some() => {
                "Open vSwitch's kernel datapath takes no range of outer source ports: leave `source_ports` out"
            }
            _ if udp.df == OuterDf::Inherit => {
                "Open vSwitch sets the outer don't-fragment bit or leaves it, and does not inherit it"
            }
            _ => return Ok(()),
        };
        Err(Error::Cannot(reason.to_owned()))
    }
}

/// The transaction that configures the switch in an empty database.
pub(crate) fn operations(wanted: &SwitchSpec, datapath: OvsDatapath) -> Vec<Operation> {
    let mut rows = Rows::default();
    let encapsulation = &wanted.encapsulation;
    let tag = access_tag(encapsulation);
    let mut ports = vec![rows.internal(INTEGRATION_BRIDGE, None)];
    let chassis = wanted.ovn.as_ref();
    for (number, guest) in wanted.guests.iter().enumerate() {
        let mut row = interface(guest);
        if let Some(port) = chassis.and_then(|chassis| chassis.ports.get(number)) {
            row["external_ids"] = map([("iface-id", port.clone())]);
        }
        // OVN adds the tag where frames leave for the underlay.
        let access = tag.filter(|_| chassis.is_none()).map(Membership::Access);
        ports.push(rows.port(guest, &row, access));
    }
    let trunk = tag.map(Membership::Trunk);
    if chassis.is_some() {
        // ovn-controller adds tunnels and patch ports.
    } else if let Some(udp) = encapsulation.udp() {
        let row = tunnel(TUNNEL_PORT, wanted, udp, datapath);
        ports.push(rows.port(TUNNEL_PORT, &row, trunk));
    } else {
        let row = interface(&wanted.underlay);
        ports.push(rows.port(&wanted.underlay, &row, trunk));
    }
    // Without OpenFlow rules OVN's bridge forwards nothing.
    let fail_mode = chassis.map_or("standalone", |_| "secure");
    rows.bridge((INTEGRATION_BRIDGE, fail_mode), datapath, ports, None);
    if wanted.separates_underlay(datapath) {
        let own = rows.internal(UNDERLAY_BRIDGE, Some(wanted.underlay_mtu));
        let underlay = rows.port(&wanted.underlay, &interface(&wanted.underlay), None);
        let mac = mac_text(wanted.mac);
        let bridge = (UNDERLAY_BRIDGE, "standalone");
        rows.bridge(bridge, datapath, vec![own, underlay], Some(mac));
    }
    let of_ovn = chassis.map(|chassis| chassis.settings(encapsulation, wanted.local, datapath));
    rows.finish(of_ovn)
}

/// VLAN id of the guests, on the line or in the tunnel.
pub(crate) fn access_tag(encapsulation: &Encapsulation) -> Option<u16> {
    match encapsulation {
        Encapsulation::Vlan(vlan) => Some(vlan.id),
        other => other.udp().and_then(|udp| udp.inner_vlan),
    }
}

pub(crate) fn interface(name: &str) -> Value {
    json!({"name": name, "type": ""})
}

pub(crate) fn tunnel(
    name: &str,
    wanted: &SwitchSpec,
    udp: UdpTunnel,
    datapath: OvsDatapath,
) -> Value {
    // Open vSwitch's interface types have the names of the kinds.
    let kind = wanted.encapsulation.kind().word;
    let mut options = vec![
        ("remote_ip", wanted.peer.to_string()),
        ("key", udp.vni.to_string()),
        ("dst_port", udp.port.to_string()),
        ("csum", udp.udp_checksum.to_string()),
        ("df_default", (udp.df == OuterDf::Set).to_string()),
        ("ttl", TTL.to_owned()),
    ];
    // In userspace the local address is that of the bridge that the route leads through.
    if datapath == OvsDatapath::Kernel {
        options.push(("local_ip", wanted.local.to_string()));
    }
    json!({"name": name, "type": kind, "options": map(options)})
}

/// Membership of a port in a VLAN.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Membership {
    /// Frames get the VLAN's tag when they come in, and lose it when they leave.
    Access(u16),
    /// Only frames of the VLAN pass, with their tag.
    Trunk(u16),
}

impl Membership {
    /// Writes a membership to a port's row.
    pub(crate) fn put(of: Option<Self>, port: &mut Value) {
        match of {
            None => {}
            Some(Self::Access(tag)) => {
                port["vlan_mode"] = "access".into();
                port["tag"] = tag.into();
            }
            Some(Self::Trunk(tag)) => {
                port["vlan_mode"] = "trunk".into();
                port["trunks"] = tag.into();
            }
        }
    }
}

/// Rows of one transaction, each named by its number.
#[derive(Debug, Default)]
struct Rows {
    operations: Vec<Operation>,
    bridges: Vec<Value>,
}

/// Name of the QoS row that makes the switch leave a port's queueing as it is: by default it manages the queueing of
/// every port, and would remove the rate limit of the underlay (ovs-vswitchd.conf.db(5), table QoS).
const NO_QUEUES: &str = "queues";

impl Rows {
    fn add(&mut self, table: &str, row: &Value) -> Value {
        let id = format!("row{}", self.operations.len());
        self.operations.push(Operation::insert(table, &id, row));
        named(&id)
    }

    /// Adds a bridge's own device; `mtu` in bytes.
    fn internal(&mut self, name: &str, mtu: Option<u32>) -> Value {
        let mut row = json!({"name": name, "type": "internal"});
        if let Some(mtu) = mtu {
            row["mtu_request"] = mtu.into();
        }
        self.port(name, &row, None)
    }

    fn port(&mut self, name: &str, interface: &Value, of: Option<Membership>) -> Value {
        let interface = self.add("Interface", interface);
        let mut row = json!({"name": name, "interfaces": interface, "qos": named(NO_QUEUES)});
        Membership::put(of, &mut row);
        self.add("Port", &row)
    }

    fn bridge(
        &mut self,
        (name, fail_mode): (&str, &str),
        datapath: OvsDatapath,
        ports: Vec<Value>,
        mac: Option<String>,
    ) {
        let mut row = json!({
            "name": name,
            "datapath_type": datapath.kind(),
            "fail_mode": fail_mode,
            "ports": set(ports),
        });
        if let Some(mac) = mac {
            row["other_config"] = map([("hwaddr", mac)]);
        }
        let bridge = self.add("Bridge", &row);
        self.bridges.push(bridge);
    }

    fn finish(mut self, external_ids: Option<Value>) -> Vec<Operation> {
        let queues = json!({"type": "linux-noop"});
        self.operations
            .push(Operation::insert("QoS", NO_QUEUES, &queues));
        let mut root = json!({"bridges": set(self.bridges), "next_cfg": 1});
        if let Some(external_ids) = external_ids {
            root["external_ids"] = external_ids;
        }
        self.operations
            .push(Operation::insert("Open_vSwitch", "root", &root));
        self.operations
    }
}

pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use wirecost_model::plan::{Geneve, Vlan, Vxlan};

    use super::*;

    fn wanted(encapsulation: Encapsulation) -> SwitchSpec {
        SwitchSpec {
            encapsulation,
            underlay: "underlay".to_owned(),
            underlay_mtu: 9000,
            guests: vec!["guest0".to_owned(), "guest1".to_owned()],
            local: "198.18.0.1".parse().expect("an address"),
            peer: "198.18.0.2".parse().expect("an address"),
            mac: [2, 0, 0, 0, 0, 1],
            ovn: None,
        }
    }

    /// One line a row: the table and the row.
    fn told(wanted: &SwitchSpec, datapath: OvsDatapath) -> String {
        let lines = operations(wanted, datapath).into_iter().map(|operation| {
            let body = operation.body;
            let (table, id) = (&body["table"], &body["uuid-name"]);
            format!("{} {}: {}", table, id, body["row"]).replace('"', "")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_tunnel_in_userspace_has_a_bridge_for_the_underlay() {
        let wanted = wanted(Encapsulation::Vxlan(Vxlan {
            df: OuterDf::Set,
            udp_checksum: true,
            ..Vxlan::default()
        }));
        assert!(wanted.has_underlay_bridge(OvsDatapath::Userspace));
        assert_eq!(wanted.tunnel_device(OvsDatapath::Userspace), None);
        insta::assert_snapshot!(told(&wanted, OvsDatapath::Userspace));
    }

    #[test]
    fn a_tunnel_in_the_kernel_has_none_and_a_device() {
        let wanted = wanted(Encapsulation::Geneve(Geneve {
            inner_vlan: Some(100),
            ..Geneve::default()
        }));
        assert!(!wanted.has_underlay_bridge(OvsDatapath::Kernel));
        let device = wanted.tunnel_device(OvsDatapath::Kernel);
        assert_eq!(device.as_deref(), Some("genev_sys_6081"));
        insta::assert_snapshot!(told(&wanted, OvsDatapath::Kernel));
    }

    #[test]
    fn a_vlan_is_a_tag_at_the_guests_and_a_trunk_at_the_underlay() {
        let wanted = wanted(Encapsulation::Vlan(Vlan { id: 7 }));
        insta::assert_snapshot!(told(&wanted, OvsDatapath::Userspace));
    }

    fn by_ovn(encapsulation: Encapsulation) -> SwitchSpec {
        SwitchSpec {
            ovn: Some(Chassis {
                name: "a".to_owned(),
                remote: "/proc/12/fd/9/ovn.sock".into(),
                ports: vec!["a0".to_owned(), "a1".to_owned()],
            }),
            ..wanted(encapsulation)
        }
    }

    #[test]
    fn ovn_has_the_guests_bridge_to_itself_and_makes_the_tunnel() {
        let wanted = by_ovn(Encapsulation::Geneve(Geneve {
            udp_checksum: true,
            ..Geneve::default()
        }));
        insta::assert_snapshot!(told(&wanted, OvsDatapath::Userspace));
    }

    #[test]
    fn without_a_tunnel_ovn_has_a_bridge_to_the_underlay_by_either_datapath() {
        let wanted = by_ovn(Encapsulation::Vlan(Vlan { id: 7 }));
        assert!(!wanted.has_underlay_bridge(OvsDatapath::Kernel));
        insta::assert_snapshot!(told(&wanted, OvsDatapath::Kernel));
    }

    #[test]
    fn what_a_datapath_cannot_is_said_with_what_to_write() {
        let vxlan = |change: fn(&mut Vxlan)| {
            let mut vxlan = Vxlan::default();
            change(&mut vxlan);
            wanted(Encapsulation::Vxlan(vxlan))
        };
        let said =
            |wanted: &SwitchSpec, datapath| wanted.check(datapath).map_err(|e| e.to_string());
        let mut over_ipv6 = vxlan(|_| {});
        over_ipv6.peer = "2001:2:0:18::2".parse().expect("an address");
        let error = said(&over_ipv6, OvsDatapath::Userspace).expect_err("always computed");
        assert!(error.contains("write `udp_checksum: on`"), "{error}");
        assert_eq!(said(&over_ipv6, OvsDatapath::Kernel), Ok(()));
        let ports = vxlan(|vxlan| {
            vxlan.source_ports = Some(wirecost_model::plan::SourcePorts {
                first: 1000,
                last: 2000,
            });
        });
        assert_eq!(said(&ports, OvsDatapath::Userspace), Ok(()));
        assert!(said(&ports, OvsDatapath::Kernel).is_err());
        let inherits = vxlan(|vxlan| vxlan.df = OuterDf::Inherit);
        assert!(said(&inherits, OvsDatapath::Userspace).is_err());
    }
}
