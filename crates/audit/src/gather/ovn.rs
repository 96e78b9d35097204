//! OVN's databases: the southbound one at `ovn-remote`, the northbound one where it can be reached from this host.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::Value;

use super::ovsdb::{ask_at, map, rows, select, unexpected_reply, uuid, uuids};
use crate::snapshot::{
    Chassis, DhcpOptions, LogicalRouter, LogicalSwitch, Northbound, Ovs, ReadFailure, RouterPort,
};

/// Directories where `ovn-nbctl` looks for the northbound database by default (ovn-nbctl(8), `OVN_NB_DB`).
const USUAL: [&str; 2] = ["/run/ovn", "/var/run/ovn"];
const SOCKET: &str = "ovnnb_db.sock";

/// Reads both databases; adds to `unread` what could not be read.
pub(super) fn read(ovs: &mut Ovs, unread: &mut Vec<ReadFailure>) {
    let remote = ovs.external_ids.get("ovn-remote").cloned();
    if let Some(remote) = &remote {
        match chassis(remote) {
            Ok(hosts) => ovs.chassis = Some(hosts),
            Err(error) => unread.push(ReadFailure {
                what: format!("OVN's southbound database ({remote})"),
                why: reason(&error),
            }),
        }
    }
    match northbound(remote.as_deref()) {
        Ok(known) => ovs.northbound = Some(known),
        Err(why) => unread.push(ReadFailure {
            what: "OVN's northbound database (DHCP options, MTUs of routers)".into(),
            why,
        }),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Unsupported => "it is reached over TLS only".into(),
        _ => error.to_string(),
    }
}

/// The chassis in the southbound database.
fn chassis(remote: &str) -> io::Result<Vec<Chassis>> {
    let selects = [
        select(
            "Chassis",
            &[
                "name",
                "hostname",
                "encaps",
                "transport_zones",
                "other_config",
            ],
        ),
        select("Encap", &["_uuid", "ip"]),
    ];
    let result = ask_at(remote, "OVN_Southbound", &selects)?;
    hosts(&result).ok_or_else(unexpected_reply)
}

fn hosts(result: &Value) -> Option<Vec<Chassis>> {
    let addresses: BTreeMap<&str, _> = rows(result, 1)?
        .iter()
        .filter_map(|row| Some((uuid(&row["_uuid"])?, row["ip"].as_str()?.parse().ok()?)))
        .collect();
    let hosts = rows(result, 0)?.iter().map(|row| Chassis {
        name: text(&row["name"]),
        hostname: text(&row["hostname"]),
        addresses: uuids(&row["encaps"])
            .into_iter()
            .filter_map(|encap| addresses.get(encap).copied())
            .collect(),
        transport_zones: strings(&row["transport_zones"]),
        elsewhere: map(&row["other_config"])
            .get("is-remote")
            .is_some_and(|on| on == "true"),
    });
    Some(hosts.collect())
}

/// Addresses where the northbound database may be, each with whether `ovn-nbctl` needs it as `--db`: the one in
/// `OVN_NB_DB` alone, else the default socket and the server of the southbound database.
fn places(southbound: Option<&str>) -> Vec<(String, bool)> {
    if let Ok(said) = std::env::var("OVN_NB_DB") {
        return vec![(said, true)];
    }
    let own = std::env::var("OVN_RUNDIR");
    let usual = own.as_deref().into_iter().chain(USUAL);
    let usual = usual.map(|directory| Path::new(directory).join(SOCKET));
    let mut found: Vec<_> = usual
        .filter(|socket| socket.exists())
        .map(|socket| (format!("unix:{}", socket.display()), false))
        .take(1)
        .collect();
    found.extend(southbound.map(|remote| (remote.to_owned(), true)));
    found
}

/// Reads the northbound database. The error says why it could not be read.
fn northbound(southbound: Option<&str>) -> Result<Northbound, String> {
    let mut why = format!(
        "{}/{SOCKET} is not on this host; check the host that has it, or set OVN_NB_DB to its unix: or tcp: address",
        USUAL[0]
    );
    for (remote, say) in places(southbound) {
        match ask_at(&remote, "OVN_Northbound", &selects()) {
            Ok(result) => {
                // A server without this database answers with an error instead of rows.
                if let Some(mut known) = logical(&result) {
                    known.remote = say.then_some(remote);
                    return Ok(known);
                }
            }
            Err(error) if southbound != Some(remote.as_str()) => {
                why = format!("{remote}: {}", reason(&error));
            }
            Err(_) => (),
        }
    }
    Err(why)
}

fn selects() -> [Value; 7] {
    [
        select("Logical_Switch", &["name", "ports"]),
        select(
            "Logical_Switch_Port",
            &["_uuid", "name", "type", "options", "dhcpv4_options"],
        ),
        select("DHCP_Options", &["_uuid", "cidr", "options"]),
        select("Logical_Router", &["name", "ports"]),
        select(
            "Logical_Router_Port",
            &[
                "_uuid",
                "name",
                "peer",
                "options",
                "ipv6_ra_configs",
                "gateway_chassis",
            ],
        ),
        select("Gateway_Chassis", &["_uuid", "chassis_name"]),
        select("HA_Chassis", &["chassis_name"]),
    ]
}

/// Builds the northbound database from the answers to [`selects`].
fn logical(result: &Value) -> Option<Northbound> {
    let by_uuid = |at| -> Option<BTreeMap<&str, &Value>> {
        let rows = rows(result, at)?.iter();
        Some(
            rows.filter_map(|row| Some((uuid(&row["_uuid"])?, row)))
                .collect(),
        )
    };
    let (ports, dhcp) = (by_uuid(1)?, by_uuid(2)?);
    let (router_ports, gateways) = (by_uuid(4)?, by_uuid(5)?);
    let mut requested_chassis: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut want = |host: &str, what: String| {
        if !host.is_empty() {
            requested_chassis
                .entry(host.to_owned())
                .or_default()
                .push(what);
        }
    };
    for port in ports.values() {
        let options = map(&port["options"]);
        let requested = options.get("requested-chassis").map_or("", String::as_str);
        for host in requested.split(',') {
            want(host.trim(), format!("port {}", text(&port["name"])));
        }
    }
    for port in router_ports.values() {
        for gateway in uuids(&port["gateway_chassis"]) {
            let host = gateways.get(gateway).map(|row| text(&row["chassis_name"]));
            want(
                &host.unwrap_or_default(),
                format!("gateway of router port {}", text(&port["name"])),
            );
        }
    }
    for row in rows(result, 6)? {
        want(&text(&row["chassis_name"]), "a group of gateways".into());
    }
    let of = |row: &Value| -> Vec<&Value> {
        let named = uuids(&row["ports"]).into_iter();
        named.filter_map(|port| ports.get(port).copied()).collect()
    };
    let switches = rows(result, 0)?;
    let switches = switches.iter().map(|row| switch(row, &of(row), &dhcp));
    let routers = rows(result, 3)?.iter().map(|row| LogicalRouter {
        name: text(&row["name"]),
        ports: uuids(&row["ports"])
            .into_iter()
            .filter_map(|port| router_ports.get(port).map(|row| router_port(row)))
            .collect(),
    });
    Some(Northbound {
        remote: None,
        switches: switches.collect(),
        routers: routers.collect(),
        requested_chassis,
    })
}

fn switch(row: &Value, ports: &[&Value], dhcp: &BTreeMap<&str, &Value>) -> LogicalSwitch {
    let of_kind = |kind: &'static str| ports.iter().filter(move |port| port["type"] == kind);
    let option = |port: &Value, key: &str| map(&port["options"]).remove(key);
    let used: BTreeSet<&str> = ports
        .iter()
        .flat_map(|port| uuids(&port["dhcpv4_options"]))
        .collect();
    let options = used.into_iter().filter_map(|uuid| {
        let row = dhcp.get(uuid)?;
        let mtu = map(&row["options"]).remove("mtu");
        Some(DhcpOptions {
            uuid: uuid.to_owned(),
            cidr: text(&row["cidr"]),
            mtu: mtu.and_then(|mtu| mtu.parse().ok()),
        })
    });
    LogicalSwitch {
        name: text(&row["name"]),
        physical: of_kind("localnet").find_map(|port| option(port, "network_name")),
        guests: of_kind("").map(|port| text(&port["name"])).collect(),
        routers: of_kind("router")
            .filter_map(|port| option(port, "router-port"))
            .collect(),
        dhcp: options.collect(),
    }
}

fn router_port(row: &Value) -> RouterPort {
    let mut options = map(&row["options"]);
    let advertised = map(&row["ipv6_ra_configs"]).remove("mtu");
    RouterPort {
        name: text(&row["name"]),
        peer: row["peer"].as_str().map(str::to_owned),
        gateway_mtu: options
            .remove("gateway_mtu")
            .and_then(|mtu| mtu.parse().ok()),
        gateway_mtu_bypass: options.remove("gateway_mtu_bypass"),
        advertised_mtu: advertised.and_then(|mtu| mtu.parse().ok()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The strings of an OVSDB set, or a single string (RFC 7047, section 5.1).
fn strings(value: &Value) -> Vec<String> {
    let set = value[1].as_array().filter(|_| value[0] == "set");
    let one = value.as_str().into_iter();
    let several = set.into_iter().flatten().filter_map(Value::as_str);
    one.chain(several).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_have_their_encapsulation_addresses_and_zones() {
        let result = json!([
            {"rows": [
                {"name": "a", "hostname": "host-a", "encaps": ["uuid", "e1"], "transport_zones": ["set", []],
                 "other_config": ["map", [["is-remote", "false"]]]},
                {"name": "b", "hostname": "", "encaps": ["set", [["uuid", "e2"], ["uuid", "e3"]]], "transport_zones": "left",
                 "other_config": ["map", [["is-remote", "true"]]]},
            ]},
            {"rows": [
                {"_uuid": ["uuid", "e1"], "ip": "10.0.0.1"},
                {"_uuid": ["uuid", "e2"], "ip": "10.0.0.2"},
                {"_uuid": ["uuid", "e3"], "ip": "fd00::2"},
            ]},
        ]);
        let hosts = hosts(&result).expect("the shape of an answer");
        assert_eq!(hosts[0].hostname, "host-a");
        assert_eq!(hosts[0].addresses.len(), 1);
        assert!(hosts[0].transport_zones.is_empty() && !hosts[0].elsewhere);
        assert_eq!(hosts[1].addresses.len(), 2);
        assert_eq!(hosts[1].transport_zones, ["left"]);
        assert!(hosts[1].elsewhere);
    }

    #[test]
    fn rows_become_switches_and_routers_with_what_an_mtu_depends_on() {
        let nothing = json!(["set", []]);
        let options = |pairs: &[(&str, &str)]| json!(["map", pairs]);
        let result = json!([
            {"rows": [{"name": "s", "ports": ["set", [["uuid", "p1"], ["uuid", "p2"], ["uuid", "p3"]]]}]},
            {"rows": [
                {"_uuid": ["uuid", "p1"], "name": "vm1", "type": "", "dhcpv4_options": ["uuid", "d1"],
                 "options": options(&[("requested-chassis", "a, c")])},
                {"_uuid": ["uuid", "p2"], "name": "s-r", "type": "router", "dhcpv4_options": nothing,
                 "options": options(&[("router-port", "r-s")])},
                {"_uuid": ["uuid", "p3"], "name": "out", "type": "localnet", "dhcpv4_options": nothing,
                 "options": options(&[("network_name", "physnet")])},
            ]},
            {"rows": [
                {"_uuid": ["uuid", "d1"], "cidr": "10.7.0.0/24", "options": options(&[("mtu", "1442")])},
                {"_uuid": ["uuid", "d2"], "cidr": "10.8.0.0/24", "options": options(&[])},
            ]},
            {"rows": [{"name": "r", "ports": ["uuid", "r1"]}]},
            {"rows": [{"_uuid": ["uuid", "r1"], "name": "r-s", "peer": nothing, "gateway_chassis": ["uuid", "g1"],
                       "options": options(&[("gateway_mtu", "1500"), ("gateway_mtu_bypass", "tcp")]),
                       "ipv6_ra_configs": options(&[("mtu", "1480")])}]},
            {"rows": [{"_uuid": ["uuid", "g1"], "chassis_name": "b"}]},
            {"rows": [{"chassis_name": "b"}]},
        ]);
        let known = logical(&result).expect("the shape of an answer");
        let switch = &known.switches[0];
        assert_eq!(switch.physical.as_deref(), Some("physnet"));
        assert_eq!(
            (&switch.guests[..], &switch.routers[..]),
            (&["vm1".to_owned()][..], &["r-s".to_owned()][..])
        );
        assert_eq!((switch.dhcp.len(), switch.dhcp[0].mtu), (1, Some(1442)));
        let port = &known.routers[0].ports[0];
        assert_eq!(
            (port.gateway_mtu, port.advertised_mtu),
            (Some(1500), Some(1480))
        );
        assert_eq!(port.gateway_mtu_bypass.as_deref(), Some("tcp"));
        let hosts: Vec<_> = known
            .requested_chassis
            .iter()
            .map(|(host, what)| (host.as_str(), what.len()))
            .collect();
        assert_eq!(hosts, [("a", 1), ("b", 2), ("c", 1)]);
        assert_eq!(logical(&json!([{"error": "no such database"}])), None);
        assert_eq!(logical(&Value::Null), None);
    }
}
