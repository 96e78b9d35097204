//! Agents on existing hosts: this machine, its network namespaces, other machines, or whatever a command leads to.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_model::host::{HostAddress, Location, SshHost};

use super::binaries::Binaries;
use super::child::{ChildStream, StderrMode, WaitError};
use super::shell::{self, StartFailure};
use super::{Link, LinkError};
use crate::orphan::Owner;
use crate::role::AgentRole;

/// How long an agent on this machine may take to exit by itself.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long an agent behind ssh or a command may take to exit by itself.
const REMOTE_EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an agent may take to answer `Hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(15);
/// An agent behind a shell exits after this many seconds without a request, in addition to [`HostAgent::idle`]: the
/// controller's machine may have failed without closing the connection.
const IDLE_S: u64 = 900;

/// How to start the agent of an existing host.
#[derive(Debug, Clone)]
pub struct HostAgent {
    /// The `wirecost` program.
    pub program: PathBuf,
    /// Programs for other architectures.
    pub binaries: Binaries,
    /// The place of the host and its addresses.
    pub host: HostAddress,
    /// The controller that starts the agent.
    pub owner: Owner,
    /// The agent's purpose: it keeps the capabilities for that. Where it needs root and the login on another machine is
    /// another user, the agent is started by `sudo -n`.
    pub role: AgentRole,
    /// How long the controller may have nothing to ask for.
    pub idle: Duration,
    /// How much it logs to standard error: 0 nothing, 1 its steps, 2 everything.
    pub verbose: u8,
}

/// An agent that was started and has not answered `Hello` yet. Dropping this ends the agent.
#[derive(Debug)]
pub struct StartingAgent {
    name: String,
    child: ChildStream,
    program: PathBuf,
    binaries: Binaries,
    /// Arguments of an agent behind a shell; `None` for an agent on this machine.
    behind_a_shell: Option<Vec<String>>,
    needs_root: bool,
}

impl StartingAgent {
    /// Waits until the agent is up, and exchanges `Hello`. Another machine gets a copy of the program in a private
    /// directory, which is removed once the agent has started, unless the same program is installed there.
    pub fn finish(mut self, interrupt: &AtomicBool) -> Result<Link, LinkError> {
        if let Some(arguments) = &self.behind_a_shell {
            let (program, binaries) = (&self.program, &self.binaries);
            shell::bring_up(
                &mut self.child,
                program,
                binaries,
                arguments,
                self.needs_root,
                interrupt,
            )
            .map_err(|failure| failed(&mut self.child, self.name.clone(), failure))?;
        }
        Link::hello(self.name, self.child, HELLO_TIMEOUT, interrupt)
    }
}

impl Link {
    /// Starts the agent of an existing host and exchanges `Hello`.
    pub fn open(agent: &HostAgent, interrupt: &AtomicBool) -> Result<Self, LinkError> {
        Self::begin(agent)?.finish(interrupt)
    }

    /// Starts the agent of an existing host without waiting for it.
    pub fn begin(agent: &HostAgent) -> Result<StartingAgent, LinkError> {
        let name = agent.host.place.to_string();
        let role = agent.role.word();
        let mut arguments: Vec<String> = ["agent", "--host", &name, "--in-place", "--duty", role]
            .map(str::to_owned)
            .into();
        if agent.verbose > 0 {
            arguments.push(format!("-{}", "v".repeat(agent.verbose.into())));
        }
        let near = |more: &[&str]| {
            let mut command = Command::new(&agent.program);
            command
                .args(&arguments)
                .args(["--owner", &agent.owner.argument()])
                .args(more);
            (command, false)
        };
        let (mut command, behind_a_shell) = match &agent.host.place {
            Location::Local => near(&[]),
            Location::Netns(netns) => near(&["--netns", netns]),
            Location::Ssh(ssh) => (ssh_command(ssh), true),
            Location::Exec(line) => {
                let mut words = line.words.iter();
                let mut command = Command::new(words.next().map_or("", String::as_str));
                command.args(words);
                (command, true)
            }
        };
        if behind_a_shell {
            command.arg("sh");
        }
        let (hearing, exit_timeout) = match (behind_a_shell, agent.verbose) {
            (false, _) => (StderrMode::Shared, EXIT_TIMEOUT),
            (true, 0) => (StderrMode::Kept, REMOTE_EXIT_TIMEOUT),
            (true, _) => (StderrMode::Aloud, REMOTE_EXIT_TIMEOUT),
        };
        let spawned = ChildStream::spawn(&mut command, hearing, exit_timeout);
        let child = spawned.map_err(|source| LinkError::Start {
            host: name.clone(),
            source: explained(source, &command, &agent.host.place),
        })?;
        Ok(StartingAgent {
            name,
            child,
            program: agent.program.clone(),
            binaries: agent.binaries.clone(),
            needs_root: agent.role.needs_root(),
            behind_a_shell: behind_a_shell.then(|| {
                let limit = IDLE_S.saturating_add(agent.idle.as_secs());
                arguments.extend(["--idle-limit".to_owned(), limit.to_string()]);
                arguments
            }),
        })
    }
}

/// The user's ssh client, without prompts and forwarding. An existing shared connection is used, but none is made: a
/// new one would outlive the controller.
fn ssh_command(ssh: &SshHost) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-x", "-a"]);
    for option in [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        "ControlMaster=no",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
    ] {
        command.args(["-o", option]);
    }
    if let Some(port) = ssh.port {
        command.args(["-p", &port.to_string()]);
    }
    let destination = match &ssh.user {
        Some(user) => format!("{user}@{}", ssh.host),
        None => ssh.host.clone(),
    };
    command.args(["--", &destination]);
    command
}

fn explained(error: io::Error, command: &Command, place: &Location) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let program = command.get_program().to_string_lossy();
    let what = match place {
        Location::Ssh(_) => {
            "there is no ssh in the PATH: install an ssh client (openssh-client)".to_owned()
        }
        _ => format!("there is no program {program} in the PATH"),
    };
    io::Error::new(io::ErrorKind::NotFound, what)
}

fn failed(child: &mut ChildStream, host: String, failure: StartFailure) -> LinkError {
    match failure {
        StartFailure::Stopped(WaitError::Interrupted, _) => LinkError::Interrupted,
        StartFailure::Stopped(WaitError::TimedOut, within) => LinkError::Timeout {
            host,
            during: "starting",
            seconds: within.as_secs_f64(),
        },
        StartFailure::Stopped(WaitError::Closed, _) => LinkError::Ended {
            host,
            during: "starting",
            how: child.end(),
        },
        StartFailure::Words(message) => {
            let said = child.stderr_tail();
            let message = if said.is_empty() {
                message
            } else {
                format!("{message} (and on standard error: `{said}`)")
            };
            LinkError::NoAgent { host, message }
        }
    }
}
