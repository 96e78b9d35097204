//! Agents that outlived their controller: stopped ones, or ones that missed its end.
//!
//! A settings guard ([`crate::guard`]) exits by itself once it has undone the settings; a stopped one is continued
//! (SIGCONT), and never killed.
//!
//! The daemons of a lab host's Open vSwitch have the controller in their arguments too ([`wirecost_ovs::owner_in`]).
//! The kernel kills them with their agent; those that are still running are ended here.
//!
//! Every agent is started with `--owner PID:START`: the controller's process id and its start time (field 22 of
//! /proc/PID/stat), which together never name another process. In another PID namespace, such as a container's, the id
//! is that namespace's: its agents are left alone, and are cleaned up there.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use serde::Serialize;
use wirecost_sys::process::PidFd;

/// How long a killed agent may take to disappear.
const PATIENCE: Duration = Duration::from_secs(30);

/// The controller that started an agent: process id and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    start_ticks: u64,
}

impl Owner {
    /// The calling process.
    pub fn this() -> io::Result<Self> {
        let pid = std::process::id();
        let start_ticks = start_ticks(pid).ok_or_else(|| io::Error::other("unreadable /proc"))?;
        Ok(Self { pid, start_ticks })
    }

    /// The value of an agent's `--owner` argument: `PID:START`.
    pub fn argument(self) -> String {
        format!("{}:{}", self.pid, self.start_ticks)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, start) = text.split_once(':')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start.parse().ok()?,
        })
    }

    pub(crate) fn is_alive(self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
            && state(self.pid).is_some_and(|state| state != 'Z' && state != 'X')
    }
}

/// An agent whose controller is gone, or a daemon of Open vSwitch that such an agent started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// Process id of the orphan.
    pub pid: u32,
    /// Process id of the controller that started it.
    pub controller: u32,
    /// Whether the process was stopped (by SIGSTOP or a debugger).
    pub stopped: bool,
    /// Whether the process is a daemon of a lab host's Open vSwitch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub daemon: bool,
    /// Whether the process is a settings guard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guard: bool,
}

/// Result of [`end_all`].
#[derive(Debug, Default)]
pub struct CleanedAgents {
    /// Orphans that were ended.
    pub ended: Vec<Orphan>,
    /// Orphans that could not be ended, stopped settings guards that could not be continued, and why.
    pub refused: Vec<(Orphan, io::Error)>,
}

/// Kills every agent on this machine whose controller is gone, and waits until it has ended.
///
/// Agents of living controllers, and processes that are not agents, are left alone.
///
/// # Errors
/// /proc cannot be listed.
pub fn end_all() -> io::Result<CleanedAgents> {
    let mut cleaned = CleanedAgents::default();
    let mut dying = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The handle is opened first: what is read after that is about the process that it holds.
        let Ok(handle) = PidFd::open(pid) else {
            continue;
        };
        let stopped = state(pid).is_some_and(|state| state == 'T' || state == 't');
        let guard = owner_of(pid, "settings-guard").filter(|owner| stopped && !owner.is_alive());
        if let Some(owner) = guard {
            let orphan = Orphan {
                pid,
                controller: owner.pid,
                stopped,
                daemon: false,
                guard: true,
            };
            let refused = handle.resume().err().filter(|error| !is_gone(error));
            cleaned.refused.extend(refused.map(|error| (orphan, error)));
            continue;
        }
        let agent = owner_of(pid, "agent");
        let daemon = agent.is_none();
        let of = agent.or_else(|| owner_of_daemon(pid));
        let Some(owner) = of.filter(|owner| !owner.is_alive()) else {
            continue;
        };
        let orphan = Orphan {
            pid,
            controller: owner.pid,
            stopped,
            daemon,
            guard: false,
        };
        match handle.kill() {
            Ok(()) => dying.push((orphan, handle)),
            // It has ended by itself since it was read.
            Err(error) if is_gone(&error) => {}
            Err(error) => cleaned.refused.push((orphan, error)),
        }
    }
    for (orphan, handle) in dying {
        match handle.wait(PATIENCE) {
            Ok(true) => cleaned.ended.push(orphan),
            Ok(false) => cleaned
                .refused
                .push((orphan, io::ErrorKind::TimedOut.into())),
            Err(error) => cleaned.refused.push((orphan, error)),
        }
    }
    Ok(cleaned)
}

/// Whether a signal could not be sent because the process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// The owner of an agent or a settings guard; `None` for other processes. argv is `wirecost agent ... --owner
/// PID:START`.
fn owner_of(pid: u32, kind: &str) -> Option<Owner> {
    if state(pid)? == 'Z' {
        return None;
    }
    let text = command_line(pid)?;
    let mut words = text.split('\0');
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    if program != "wirecost" || words.next()? != kind {
        return None;
    }
    words.by_ref().find(|word| *word == "--owner")?;
    let owner = Owner::parse(words.next()?);
    owner.filter(|_| is_numbered_here(pid))
}

fn owner_of_daemon(pid: u32) -> Option<Owner> {
    if state(pid)? == 'Z' {
        return None;
    }
    let owner = Owner::parse(wirecost_ovs::owner_in(&command_line(pid)?)?);
    owner.filter(|_| is_numbered_here(pid))
}

/// Whether a process is in the PID namespace of /proc, and so names its owner by the ids that are read there.
fn is_numbered_here(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| pid_namespaces(&status) == 1)
}

/// Number of nested PID namespaces, from that of /proc, in which a process has an id, by its /proc/PID/status.
fn pid_namespaces(status: &str) -> usize {
    let mut lines = status.lines();
    let ids = lines.find_map(|line| line.strip_prefix("NSpid:"));
    // A kernel without CONFIG_PID_NS has no such line.
    ids.map_or(1, |ids| ids.split_whitespace().count())
}

fn command_line(pid: u32) -> Option<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    String::from_utf8(raw).ok()
}

/// Fields of /proc/PID/stat after the command name, which may contain anything.
fn stat(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.to_owned())
}

fn state(pid: u32) -> Option<char> {
    stat(pid)?.split_whitespace().next()?.chars().next()
}

fn start_ticks(pid: u32) -> Option<u64> {
    // Field 22; the first field after the command name is field 3.
    stat(pid)?.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_with_another_start_is_not() {
        let this = Owner::this().expect("proc");
        assert!(this.is_alive());
        assert!(
            !Owner {
                start_ticks: this.start_ticks + 1,
                ..this
            }
            .is_alive()
        );
        assert_eq!(Owner::parse(&this.argument()), Some(this));
    }

    #[test]
    fn a_process_that_ended_meanwhile_is_told_by_the_error_of_its_signal() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let handle = PidFd::open(child.id()).expect("a child");
        child.wait().expect("it ends");
        let error = handle.kill().expect_err("nobody to kill");
        assert!(is_gone(&error), "{error}");
        assert!(!is_gone(&io::Error::from_raw_os_error(Errno::EPERM as i32)));
    }

    #[test]
    fn ids_of_another_pid_namespace_are_not_taken_for_ours() {
        // As fs/proc/array.c prints them, `task_state`.
        for (line, namespaces) in [("NSpid:\t4711\n", 1), ("NSpid:\t4711\t7\n", 2), ("", 1)] {
            let status = format!("Name:\twirecost\n{line}VmPeak:\t1 kB\n");
            assert_eq!(pid_namespaces(&status), namespaces, "{status}");
        }
        assert!(is_numbered_here(std::process::id()));
    }

    #[test]
    fn a_process_that_is_no_agent_has_no_owner() {
        assert_eq!(owner_of(std::process::id(), "agent"), None);
    }
}
