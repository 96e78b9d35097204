//! Open vSwitch's configuration from its database server: JSON-RPC over a unix socket (RFC 7047), one `select` per
//! table, nothing else.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::snapshot::{Ovs, OvsBridge, OvsInterface};

const PATIENCE: Duration = Duration::from_secs(1);

/// Where the server listens, if it does.
pub(super) fn socket() -> Option<PathBuf> {
    let own = std::env::var_os("OVS_RUNDIR").map(PathBuf::from);
    own.into_iter()
        .chain([
            PathBuf::from("/run/openvswitch"),
            PathBuf::from("/var/run/openvswitch"),
        ])
        .map(|directory| directory.join("db.sock"))
        .find(|path| path.exists())
}

/// Reads the tables.
pub(super) fn read(socket: &Path) -> io::Result<Ovs> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let select = |table: &str, columns: &[&str]| json!({"op": "select", "table": table, "where": [], "columns": columns});
    let request = json!({
        "method": "transact",
        "id": "wirecost",
        "params": [
            "Open_vSwitch",
            select("Open_vSwitch", &["external_ids", "ovs_version"]),
            select("Bridge", &["name", "datapath_type", "ports"]),
            select("Port", &["_uuid", "interfaces"]),
            select("Interface", &["_uuid", "name", "type", "mtu", "mtu_request", "options"]),
        ],
    });
    stream.write_all(request.to_string().as_bytes())?;
    let answers = serde_json::Deserializer::from_reader(&stream).into_iter::<Value>();
    for answer in answers {
        let answer = answer.map_err(io::Error::from)?;
        // The server may ask whether we live before it answers (RFC 7047, 4.1.11).
        if answer["id"] == "wirecost" {
            return parse(&answer["result"])
                .ok_or_else(|| io::Error::other("an answer of another shape"));
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// From the answers to the four selects.
pub(super) fn parse(result: &Value) -> Option<Ovs> {
    let rows = |at: usize| result.get(at)?.get("rows")?.as_array();
    let root = rows(0)?.first()?;
    let interfaces: BTreeMap<&str, OvsInterface> = rows(3)?
        .iter()
        .filter_map(|row| Some((uuid(&row["_uuid"])?, interface(row)?)))
        .collect();
    let ports: BTreeMap<&str, Vec<&str>> = rows(2)?
        .iter()
        .filter_map(|row| Some((uuid(&row["_uuid"])?, uuids(&row["interfaces"]))))
        .collect();
    let bridges = rows(1)?.iter().map(|row| OvsBridge {
        name: row["name"].as_str().unwrap_or_default().to_owned(),
        datapath: row["datapath_type"].as_str().unwrap_or_default().to_owned(),
        interfaces: uuids(&row["ports"])
            .into_iter()
            .filter_map(|port| ports.get(port))
            .flatten()
            .filter_map(|interface| interfaces.get(interface).cloned())
            .collect(),
    });
    Some(Ovs {
        version: root["ovs_version"].as_str().unwrap_or_default().to_owned(),
        bridges: bridges.collect(),
        external_ids: map(&root["external_ids"]),
    })
}

fn interface(row: &Value) -> Option<OvsInterface> {
    // An optional number is the number itself, or an empty set.
    let number = |key: &str| row[key].as_u64().map(|value| value as u32);
    Some(OvsInterface {
        name: row["name"].as_str()?.to_owned(),
        kind: row["type"].as_str().unwrap_or_default().to_owned(),
        mtu: number("mtu"),
        mtu_request: number("mtu_request"),
        options: map(&row["options"]),
        remote: None,
    })
}

/// `["uuid", "..."]`.
fn uuid(value: &Value) -> Option<&str> {
    (value[0] == "uuid").then(|| value[1].as_str()).flatten()
}

/// A set of them, or one alone.
fn uuids(value: &Value) -> Vec<&str> {
    if let Some(one) = uuid(value) {
        return vec![one];
    }
    let set = value[1].as_array().filter(|_| value[0] == "set");
    set.into_iter().flatten().filter_map(uuid).collect()
}

/// `["map", [[key, value], ...]]`.
fn map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value[1].as_array().filter(|_| value[0] == "map");
    pairs
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn answer() -> Value {
        json!([
            {"rows": [{"ovs_version": "3.1.0", "external_ids": ["map", [["ovn-encap-type", "geneve"], ["ovn-encap-ip", "10.0.0.1"]]]}]},
            {"rows": [{"name": "br-int", "datapath_type": "system", "ports": ["set", [["uuid", "p1"], ["uuid", "p2"]]]}]},
            {"rows": [
                {"_uuid": ["uuid", "p1"], "interfaces": ["uuid", "i1"]},
                {"_uuid": ["uuid", "p2"], "interfaces": ["set", [["uuid", "i2"]]]},
            ]},
            {"rows": [
                {"_uuid": ["uuid", "i1"], "name": "vm1", "type": "", "mtu": 1500, "mtu_request": ["set", []], "options": ["map", []]},
                {"_uuid": ["uuid", "i2"], "name": "ovn-b", "type": "geneve", "mtu": ["set", []], "mtu_request": ["set", []],
                 "options": ["map", [["remote_ip", "10.0.0.2"], ["key", "flow"], ["csum", "true"]]]},
            ]},
        ])
    }

    #[test]
    fn tables_become_bridges_with_interfaces() {
        let ovs = parse(&answer()).expect("the shape of an answer");
        assert!(ovs.is_ovn());
        assert_eq!(ovs.bridges[0].interfaces.len(), 2);
        assert_eq!(ovs.bridges[0].interfaces[0].mtu, Some(1500));
        assert_eq!(
            ovs.bridges[0].interfaces[1].options["remote_ip"],
            "10.0.0.2"
        );
        assert_eq!(parse(&json!([{"error": "no such table"}])), None);
    }

    #[test]
    fn a_server_is_asked_once_and_may_ask_back() {
        let directory = std::env::temp_dir().join(format!("wirecost-ovsdb-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("db.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            let length = stream.read(&mut request).expect("a request");
            let request: Value = serde_json::from_slice(&request[..length]).expect("JSON");
            assert_eq!(request["method"], "transact");
            let echo = json!({"method": "echo", "params": [], "id": "echo"});
            let answer = json!({"id": "wirecost", "error": null, "result": answer()});
            write!(stream, "{echo}{answer}").expect("written");
        });
        let ovs = read(&path).expect("an answer");
        server.join().expect("the server");
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(ovs.bridges[0].name, "br-int");
    }
}
