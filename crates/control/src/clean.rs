//! Cleans up after earlier commands: agents that outlived their run, tunnels that were only partly made, settings that
//! were not undone.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::guard::remove_unfinished_journals;
use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::orphan;
pub use wirecost_agent::orphan::{CleanedAgents as Agents, Orphan};
pub use wirecost_agent::protocol::LeftSettings;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::tunnel;
pub use wirecost_agent::tunnel::CleanedTunnels as Tunnels;
use wirecost_model::host::HostAddress;

use crate::hosts::{AgentRole, HostsContext, open};

/// Time-out for undoing: enough for every step of any run, each command at its own limit.
const UNDOING: Duration = Duration::from_hours(1);

/// Ends orphaned agents and daemons, and removes partly made tunnels and partly written journals, on this machine.
///
/// # Errors
/// Where /proc cannot be listed, or a partly written journal cannot be removed. What else could not be ended or removed
/// is in the answer.
pub fn clean() -> io::Result<(Agents, Tunnels)> {
    let cleaned = (orphan::end_all()?, tunnel::clean());
    // Last: an agent that is ended may be writing one, and nothing else depends on it.
    remove_unfinished_journals()?;
    Ok(cleaned)
}

/// Undoes on each host the settings that a killed run left changed.
///
/// # Errors
/// Where a host is not reached, before anything is undone. What could not be undone, also because an agent failed, is
/// in the answer of its host.
pub fn undo_left(
    context: &HostsContext,
    hosts: &[HostAddress],
    interrupt: &AtomicBool,
) -> Result<Vec<LeftSettings>, LinkError> {
    let all: Vec<&HostAddress> = hosts.iter().collect();
    let context = HostsContext {
        role: AgentRole::Commands,
        ..context.clone()
    };
    let links = open(&context, &all, interrupt)?;
    let mut undone = Vec::new();
    for (host, link) in hosts.iter().zip(links) {
        let mut left = answer(undo_by(link, interrupt))?;
        // Settings that a run changed as root, by sudo, are in root's journals.
        let as_root = HostsContext {
            role: AgentRole::Change,
            ..context.clone()
        };
        let by_root = (!host.place.is_here()).then(|| open(&as_root, &[host], interrupt));
        match by_root.transpose() {
            Ok(links) => {
                for link in links.into_iter().flatten() {
                    add(&mut left, answer(undo_by(link, interrupt))?);
                }
            }
            // Where sudo does not work, no run can have changed settings as root.
            Err(LinkError::NoAgent { .. }) => {}
            Err(error) => add(&mut left, answer(Err(error))?),
        }
        undone.push(left);
    }
    forget_emptied(&mut undone);
    Ok(undone)
}

/// Hosts with the same home directory tell of each other's journals, also of those that are undone later.
fn forget_emptied(hosts: &mut [LeftSettings]) {
    let emptied: Vec<String> = hosts.iter().flat_map(|left| left.emptied.clone()).collect();
    for left in hosts {
        left.elsewhere
            .retain(|journal| !emptied.contains(&journal.file));
    }
}

/// The answer of an agent; where it failed, the error as what could not be undone. Other hosts may have undone
/// something before.
fn answer(undone: Result<LeftSettings, LinkError>) -> Result<LeftSettings, LinkError> {
    match undone {
        Err(LinkError::Interrupted) => Err(LinkError::Interrupted),
        Err(error) => Ok(LeftSettings {
            failed: vec![error.to_string()],
            ..LeftSettings::default()
        }),
        Ok(left) => Ok(left),
    }
}

/// Adds what another agent of the same host undid.
fn add(left: &mut LeftSettings, more: LeftSettings) {
    let LeftSettings {
        undone,
        gone,
        failed,
        emptied,
        elsewhere,
    } = more;
    left.undone.extend(undone);
    left.gone.extend(gone);
    left.emptied.extend(emptied);
    // An agent whose login is root finds what the one before it could not undo.
    add_new(&mut left.failed, failed);
    add_new(&mut left.elsewhere, elsewhere);
}

fn add_new<T: PartialEq>(known: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

fn undo_by(mut link: Link, interrupt: &AtomicBool) -> Result<LeftSettings, LinkError> {
    match link.call(&Request::UndoLeft, UNDOING, interrupt)? {
        Reply::Undone(left) => Ok(left),
        _ => Err(link.unexpected_reply("UndoLeft")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirecost_agent::protocol::ElsewhereJournal;

    fn journal(file: &str) -> ElsewhereJournal {
        ElsewhereJournal {
            file: file.to_owned(),
            message: format!("{file} is of another host"),
        }
    }

    #[test]
    fn all_that_is_in_roots_journals_is_told_too() {
        let of = |whose: &str| LeftSettings {
            undone: vec![format!("undone by {whose}")],
            gone: vec![format!("gone for {whose}")],
            failed: vec![format!("failed for {whose}")],
            emptied: vec![format!("emptied for {whose}")],
            elsewhere: vec![journal(whose)],
        };
        let mut left = of("user");
        add(&mut left, of("root"));
        let both = |what: &str| ["user", "root"].map(|whose| format!("{what} {whose}"));
        assert_eq!(left.undone, both("undone by"));
        assert_eq!(left.gone, both("gone for"));
        assert_eq!(left.failed, both("failed for"));
        assert_eq!(left.emptied, both("emptied for"));
        assert_eq!(left.elsewhere, ["user", "root"].map(journal));
        add(&mut left, of("root"));
        assert_eq!(left.failed, both("failed for"), "told once");
        assert_eq!(left.elsewhere, ["user", "root"].map(journal), "told once");
    }

    #[test]
    fn a_journal_that_another_host_undoes_in_the_same_command_is_not_told() {
        let of = |emptied: &str, elsewhere: [&str; 2]| LeftSettings {
            emptied: vec![emptied.to_owned()],
            elsewhere: elsewhere.map(journal).into(),
            ..LeftSettings::default()
        };
        let mut hosts = [of("a", ["b", "c"]), of("b", ["a", "c"])];
        forget_emptied(&mut hosts);
        for left in hosts {
            assert_eq!(left.elsewhere, [journal("c")]);
        }
    }

    #[test]
    fn an_agent_that_fails_does_not_hide_what_the_other_hosts_undid() {
        let lost = LinkError::Timeout {
            host: "ssh:b".to_owned(),
            during: "undoing",
            seconds: 3.0,
        };
        let words = lost.to_string();
        let left = answer(Err(lost)).expect("an answer");
        assert_eq!(left.failed, [words]);
        assert!(answer(Err(LinkError::Interrupted)).is_err());
    }
}
