//! A controller's end of the line to one agent: a child process and its standard input and output.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing::debug;

use crate::frame;
use crate::protocol::{Reply, Request, VERSION};
use crate::stray::Owner;

/// How often a wait looks at the interrupt flag.
const GLANCE: Duration = Duration::from_millis(50);
/// How long an agent may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// The same where settings are to be undone: some commands of a plan at their limits.
const LONG_FAREWELL: Duration = Duration::from_mins(1);

/// What is wrong with an agent or its line.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It could not be started.
    #[error("starting the agent of host {host}: {source}")]
    Start {
        /// Which host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// It ended, or its line closed.
    #[error("the agent of host {host} ended while {during}: {how}")]
    Ended {
        /// Which host.
        host: String,
        /// What it was doing.
        during: &'static str,
        /// Exit status or signal.
        how: String,
    },
    /// It did not answer in time.
    #[error(
        "the agent of host {host} did not answer within {seconds:.1} s while {during}: the machine is \
         overloaded, or the agent was stopped"
    )]
    Silent {
        /// Which host.
        host: String,
        /// What it was doing.
        during: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// It answered that it could not do what was asked. The agent goes on.
    #[error("host {host}: {message}")]
    Refused {
        /// Which host.
        host: String,
        /// The agent's words.
        message: String,
    },
    /// It answered something else than this request has for an answer.
    #[error(
        "the agent of host {host} gave an answer that does not belong to the question ({during}): not \
         the same wirecost?"
    )]
    Confused {
        /// Which host.
        host: String,
        /// What it was asked.
        during: String,
    },
    /// A setting could not be undone: whatever is measured after it is measured with it.
    #[error("{message}: the run ends, for all that followed would be measured with it")]
    Unsettled {
        /// What, and why not.
        message: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
}

/// How to start a lab host's agent.
#[derive(Debug, Clone)]
pub struct LabAgent {
    /// The `wirecost` program.
    pub program: PathBuf,
    /// The host's name.
    pub host: String,
    /// Who starts it.
    pub owner: Owner,
    /// The process whose user namespace it joins; `None` makes its own where it has to.
    pub user_namespace_of: Option<u32>,
    /// Cores it is pinned to.
    pub cpus: Vec<u32>,
    /// How much it tells on standard error: 0 nothing, 1 its steps, 2 everything.
    pub verbose: u8,
}

/// A running agent. Dropping it ends the agent, and with it a lab host's network.
#[derive(Debug)]
pub struct Link {
    host: String,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// What was asked and is not answered yet, and when.
    awaited: VecDeque<(&'static str, Instant)>,
    agent_pid: u32,
    /// How long it may take to end by itself.
    farewell: Duration,
}

impl Link {
    /// Starts a lab host's agent and greets it.
    pub fn start(agent: &LabAgent, interrupt: &AtomicBool) -> Result<Self, LinkError> {
        let cpus: Vec<String> = agent.cpus.iter().map(u32::to_string).collect();
        let mut command = Command::new(&agent.program);
        command
            .args([
                "agent",
                "--host",
                &agent.host,
                "--owner",
                &agent.owner.argument(),
            ])
            .args(["--cpus", &cpus.join(",")]);
        if agent.verbose > 0 {
            command.arg(format!("-{}", "v".repeat(agent.verbose.into())));
        }
        if let Some(pid) = agent.user_namespace_of {
            command.args(["--user-namespace-of", &pid.to_string()]);
        }
        // A group of its own: the terminal's Ctrl-C is for the controller to handle.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let start = |source| LinkError::Start {
            host: agent.host.clone(),
            source,
        };
        let mut child = command.spawn().map_err(start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(start(io::Error::other("no pipes")));
        };
        let mut link = Self {
            host: agent.host.clone(),
            child,
            input: Some(input),
            output,
            awaited: VecDeque::new(),
            agent_pid: 0,
            farewell: FAREWELL,
        };
        match link.call(
            &Request::Hello { version: VERSION },
            Duration::from_secs(5),
            interrupt,
        )? {
            Reply::Hello {
                version: VERSION,
                pid,
            } => link.agent_pid = pid,
            _ => return Err(link.confused("Hello")),
        }
        Ok(link)
    }

    /// Sends a request without waiting, so that several hosts can work at the same time.
    pub fn send(&mut self, request: &Request) -> Result<(), LinkError> {
        let doing = request.doing();
        let sent = match &mut self.input {
            Some(input) => frame::write(input, request),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if sent.is_err() {
            return Err(self.ended(doing));
        }
        self.awaited.push_back((doing, Instant::now()));
        Ok(())
    }

    /// Waits for the answer to the oldest request that has none yet.
    ///
    /// # Errors
    /// All of [`LinkError`]; only after `Refused` is the line still good.
    pub fn receive(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Reply, LinkError> {
        let asked = self.awaited.pop_front();
        let (during, sent) = asked.unwrap_or(("idle", Instant::now()));
        let deadline = Instant::now() + within;
        while !self.readable(GLANCE.min(deadline.saturating_duration_since(Instant::now()))) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(LinkError::Interrupted);
            }
            if Instant::now() >= deadline {
                let seconds = within.as_secs_f64();
                return Err(LinkError::Silent {
                    host: self.host.clone(),
                    during,
                    seconds,
                });
            }
        }
        let answer = frame::read(&mut self.output);
        debug!(host = self.host, ms = milliseconds(sent), "{during}");
        match answer {
            Ok(Some(Reply::Failed { message })) => Err(LinkError::Refused {
                host: self.host.clone(),
                message,
            }),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) | Err(_) => Err(self.ended(during)),
        }
    }

    /// Sends a request and waits for its answer.
    pub fn call(
        &mut self,
        request: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Reply, LinkError> {
        self.send(request)?;
        self.receive(within, interrupt)
    }

    /// Fails where the agent has ended: what another host complains about is then only the echo.
    pub fn still_there(&mut self, during: &'static str) -> Result<(), LinkError> {
        // With no answer due, only the end of the line makes it readable.
        if self.awaited.is_empty() && self.readable(Duration::ZERO) {
            return Err(self.ended(during));
        }
        Ok(())
    }

    /// Asks for something that has nothing to tell.
    pub fn done(
        &mut self,
        request: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        match self.call(request, within, interrupt)? {
            Reply::Done => Ok(()),
            _ => Err(self.confused(request.doing())),
        }
    }

    /// Whether settings are in force there, which its end has to undo first: that may take as long as a plan's
    /// commands may.
    pub fn set_in_force(&mut self, in_force: bool) {
        self.farewell = if in_force { LONG_FAREWELL } else { FAREWELL };
    }

    /// The agent's process id.
    pub fn pid(&self) -> u32 {
        self.agent_pid
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// For an answer that does not belong to the request.
    pub fn confused(&self, during: &str) -> LinkError {
        LinkError::Confused {
            host: self.host.clone(),
            during: during.to_owned(),
        }
    }

    fn readable(&self, within: Duration) -> bool {
        let mut fds = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
    }

    fn ended(&mut self, during: &'static str) -> LinkError {
        drop(self.input.take());
        let how = match self.wait(FAREWELL) {
            Some(status) => status.to_string(),
            None => "its line closed".to_owned(),
        };
        LinkError::Ended {
            host: self.host.clone(),
            during,
            how,
        }
    }

    fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return None,
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Closing its input ends it; a stopped one has to be killed.
        drop(self.input.take());
        if self.wait(self.farewell).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}
