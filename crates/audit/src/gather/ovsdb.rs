//! Open vSwitch's configuration from its database server: JSON-RPC over a unix socket (RFC 7047), one `select` per
//! table.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::snapshot::{Ovs, OvsBridge, OvsInterface};

const PATIENCE: Duration = Duration::from_secs(1);

/// Path of the database server's socket, where it exists.
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

/// Reads the tables of Open vSwitch that an audit needs.
pub(super) fn read(socket: &Path) -> io::Result<Ovs> {
    let selects = [
        select("Open_vSwitch", &["external_ids", "ovs_version"]),
        select("Bridge", &["name", "datapath_type", "ports"]),
        select("Port", &["_uuid", "interfaces"]),
        select(
            "Interface",
            &[
                "_uuid",
                "name",
                "type",
                "mtu",
                "mtu_request",
                "options",
                "external_ids",
            ],
        ),
    ];
    let stream = unix(socket)?;
    let result = ask(&stream, &stream, "Open_vSwitch", &selects)?;
    parse(&result).ok_or_else(unexpected_reply)
}

/// Queries a database at the first server of `remotes` that answers. `remotes` is written as ovn-controller(8)'s
/// `ovn-remote`.
///
/// # Errors
/// The error of the last server; `Unsupported` where that is reached over TLS only.
pub(super) fn ask_at(remotes: &str, schema: &str, selects: &[Value]) -> io::Result<Value> {
    let mut failed = io::ErrorKind::Unsupported.into();
    for one in remotes.split(',') {
        match ask_one(one.trim(), schema, selects) {
            Ok(result) => return Ok(result),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn ask_one(remote: &str, schema: &str, selects: &[Value]) -> io::Result<Value> {
    if let Some(path) = remote.strip_prefix("unix:") {
        let stream = unix(Path::new(path))?;
        return ask(&stream, &stream, schema, selects);
    }
    let Some(address) = remote.strip_prefix("tcp:") else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let address = address.parse().map_err(io::Error::other)?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    ask(&stream, &stream, schema, selects)
}

fn unix(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The error for an answer that is JSON, but lacks what was selected.
pub(super) fn unexpected_reply() -> io::Error {
    io::Error::other("an answer of another shape")
}

/// A `select` of every row of a table.
pub(super) fn select(table: &str, columns: &[&str]) -> Value {
    json!({"op": "select", "table": table, "where": [], "columns": columns})
}

/// Runs `selects` in one transaction on a connection, whose two directions are `from` and `to`.
fn ask(from: impl Read, mut to: impl Write, schema: &str, selects: &[Value]) -> io::Result<Value> {
    let mut params = vec![Value::from(schema)];
    params.extend_from_slice(selects);
    let request = json!({"method": "transact", "id": "wirecost", "params": params});
    to.write_all(request.to_string().as_bytes())?;
    // The parser reads byte by byte.
    let from = BufReader::new(from);
    let answers = serde_json::Deserializer::from_reader(from).into_iter::<Value>();
    for answer in answers {
        let mut answer = answer.map_err(io::Error::from)?;
        // The server may send an echo request before its answer (RFC 7047, section 4.1.11).
        if answer["id"] == "wirecost" {
            return Ok(answer["result"].take());
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Rows of the `select` at position `at`.
pub(super) fn rows(result: &Value, at: usize) -> Option<&Vec<Value>> {
    result.get(at)?.get("rows")?.as_array()
}

/// Builds the configuration from the answers to the four selects of [`read`].
fn parse(result: &Value) -> Option<Ovs> {
    let rows = |at: usize| rows(result, at);
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
        ..Ovs::default()
    })
}

fn interface(row: &Value) -> Option<OvsInterface> {
    // An optional number is encoded as the number itself, or as an empty set.
    let number = |key: &str| row[key].as_u64().map(|value| value as u32);
    Some(OvsInterface {
        name: row["name"].as_str()?.to_owned(),
        kind: row["type"].as_str().unwrap_or_default().to_owned(),
        mtu: number("mtu"),
        mtu_request: number("mtu_request"),
        options: map(&row["options"]),
        logical_port: map(&row["external_ids"]).remove("iface-id"),
        remote: None,
    })
}

/// The UUID in `["uuid", "..."]`.
pub(super) fn uuid(value: &Value) -> Option<&str> {
    (value[0] == "uuid").then(|| value[1].as_str()).flatten()
}

/// The UUIDs of a set, or a single UUID.
pub(super) fn uuids(value: &Value) -> Vec<&str> {
    if let Some(one) = uuid(value) {
        return vec![one];
    }
    let set = value[1].as_array().filter(|_| value[0] == "set");
    set.into_iter().flatten().filter_map(uuid).collect()
}

/// The pairs in `["map", [[key, value], ...]]`.
pub(super) fn map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value[1].as_array().filter(|_| value[0] == "map");
    pairs
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
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
                {"_uuid": ["uuid", "i1"], "name": "vm1", "type": "", "mtu": 1500, "mtu_request": ["set", []], "options": ["map", []],
                 "external_ids": ["map", [["iface-id", "port-of-vm1"]]]},
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
        let guest = &ovs.bridges[0].interfaces[0];
        assert_eq!(guest.mtu, Some(1500));
        assert_eq!(guest.logical_port.as_deref(), Some("port-of-vm1"));
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
            let both = format!("{echo}{answer}");
            stream.write_all(both.as_bytes()).expect("written");
        });
        let ovs = read(&path).expect("an answer");
        server.join().expect("the server");
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(ovs.bridges[0].name, "br-int");
    }

    #[test]
    fn a_long_answer_is_read_in_large_pieces() {
        struct Counted<'a> {
            rest: &'a [u8],
            reads: usize,
        }
        impl Read for Counted<'_> {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.reads += 1;
                self.rest.read(bytes)
            }
        }
        let name = "x".repeat(100_000);
        let answer = json!({"id": "wirecost", "error": null, "result": [name]}).to_string();
        let mut server = Counted {
            rest: answer.as_bytes(),
            reads: 0,
        };
        let result = ask(&mut server, io::sink(), "Open_vSwitch", &[]).expect("an answer");
        assert_eq!(result[0].as_str().map(str::len), Some(100_000));
        assert!(server.reads < 100, "{} reads", server.reads);
    }
}
