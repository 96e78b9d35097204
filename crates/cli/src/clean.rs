//! `wirecost clean`: ends orphaned agents, removes leftovers of tunnels, undoes settings that were left changed.

use std::io;

use clap::Args;
use serde_json::json;
use wirecost_control::clean::{self, Agents, LeftSettings, Orphan, Tunnels};
use wirecost_model::host::HostAddress;

use crate::binaries::AgentBinaries;
use crate::check::unreached;
use crate::failure::{Cause, CommandResult, Failure};
use crate::{exit, interrupt, screen};

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Instead: undo settings that a killed run left changed on this host; can be given several times [forms: local,
    /// netns:NAME, ssh:HOST, exec:COMMAND]
    #[arg(long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<HostAddress>,
    /// Print what was cleaned up as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) agent: AgentBinaries,
}

pub(crate) fn clean(arguments: &Clean) -> CommandResult {
    if !arguments.hosts.is_empty() {
        return clean_hosts(arguments);
    }
    let cleaned = clean::clean().map_err(|error| Failure::of(Cause::Machine, &error));
    let (Agents { ended, refused }, tunnels) = cleaned?;
    let printed = if arguments.json {
        let refused: Vec<_> = refused
            .iter()
            .map(|(orphan, error)| json!({ "agent": orphan, "error": error.to_string() }))
            .collect();
        let stuck: Vec<_> = tunnels
            .refused
            .iter()
            .map(|(name, error)| json!({ "name": name, "error": error }))
            .collect();
        let document = json!({
            "ended": ended,
            "refused": refused,
            "tunnels": {
                "removed": tunnels.removed,
                "devices": tunnels.devices,
                "up": tunnels.up,
                "refused": stuck,
            },
        });
        screen::print(&document.to_string())?
    } else {
        screen::print(&lines(&ended, &refused, &tunnels))?
    };
    Ok(if refused.is_empty() && tunnels.refused.is_empty() {
        printed
    } else {
        exit::incomplete()
    })
}

/// Undoes the settings that journals on existing hosts list as left changed.
fn clean_hosts(arguments: &Clean) -> CommandResult {
    let started = interrupt::with_hosts(0, &arguments.agent);
    let (interrupt, context) = started.map_err(|error| Failure::of(Cause::Machine, &error))?;
    let left = clean::undo_left(&context, &arguments.hosts, &interrupt);
    let left = left.map_err(|error| unreached(&error.into()))?;
    let hosts = || arguments.hosts.iter().zip(&left);
    // About other hosts, and so no part of the result.
    for (host, left) in hosts() {
        for journal in &left.elsewhere {
            screen::print_stderr(&format!("wirecost: {host}: {}", journal.message));
        }
    }
    let printed = if arguments.json {
        let hosts: Vec<_> = hosts()
            .map(|(host, left)| {
                let LeftSettings {
                    undone,
                    gone,
                    failed,
                    emptied: _,
                    elsewhere: _,
                } = left;
                json!({ "host": host, "undone": undone, "gone": gone, "failed": failed })
            })
            .collect();
        screen::print(&json!({ "hosts": hosts }).to_string())?
    } else {
        let lines = hosts().flat_map(|(host, left)| {
            let undone = left
                .undone
                .iter()
                .map(move |step| format!("{host}: undid {step}"));
            let failed = left.failed.iter().map(move |why| format!("{host}: {why}"));
            let gone = left
                .gone
                .iter()
                .map(move |step| format!("{host}: already gone: {step}"));
            let nothing = left.undone.is_empty() && left.gone.is_empty() && left.failed.is_empty();
            let nothing = nothing.then(|| format!("{host}: nothing was left changed"));
            undone.chain(gone).chain(failed).chain(nothing)
        });
        screen::print(&lines.collect::<Vec<_>>().join("\n"))?
    };
    Ok(if left.iter().all(|left| left.failed.is_empty()) {
        printed
    } else {
        exit::incomplete()
    })
}

fn lines(ended: &[Orphan], refused: &[(Orphan, io::Error)], tunnels: &Tunnels) -> String {
    let up = tunnels.up.iter().map(|name| {
        format!("tunnel {name} is up and stays: `wirecost tunnel down {name}` removes it")
    });
    let tunnels: Vec<String> = tunnel_lines(tunnels).collect();
    if ended.is_empty() && refused.is_empty() && tunnels.is_empty() {
        let nothing = "nothing to clean: every agent belongs to a running run".to_owned();
        return [nothing]
            .into_iter()
            .chain(up)
            .collect::<Vec<_>>()
            .join("\n");
    }
    let ended = ended.iter().map(|orphan| {
        let stopped = if orphan.stopped { "stopped " } else { "" };
        let state = format!("{stopped}{}", kind(orphan));
        let (pid, run) = (orphan.pid, orphan.controller);
        format!("ended {state} {pid}, left by run {run}, with its namespaces and devices")
    });
    let refused = refused.iter().map(|(orphan, error)| {
        let action = if orphan.guard { "continue" } else { "end" };
        format!(
            "could not {action} {} {}: {error}; try as its user or as root",
            kind(orphan),
            orphan.pid
        )
    });
    let agents = ended.chain(refused);
    agents
        .chain(tunnels)
        .chain(up)
        .collect::<Vec<_>>()
        .join("\n")
}

const fn kind(orphan: &Orphan) -> &'static str {
    if orphan.daemon {
        "Open vSwitch daemon"
    } else if orphan.guard {
        "settings guard"
    } else {
        "agent"
    }
}

fn tunnel_lines(tunnels: &Tunnels) -> impl Iterator<Item = String> {
    let removed = tunnels
        .removed
        .iter()
        .map(|name| format!("removed what was left of tunnel {name}"));
    let devices = tunnels
        .devices
        .iter()
        .map(|device| format!("removed the device {device}, which belongs to no tunnel"));
    let refused = tunnels
        .refused
        .iter()
        .map(|(name, error)| format!("could not remove {name}: {error}; try as root"));
    removed.chain(devices).chain(refused)
}
