//! ovn-controller, which programs one host's switch.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use wirecost_sys::scratch::ScratchDirectory;

use super::programs::OvnPrograms;
use crate::config::SwitchSpec;
use crate::daemon::Daemon;
use crate::database::{Database, optional, value};
use crate::deadline::DaemonWait;
use crate::error::Error;

const STEP: Duration = Duration::from_millis(5);
const PATIENCE_SECONDS: f64 = 8.0;

/// A host's ovn-controller.
#[derive(Debug)]
pub(crate) struct Controller {
    daemon: Daemon,
    version: String,
}

impl Controller {
    /// Starts ovn-controller for a switch whose database listens at `socket`.
    pub(crate) fn start(
        socket: &str,
        directory: &ScratchDirectory,
        owner: &str,
    ) -> Result<Self, Error> {
        let programs = OvnPrograms::find()?;
        let version = programs.version()?;
        let arguments = [format!("unix:{socket}")];
        let program = &programs.controller;
        let daemon = Daemon::start(program, "controller", &arguments, directory, owner)?;
        Ok(Self { daemon, version })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    pub(crate) fn check_running(&mut self) -> Result<(), Error> {
        self.daemon.check_running()
    }

    /// Waits until the guests' ports and the tunnel are as wanted in table Interface.
    pub(crate) fn wait_until_installed(
        &mut self,
        database: &mut Database,
        wanted: &SwitchSpec,
        mut wait: DaemonWait,
    ) -> Result<(), Error> {
        let columns = ["name", "type", "options", "ofport", "error", "external_ids"];
        loop {
            let rows = database.rows("Interface", &columns, wait.request_deadline())?;
            let Some(missing) = missing(&rows, wanted) else {
                return Ok(());
            };
            self.daemon.check_running()?;
            if wait.is_over() {
                return Err(Error::NotInForce {
                    missing,
                    seconds: PATIENCE_SECONDS,
                    log: self.daemon.log(),
                });
            }
            sleep(STEP);
        }
    }
}

/// Description of what is not as wanted yet; `None` where everything is.
fn missing(rows: &[Value], wanted: &SwitchSpec) -> Option<String> {
    let number = |row: &Value| optional(&row["ofport"]).and_then(Value::as_u64);
    let guest = |name: &String| {
        rows.iter().any(|row| {
            row["name"] == name.as_str()
                && value(&row["external_ids"], "ovn-installed") == Some("true")
        })
    };
    if let Some(guest) = wanted.guests.iter().find(|name| !guest(name)) {
        return Some(format!("{guest} is no port of the logical network"));
    }
    let Some(udp) = wanted.encapsulation.udp() else {
        let patched = rows
            .iter()
            .any(|row| row["type"] == "patch" && number(row).is_some());
        return (!patched).then(|| "there is no patch port to the underlay's bridge".to_owned());
    };
    let (peer, kind) = (wanted.peer.to_string(), wanted.encapsulation.kind().word);
    let tunnel = rows.iter().find(|row| {
        row["type"] == kind && value(&row["options"], "remote_ip") == Some(peer.as_str())
    });
    let Some(tunnel) = tunnel else {
        return Some(format!("there is no {kind} tunnel to {peer}"));
    };
    if number(tunnel).is_none() {
        let error = optional(&tunnel["error"]).and_then(Value::as_str);
        return Some(format!(
            "the tunnel to {peer} has no port number: {}",
            error.unwrap_or("no error was reported")
        ));
    }
    let computed = value(&tunnel["options"], "csum") == Some("true");
    (computed != udp.udp_checksum).then(|| {
        format!("the tunnel to {peer} does not have the outer checksum as it was asked for")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wirecost_model::plan::{Encapsulation, Vxlan};

    use super::*;
    use crate::database::map;

    #[test]
    fn what_is_missing_is_named_until_nothing_is() {
        let wanted = SwitchSpec {
            encapsulation: Encapsulation::Vxlan(Vxlan {
                udp_checksum: true,
                ..Vxlan::default()
            }),
            underlay: "underlay".to_owned(),
            underlay_mtu: 9000,
            guests: vec!["guest0".to_owned()],
            local: "198.18.0.1".parse().expect("an address"),
            peer: "198.18.0.2".parse().expect("an address"),
            mac: [2, 0, 0, 0, 0, 1],
            ovn: None,
        };
        let said = |rows: &[Value]| missing(rows, &wanted).unwrap_or_default();
        let nothing = json!(["set", []]);
        let guest =
            json!({"name": "guest0", "external_ids": map([("ovn-installed", "true".to_owned())])});
        let tunnel = |ofport: Value, csum: &str| {
            let options = [
                ("remote_ip", "198.18.0.2".to_owned()),
                ("csum", csum.to_owned()),
            ];
            json!({"name": "ovn-b-0", "type": "vxlan", "ofport": ofport, "error": nothing, "options": map(options)})
        };
        assert!(said(&[]).contains("guest0 is no port"));
        assert!(said(std::slice::from_ref(&guest)).contains("no vxlan tunnel to 198.18.0.2"));
        let not_yet = [guest.clone(), tunnel(nothing.clone(), "true")];
        assert!(said(&not_yet).contains("no port number"));
        assert!(said(&[guest.clone(), tunnel(json!(5), "false")]).contains("checksum"));
        assert_eq!(said(&[guest, tunnel(json!(5), "true")]), "");
    }
}
