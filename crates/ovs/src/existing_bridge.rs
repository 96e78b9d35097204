//! Ports that are added to a bridge of this machine's own Open vSwitch and removed again. Somebody else configures that
//! switch: nothing else in it is changed.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use wirecost_model::plan::{Encapsulation, GeneveOptions};
use wirecost_model::switch::OvsDatapath;

use crate::config::{Membership, SwitchSpec, access_tag, interface, tunnel};
use crate::database::{Database, Operation, Schema, map, named, optional, set, value};
use crate::deadline::{DaemonWait, Deadline};
use crate::error::Error;

/// Key of the owner in a row's `external_ids`.
const OWNER: &str = "wirecost";
/// How long the machine's switch may take to apply two ports; it may have thousands.
const PATIENCE: Duration = Duration::from_secs(10);
/// Directories where the machine's database server listens, unless OVS_RUNDIR says otherwise.
const RUN_DIRECTORIES: [&str; 2] = ["/run/openvswitch", "/var/run/openvswitch"];

/// A bridge of the machine's own Open vSwitch.
#[derive(Debug)]
pub struct ExistingBridge {
    database: Database,
    name: String,
    uuid: Value,
    datapath: OvsDatapath,
}

/// Ports to add to a bridge of the machine's own Open vSwitch.
#[derive(Debug, Clone)]
pub struct BridgePorts<'a> {
    /// Owner of the ports, shown in the database: column `external_ids`, key `wirecost`.
    pub owner: &'a str,
    /// Name of the tunnel's port, where the encapsulation is a tunnel.
    pub tunnel: &'a str,
    /// The encapsulation, the guests' ports, and both hosts' addresses.
    pub spec: &'a SwitchSpec,
}

impl ExistingBridge {
    /// Finds the bridge of that name.
    ///
    /// # Errors
    /// Where no Open vSwitch runs on this machine, or none of its bridges has the name.
    pub fn find(name: &str) -> Result<Self, Error> {
        let deadline = Deadline::within(PATIENCE);
        let own = env::var_os("OVS_RUNDIR").map(PathBuf::from);
        let mut places: Vec<PathBuf> = RUN_DIRECTORIES.iter().map(PathBuf::from).collect();
        if let Some(own) = own {
            places = vec![own];
        }
        let sockets = places.iter().map(|place| place.join("db.sock"));
        let Some(socket) = sockets.clone().find(|socket| socket.exists()) else {
            let all: Vec<String> = sockets.map(|socket| socket.display().to_string()).collect();
            return Err(Error::Cannot(format!(
                "no Open vSwitch runs on this machine: there is no {}; `systemctl start openvswitch-switch` starts \
                 Debian's",
                all.join(" and no ")
            )));
        };
        // A server that does not listen is not waited for.
        let mut database = Database::connect(
            &socket,
            Schema::OpenVswitch,
            Deadline::within(Duration::ZERO),
            || Ok(()),
        )?;
        let select = Operation::select("Bridge", &["_uuid", "name", "datapath_type"]);
        let results = database.transact(&[select], deadline)?;
        let rows = results[0]["rows"].as_array().cloned().unwrap_or_default();
        let Some(row) = rows.iter().find(|row| row["name"] == name) else {
            let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
            let there = match &names[..] {
                [] => "has no bridge".to_owned(),
                names => format!("has {}", names.join(", ")),
            };
            return Err(Error::Cannot(format!(
                "there is no bridge {name}: this machine's Open vSwitch {there}"
            )));
        };
        Ok(Self {
            name: name.to_owned(),
            uuid: row["_uuid"].clone(),
            datapath: if row["datapath_type"] == OvsDatapath::Userspace.kind() {
                OvsDatapath::Userspace
            } else {
                OvsDatapath::Kernel
            },
            database,
        })
    }

    /// Where the bridge forwards packets: in the kernel or in userspace.
    pub const fn datapath(&self) -> OvsDatapath {
        self.datapath
    }

    /// Adds a guest's port, and the tunnel's where there is one.
    ///
    /// # Errors
    /// Where it cannot be done in a bridge that another program manages, or the switch refuses; no port is left then.
    pub fn add(&mut self, ports: &BridgePorts<'_>) -> Result<(), Error> {
        self.check(ports)?;
        let deadline = Deadline::within(PATIENCE);
        let names = self.names(ports);
        let taken = self.present(&names)?;
        if let Some(name) = taken.first() {
            return Err(Error::Cannot(format!(
                "this machine's Open vSwitch has a port {name} already: give another name"
            )));
        }
        let operations = self.operations(ports);
        let results = self.database.transact(&operations, deadline)?;
        let number = results
            .last()
            .and_then(|read| read["rows"][0]["next_cfg"].as_u64());
        let number = number.unwrap_or(0);
        let in_force = self
            .database
            .wait_for_configuration(number, DaemonWait::with(Vec::new(), PATIENCE), || Ok(()))
            .and_then(|()| self.are_well(&names, deadline));
        if let Err(error) = in_force {
            // The error returned is the first one, whatever becomes of the removal.
            let _ = self.remove(&names);
            return Err(error);
        }
        Ok(())
    }

    /// The names of the ports that [`ExistingBridge::add`] adds.
    pub fn names(&self, ports: &BridgePorts<'_>) -> Vec<String> {
        let mut names = ports.spec.guests.clone();
        if ports.spec.encapsulation.is_tunnel() {
            names.push(ports.tunnel.to_owned());
        }
        names
    }

    /// Removes ports that [`ExistingBridge::add`] added; a missing one is no error.
    ///
    /// # Errors
    /// Where the server refuses.
    pub fn remove(&mut self, names: &[String]) -> Result<(), Error> {
        let deadline = Deadline::within(PATIENCE);
        let select = Operation::select("Port", &["_uuid", "name", "external_ids"]);
        let results = self.database.transact(&[select], deadline)?;
        let rows = results[0]["rows"].as_array().cloned().unwrap_or_default();
        let uuids: Vec<Value> = rows
            .iter()
            .filter(|row| is_ours(row, names))
            .map(|row| row["_uuid"].clone())
            .collect();
        if uuids.is_empty() {
            return Ok(());
        }
        let operations = [self.change_ports("delete", uuids), next_configuration()];
        self.database.transact(&operations, deadline)?;
        Ok(())
    }

    /// Names of those of the ports that are in the switch.
    ///
    /// # Errors
    /// Where the server does not answer.
    pub fn present(&mut self, names: &[String]) -> Result<Vec<String>, Error> {
        let select = Operation::select("Port", &["name"]);
        let results = self
            .database
            .transact(&[select], Deadline::within(PATIENCE))?;
        let rows = results[0]["rows"].as_array().cloned().unwrap_or_default();
        let there = |name: &&String| rows.iter().any(|row| row["name"] == name.as_str());
        Ok(names.iter().filter(there).cloned().collect())
    }

    fn check(&self, ports: &BridgePorts<'_>) -> Result<(), Error> {
        let encapsulation = &ports.spec.encapsulation;
        let udp = encapsulation.udp();
        let options = matches!(encapsulation, Encapsulation::Geneve(geneve) if geneve.options != GeneveOptions::NONE);
        let reason = if options {
            "Geneve options need flows, and flows of an existing bridge are not changed: leave `options` out"
        } else if udp.is_some_and(|udp| udp.source_ports.is_some()) {
            "a range of source ports would apply to every tunnel of this machine's Open vSwitch: leave \
             `source_ports` out"
        } else {
            return ports.spec.check(self.datapath);
        };
        Err(Error::Cannot(reason.to_owned()))
    }

    fn operations(&self, ports: &BridgePorts<'_>) -> Vec<Operation> {
        let wanted = ports.spec;
        let of = map([(OWNER, ports.owner.to_owned())]);
        let tag = access_tag(&wanted.encapsulation);
        let guests = wanted.guests.iter().map(|guest| {
            let access = tag.map(Membership::Access);
            (guest.as_str(), interface(guest), access)
        });
        let tunnel = wanted.encapsulation.udp().map(|udp| {
            let row = tunnel(ports.tunnel, wanted, udp, self.datapath);
            (ports.tunnel, row, tag.map(Membership::Trunk))
        });
        let mut operations = Vec::new();
        let mut added = Vec::new();
        for (number, (name, mut interface, member)) in guests.chain(tunnel).enumerate() {
            let (port, of_port) = (format!("port{number}"), format!("interface{number}"));
            interface["external_ids"] = of.clone();
            operations.push(Operation::insert("Interface", &of_port, &interface));
            let mut row = json!({"name": name, "interfaces": named(&of_port), "external_ids": of});
            Membership::put(member, &mut row);
            operations.push(Operation::insert("Port", &port, &row));
            added.push(named(&port));
        }
        operations.push(self.change_ports("insert", added));
        operations.push(next_configuration());
        operations.push(Operation::select("Open_vSwitch", &["next_cfg"]));
        operations
    }

    fn change_ports(&self, how: &str, ports: Vec<Value>) -> Operation {
        let bridge = &self.name;
        Operation {
            what: format!("{how} ports of bridge {bridge} (table Bridge, column ports)"),
            body: json!({
                "op": "mutate", "table": "Bridge", "where": [["_uuid", "==", self.uuid]],
                "mutations": [["ports", how, set(ports)]],
            }),
        }
    }

    fn are_well(&mut self, names: &[String], deadline: Deadline) -> Result<(), Error> {
        let select = Operation::select("Interface", &["name", "error"]);
        let results = self.database.transact(&[select], deadline)?;
        let rows = results[0]["rows"].as_array().cloned().unwrap_or_default();
        for row in rows {
            let name = row["name"].as_str().unwrap_or_default().to_owned();
            let problem = optional(&row["error"]).and_then(Value::as_str);
            if let (true, Some(problem)) = (names.contains(&name), problem) {
                let problem = problem.to_owned();
                return Err(Error::Port { name, problem });
            }
        }
        Ok(())
    }
}

/// Whether a row of table Port has one of these names, and an owner ([`BridgePorts::owner`]).
fn is_ours(row: &Value, names: &[String]) -> bool {
    names.iter().any(|name| row["name"] == name.as_str())
        && value(&row["external_ids"], OWNER).is_some()
}

/// Counts the change, as ovs-vsctl(8) does, so that the switch reports when it has applied it.
fn next_configuration() -> Operation {
    Operation {
        what: "count the change (table Open_vSwitch, column next_cfg)".to_owned(),
        body: json!({
            "op": "mutate", "table": "Open_vSwitch", "where": [], "mutations": [["next_cfg", "+=", 1]],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_our_mark_is_somebody_elses_whatever_its_name() {
        let names = ["x-p".to_owned(), "x-t".to_owned()];
        let of = |name: &str, key: &str| {
            let ids = map([(key, "x".to_owned())]);
            is_ours(&json!({"name": name, "external_ids": ids}), &names)
        };
        assert!(of("x-p", OWNER));
        assert!(!of("x-t", "iface-id"));
        assert!(!of("y-p", OWNER));
    }
}
