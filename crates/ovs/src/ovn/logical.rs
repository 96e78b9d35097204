//! The logical network as rows of OVN's northbound database (ovn-nb(5)).
//!
//! ```text
//! switched   guests a ─┐                        routed   guests a ── switch-a ┐
//!            guests b ─┤ switch                          guests b ── switch-b ┤ router
//!            underlay ─┘ (without a tunnel)
//! ```

use std::net::IpAddr;

use serde_json::{Value, json};
use wirecost_model::logical::Acl;

use crate::config::mac_text;
use crate::database::{Operation, map, named, set};
use crate::names::PHYSICAL_NETWORK;

/// The wanted logical network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalNetwork {
    /// Logical ports of the guests of host a and of host b, by the guest's number.
    pub guests: [Vec<LogicalPort>; 2],
    /// Tunnel key of the first logical switch, in Geneve its VNI; the second switch and the router have the next keys.
    pub key: u32,
    /// The router's ports in the subnets of host a's and of host b's guests, where it routes between them.
    pub router: Option<[LogicalRouterPort; 2]>,
    /// Access control list for the guests' packets.
    pub acl: Acl,
    /// Whether the underlay is a port of the switch, where no tunnel is used.
    pub to_underlay: bool,
    /// VLAN tag of the frames on the underlay in that case.
    pub tag: Option<u16>,
}

/// Logical port of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalPort {
    /// Name of the port in both databases, and `iface-id` of its interface.
    pub name: String,
    /// Tunnel key of the port, 1 to 32767 (2047 in VXLAN).
    pub key: u32,
    /// Hardware address of the guest.
    pub mac: [u8; 6],
    /// IP address of the guest.
    pub address: IpAddr,
}

/// A port of the logical router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalRouterPort {
    /// Hardware address of the port.
    pub mac: [u8; 6],
    /// IP address of the port, with the length of the subnet's prefix in bits.
    pub network: (IpAddr, u8),
}

/// Name in OVN of the port of a guest of host `host`, by the guest's number.
pub fn port_name(host: &str, number: usize) -> String {
    format!("{host}-guest{number}")
}

/// Tunnel key of the port of a guest of the first (0) or second (1) host, by the guest's number: odd for the first
/// host.
pub const fn port_key(host: u32, number: u32) -> u32 {
    2 * number + host + 1
}

/// Priority of rules that allow; those that drop have one less (as in Neutron).
const ALLOWS: u32 = 1002;
const GROUP: &str = "guests";

/// The transaction that creates the network in an empty database.
pub(super) fn operations(wanted: &LogicalNetwork) -> Vec<Operation> {
    let mut rows = Rows::default();
    match &wanted.router {
        None => {
            let guests: Vec<&LogicalPort> = wanted.guests.iter().flatten().collect();
            let mut ports = rows.guests(&guests);
            if wanted.to_underlay {
                ports.push(rows.underlay(wanted.tag));
            }
            rows.switch("switch", wanted.key, ports);
        }
        Some(ends) => {
            let mut of_router = Vec::new();
            for ((host, key), (guests, end)) in [("a", wanted.key), ("b", wanted.key + 1)]
                .into_iter()
                .zip(wanted.guests.iter().zip(ends))
            {
                let mut ports = rows.guests(&guests.iter().collect::<Vec<_>>());
                ports.push(rows.router_side(host));
                rows.switch(&format!("switch-{host}"), key, ports);
                of_router.push(rows.router_port(host, end));
            }
            let router = json!({
                "name": "router", "ports": set(of_router), "options": requested(wanted.key + 2),
            });
            rows.add("Logical_Router", &router);
        }
    }
    if wanted.acl == Acl::AllowRelated {
        rows.security_group();
    }
    rows.add("NB_Global", &json!({"name": "wirecost"}));
    rows.operations
}

fn requested(key: u32) -> Value {
    map([("requested-tnl-key", key.to_string())])
}

fn router_port_name(host: &str) -> String {
    format!("router-{host}")
}

/// Rows of one transaction, each named by its number.
#[derive(Debug, Default)]
struct Rows {
    operations: Vec<Operation>,
    /// References to the guests' ports.
    guests: Vec<Value>,
}

impl Rows {
    fn add(&mut self, table: &str, row: &Value) -> Value {
        let id = format!("row{}", self.operations.len());
        self.operations.push(Operation::insert(table, &id, row));
        named(&id)
    }

    fn guests(&mut self, guests: &[&LogicalPort]) -> Vec<Value> {
        let ports: Vec<Value> = guests
            .iter()
            .map(|guest| {
                let addresses = format!("{} {}", mac_text(guest.mac), guest.address);
                let row = json!({
                    "name": guest.name, "addresses": addresses, "options": requested(guest.key),
                });
                self.add("Logical_Switch_Port", &row)
            })
            .collect();
        self.guests.extend(ports.iter().cloned());
        ports
    }

    /// Adds the switch's port to the underlay.
    fn underlay(&mut self, tag: Option<u16>) -> Value {
        let mut row = json!({
            "name": "underlay", "type": "localnet", "addresses": "unknown",
            "options": map([("network_name", PHYSICAL_NETWORK.to_owned())]),
        });
        if let Some(tag) = tag {
            row["tag"] = tag.into();
        }
        self.add("Logical_Switch_Port", &row)
    }

    fn router_side(&mut self, host: &str) -> Value {
        let port = router_port_name(host);
        let row = json!({
            "name": format!("switch-{host}-router"), "type": "router", "addresses": "router",
            "options": map([("router-port", port)]),
        });
        self.add("Logical_Switch_Port", &row)
    }

    fn router_port(&mut self, host: &str, end: &LogicalRouterPort) -> Value {
        let (address, length) = end.network;
        let row = json!({
            "name": router_port_name(host), "mac": mac_text(end.mac), "networks": format!("{address}/{length}"),
        });
        self.add("Logical_Router_Port", &row)
    }

    fn switch(&mut self, name: &str, key: u32, ports: Vec<Value>) {
        let row = json!({"name": name, "ports": set(ports), "other_config": requested(key)});
        self.add("Logical_Switch", &row);
    }

    /// Adds rules by which guests may send, and only guests may send to them.
    fn security_group(&mut self) {
        let mut rules = Vec::new();
        for (direction, port) in [("from-lport", "inport"), ("to-lport", "outport")] {
            let ip = format!("{port} == @{GROUP} && ip");
            let from_guests = match direction {
                // Addresses of the group's ports (ovn-nb(5), table Port_Group).
                "to-lport" => {
                    format!("{ip} && (ip4.src == ${GROUP}_ip4 || ip6.src == ${GROUP}_ip6)")
                }
                _ => ip.clone(),
            };
            for (action, condition, priority) in [
                ("allow-related", from_guests, ALLOWS),
                ("drop", ip, ALLOWS - 1),
            ] {
                let row = json!({
                    "direction": direction, "match": condition, "action": action, "priority": priority,
                });
                rules.push(self.add("ACL", &row));
            }
        }
        let group = json!({
            "name": GROUP, "ports": set(self.guests.clone()), "acls": set(rules),
        });
        self.add("Port_Group", &group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(host: u32, number: u32, address: &str) -> LogicalPort {
        let name = port_name(["a", "b"][host as usize], number as usize);
        LogicalPort {
            name,
            key: port_key(host, number),
            mac: [2, 0, 0, 1, number as u8, host as u8 + 1],
            address: address.parse().expect("an address"),
        }
    }

    fn switched() -> LogicalNetwork {
        LogicalNetwork {
            guests: [
                vec![guest(0, 0, "198.19.0.1"), guest(0, 1, "198.19.0.3")],
                vec![guest(1, 0, "198.19.0.2"), guest(1, 1, "198.19.0.4")],
            ],
            key: 42,
            router: None,
            acl: Acl::None,
            to_underlay: false,
            tag: None,
        }
    }

    fn told(wanted: &LogicalNetwork) -> String {
        let lines = operations(wanted).into_iter().map(|operation| {
            let body = operation.body;
            let (table, id) = (&body["table"], &body["uuid-name"]);
            format!("{} {}: {}", table, id, body["row"]).replace('"', "")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn guests_are_ports_of_one_switch_with_the_numbers_of_the_imitated_option() {
        let wanted = switched();
        let keys = wanted
            .guests
            .iter()
            .map(|of| of.iter().map(|one| one.key).collect::<Vec<_>>());
        assert_eq!(keys.collect::<Vec<_>>(), [[1, 3], [2, 4]]);
        insta::assert_snapshot!(told(&wanted));
    }

    #[test]
    fn without_a_tunnel_the_underlay_is_a_port() {
        let wanted = LogicalNetwork {
            to_underlay: true,
            tag: Some(7),
            guests: [Vec::new(), Vec::new()],
            ..switched()
        };
        insta::assert_snapshot!(told(&wanted));
    }

    #[test]
    fn a_router_is_between_two_switches_and_rules_are_of_all_guests() {
        let end = |mac, address: &str| LogicalRouterPort {
            mac: [2, 0, 0, 3, 0, mac],
            network: (address.parse().expect("an address"), 24),
        };
        let wanted = LogicalNetwork {
            guests: [
                vec![guest(0, 0, "198.19.1.1")],
                vec![guest(1, 0, "198.19.2.1")],
            ],
            router: Some([end(1, "198.19.1.254"), end(2, "198.19.2.254")]),
            acl: Acl::AllowRelated,
            ..switched()
        };
        insta::assert_snapshot!(told(&wanted));
    }
}
