//! Transactions with the database server (RFC 7047, sections 4.1.3 and 5).

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::deadline::{DaemonWait, Deadline};
use crate::error::Error;
use crate::rpc::Rpc;

const WHOM: &str = "ovsdb-server";
/// Pause between two attempts while something is not there yet.
const STEP: Duration = Duration::from_millis(5);

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// Description for messages: "insert into table Interface, row tunnel0, columns name, options, type".
    pub(crate) what: String,
    pub(crate) body: Value,
}

impl Operation {
    /// Inserts a row into a table, named `id` within the transaction.
    pub(crate) fn insert(table: &str, id: &str, row: &Value) -> Self {
        let name = row["name"].as_str();
        let name = name.map_or_else(String::new, |name| format!(", row {name}"));
        let columns: Vec<&str> = row
            .as_object()
            .map(|row| row.keys().map(String::as_str).collect())
            .unwrap_or_default();
        Self {
            what: format!(
                "insert into table {table}{name}, columns {}",
                columns.join(", ")
            ),
            body: json!({"op": "insert", "table": table, "row": row, "uuid-name": id}),
        }
    }

    /// Changes columns of every row of a table.
    pub(crate) fn update(table: &str, row: &Value) -> Self {
        Self {
            what: format!("update table {table}"),
            body: json!({"op": "update", "table": table, "where": [], "row": row}),
        }
    }

    pub(crate) fn select(table: &str, columns: &[&str]) -> Self {
        Self {
            what: format!("read table {table}"),
            body: json!({"op": "select", "table": table, "where": [], "columns": columns}),
        }
    }
}

/// A connection to the database server.
#[derive(Debug)]
pub(crate) struct Database {
    rpc: Rpc,
    schema: Schema,
}

/// A database of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// Open vSwitch's configuration (ovs-vswitchd.conf.db(5)).
    OpenVswitch,
    /// The wanted logical network (ovn-nb(5)).
    OvnNorthbound,
    /// What ovn-northd derives from the northbound database, and the hosts (ovn-sb(5)).
    OvnSouthbound,
}

impl Schema {
    /// Name of the database.
    const fn name(self) -> &'static str {
        match self {
            Self::OpenVswitch => "Open_vSwitch",
            Self::OvnNorthbound => "OVN_Northbound",
            Self::OvnSouthbound => "OVN_Southbound",
        }
    }

    /// Name in messages.
    const fn words(self) -> &'static str {
        match self {
            Self::OpenVswitch => "Open vSwitch's database",
            Self::OvnNorthbound => "OVN's northbound database",
            Self::OvnSouthbound => "OVN's southbound database",
        }
    }
}

impl Database {
    /// Connects once the server listens. `alive` ends the wait with an error where the server has ended.
    pub(crate) fn connect(
        socket: &Path,
        schema: Schema,
        deadline: Deadline,
        mut alive: impl FnMut() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        loop {
            match Rpc::connect(socket) {
                Ok(rpc) => return Ok(Self { rpc, schema }),
                Err(error) if deadline.is_over() => {
                    return Err(control("listen", &error));
                }
                Err(_) => alive()?,
            }
            sleep(STEP);
        }
    }

    /// Executes all operations or none, and returns each operation's result.
    ///
    /// # Errors
    /// The first operation that was refused, with its table and columns.
    pub(crate) fn transact(
        &mut self,
        operations: &[Operation],
        deadline: Deadline,
    ) -> Result<Vec<Value>, Error> {
        let mut params = vec![Value::from(self.schema.name())];
        params.extend(operations.iter().map(|operation| operation.body.clone()));
        let result = self.rpc.call("transact", &Value::Array(params), deadline);
        let results = match result {
            Ok(Value::Array(results)) => results,
            Ok(other) => return Err(control("change its tables", &other)),
            Err(fault) => return Err(control("change its tables", &fault)),
        };
        match first_refusal(self.schema, operations, &results) {
            Some(refusal) => Err(refusal),
            None => Ok(results),
        }
    }

    /// All rows of a table, with these columns.
    ///
    /// # Errors
    /// As for [`Database::transact`].
    pub(crate) fn rows(
        &mut self,
        table: &str,
        columns: &[&str],
        deadline: Deadline,
    ) -> Result<Vec<Value>, Error> {
        let mut results = self.transact(&[Operation::select(table, columns)], deadline)?;
        match results[0]["rows"].take() {
            Value::Array(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    /// Waits until the switch has applied configuration number `number`.
    pub(crate) fn wait_for_configuration(
        &mut self,
        number: u64,
        mut wait: DaemonWait,
        mut alive: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let read = Operation::select("Open_vSwitch", &["cur_cfg"]);
            let results = self.transact(&[read], wait.request_deadline())?;
            let current = results[0]["rows"][0]["cur_cfg"].as_u64();
            if current.is_some_and(|current| current >= number) {
                return Ok(());
            }
            alive()?;
            if wait.is_over() {
                let problem = format!(
                    "no answer in time (table Open_vSwitch, column cur_cfg: {}, next_cfg: {number})",
                    current.unwrap_or(0)
                );
                return Err(Error::Control {
                    whom: "ovs-vswitchd",
                    what: "apply its configuration".to_owned(),
                    problem,
                });
            }
            sleep(STEP);
        }
    }
}

fn control(what: &str, problem: &impl std::fmt::Display) -> Error {
    Error::Control {
        whom: WHOM,
        what: what.to_owned(),
        problem: problem.to_string(),
    }
}

/// Error of the first operation that was refused. The results after it are null; one more result than operations is the
/// commit's error.
fn first_refusal(schema: Schema, operations: &[Operation], results: &[Value]) -> Option<Error> {
    let (at, refused) = results
        .iter()
        .enumerate()
        .find(|(_, result)| result["error"].is_string())?;
    let operation = operations.get(at);
    Some(Error::Refused {
        whose: schema.words(),
        what: operation.map_or_else(|| "commit".to_owned(), |operation| operation.what.clone()),
        error: refused["error"].as_str().unwrap_or_default().to_owned(),
        details: refused["details"].as_str().unwrap_or_default().to_owned(),
    })
}

/// A map: `["map", [[key, value], ...]]`.
pub(crate) fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Value {
    let pairs: Vec<Value> = pairs
        .into_iter()
        .map(|(key, value)| json!([key, value]))
        .collect();
    json!(["map", pairs])
}

/// A value of a map of the database, by its key.
pub(crate) fn value<'a>(map: &'a Value, key: &str) -> Option<&'a str> {
    let pairs = map[1].as_array().filter(|_| map[0] == "map")?;
    let pair = pairs.iter().find(|pair| pair[0] == key)?;
    pair[1].as_str()
}

/// A set: `["set", [...]]`.
pub(crate) fn set(members: impl IntoIterator<Item = Value>) -> Value {
    let members: Vec<Value> = members.into_iter().collect();
    json!(["set", members])
}

/// Reference to the row that an insert of the same transaction has named `id`.
pub(crate) fn named(id: &str) -> Value {
    json!(["named-uuid", id])
}

/// An optional value: itself, or `None` for an empty set.
pub(crate) fn optional(value: &Value) -> Option<&Value> {
    (value[0] != "set" && !value.is_null()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_table_the_row_and_the_columns() {
        let operations = [
            Operation::insert("QoS", "q", &json!({"type": "linux-noop"})),
            Operation::insert(
                "Interface",
                "i",
                &json!({"name": "tunnel0", "typo": "vxlan"}),
            ),
        ];
        let results = [
            json!({"uuid": ["uuid", "x"]}),
            json!({"error": "unknown column", "details": "No column typo in table Interface."}),
            Value::Null,
        ];
        let refusal = first_refusal(Schema::OpenVswitch, &operations, &results).expect("a refusal");
        insta::assert_snapshot!(refusal, @"Open vSwitch's database refused to insert into table Interface, row tunnel0, columns name, typo: unknown column: No column typo in table Interface.");
        assert!(first_refusal(Schema::OpenVswitch, &operations[..1], &results[..1]).is_none());
    }

    #[test]
    fn an_error_of_the_commit_is_one_too() {
        let results = [
            json!({}),
            json!({"error": "referential integrity violation"}),
        ];
        let operations = [Operation::select("Bridge", &["name"])];
        let refusal = first_refusal(Schema::OpenVswitch, &operations, &results).expect("a refusal");
        assert!(
            refusal.to_string().contains("refused to commit"),
            "{refusal}"
        );
    }

    #[test]
    fn an_empty_set_is_no_value() {
        assert_eq!(optional(&json!(["set", []])), None);
        assert_eq!(optional(&json!("x")), Some(&json!("x")));
        assert_eq!(optional(&json!(7)), Some(&json!(7)));
    }
}
