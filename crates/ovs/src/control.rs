//! Commands to the switch as `ovs-appctl` sends them (`lib/unixctl.c`), without that program.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::deadline::Deadline;
use crate::error::Error;
use crate::rpc::{Rpc, RpcError};

const STEP: Duration = Duration::from_millis(5);

/// A control connection to the switch.
#[derive(Debug)]
pub(crate) struct Control {
    rpc: Rpc,
}

impl Control {
    /// Connects to a switch that is up.
    pub(crate) fn connect(socket: &Path) -> Result<Self, Error> {
        let rpc = Rpc::connect(socket).map_err(|error| refused("listen", &error))?;
        Ok(Self { rpc })
    }

    /// Sends a command, and returns the switch's answer.
    pub(crate) fn call(
        &mut self,
        command: &str,
        arguments: &[&str],
        deadline: Deadline,
    ) -> Result<String, Error> {
        self.ask(command, arguments, deadline).map_err(|fault| {
            let what = format!("{command} {}", arguments.join(" "));
            refused(what.trim_end(), &fault)
        })
    }

    /// Repeats a command until `will_do` accepts its answer. The error is the last answer, or what failed.
    pub(crate) fn call_until(
        &mut self,
        command: &str,
        arguments: &[&str],
        deadline: Deadline,
        will_do: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        loop {
            let said = match self.ask(command, arguments, deadline) {
                Ok(said) if will_do(&said) => return Ok(()),
                Ok(said) => said,
                Err(RpcError::Line(error)) => return Err(RpcError::Line(error).to_string()),
                Err(fault) => fault.to_string(),
            };
            if deadline.is_over() {
                return Err(said.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            sleep(STEP);
        }
    }

    fn ask(
        &mut self,
        command: &str,
        arguments: &[&str],
        deadline: Deadline,
    ) -> Result<String, RpcError> {
        let params = Value::from(arguments.to_vec());
        let result = self.rpc.call(command, &params, deadline)?;
        Ok(result.as_str().unwrap_or_default().to_owned())
    }
}

fn refused(what: &str, problem: &impl std::fmt::Display) -> Error {
    Error::Control {
        whom: "ovs-vswitchd",
        what: what.to_owned(),
        problem: problem.to_string(),
    }
}
