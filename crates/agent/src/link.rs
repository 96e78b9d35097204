//! The controller's connection to one agent: a child process and its standard input and output.

mod binaries;
mod child;
mod error;
mod host;
mod shell;
mod stderr_tail;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tracing::debug;
use wirecost_sys::extended_wait::ExtendedWait;

use self::child::{ChildStream, StderrMode, WaitError};
use crate::frame;
use crate::orphan::Owner;
use crate::protocol::{Refusal, Reply, Request, VERSION};

pub use binaries::Binaries;
pub use error::LinkError;
pub use host::{HostAgent, StartingAgent};

/// How long an agent may take to exit by itself.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Exit timeout while settings are applied: undoing them may run several commands up to their time limits.
const UNDO_TIMEOUT: Duration = Duration::from_mins(1);
/// How long an agent on this machine may take to answer `Hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// How long sending a request may take: requests are small, and an idle agent reads them at once.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How to start a lab host's agent.
#[derive(Debug, Clone)]
pub struct LabAgent {
    /// The `wirecost` program.
    pub program: PathBuf,
    /// Name of the host.
    pub host: String,
    /// The controller that starts the agent.
    pub owner: Owner,
    /// Process whose user namespace the agent joins; `None`: it makes its own where it needs one.
    pub user_namespace_of: Option<u32>,
    /// Cores that the agent is pinned to.
    pub cpus: Vec<u32>,
    /// How much it logs to standard error: 0 nothing, 1 its steps, 2 everything.
    pub verbose: u8,
}

/// A running agent. Dropping it ends the agent, and with it a lab host's network.
#[derive(Debug)]
pub struct Link {
    host: String,
    child: ChildStream,
    /// Requests without an answer so far, oldest first, and when they were sent.
    awaited: VecDeque<(&'static str, Instant)>,
    /// The request that was not answered in time, and after how many seconds: a later answer would be taken for another
    /// request's.
    timed_out: Option<(&'static str, f64)>,
    agent_pid: u32,
}

impl Link {
    /// Starts a lab host's agent and exchanges `Hello`.
    pub fn start(agent: &LabAgent, interrupt: &AtomicBool) -> Result<Self, LinkError> {
        let cpus: Vec<String> = agent.cpus.iter().map(u32::to_string).collect();
        let mut command = Command::new(&agent.program);
        command
            .args(["agent", "--host", &agent.host])
            .args(["--owner", &agent.owner.argument()])
            .args(["--cpus", &cpus.join(",")]);
        if agent.verbose > 0 {
            command.arg(format!("-{}", "v".repeat(agent.verbose.into())));
        }
        if let Some(pid) = agent.user_namespace_of {
            command.args(["--user-namespace-of", &pid.to_string()]);
        }
        let host = agent.host.clone();
        match ChildStream::spawn(&mut command, StderrMode::Shared, EXIT_TIMEOUT) {
            Ok(child) => Self::hello(host, child, HELLO_TIMEOUT, interrupt),
            Err(source) => Err(LinkError::Start { host, source }),
        }
    }

    /// Exchanges `Hello` with the agent.
    fn hello(
        host: String,
        child: ChildStream,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, LinkError> {
        let mut opened = Self {
            host,
            child,
            awaited: VecDeque::new(),
            timed_out: None,
            agent_pid: 0,
        };
        match opened.call(&Request::Hello { version: VERSION }, within, interrupt)? {
            Reply::Hello {
                version: VERSION,
                pid,
            } => opened.agent_pid = pid,
            Reply::Hello { version, .. } => {
                return Err(LinkError::Version {
                    host: opened.host.clone(),
                    ours: VERSION,
                    theirs: version,
                });
            }
            _ => return Err(opened.unexpected_reply("Hello")),
        }
        Ok(opened)
    }

    /// Sends a request without waiting, so that several hosts can work at the same time.
    ///
    /// # Errors
    /// Any of [`LinkError`]; after a `Timeout`, the same again at once.
    pub fn send(&mut self, request: &Request) -> Result<(), LinkError> {
        self.refuse_after_timeout()?;
        let doing = request.doing();
        let deadline = Instant::now() + SEND_TIMEOUT;
        // The interrupt flag is checked while waiting for the answer.
        let uninterrupted = AtomicBool::new(false);
        let sent = frame::encode(request)
            .map_err(|_| WaitError::Closed)
            .and_then(|bytes| self.child.send(&bytes, deadline, &uninterrupted));
        if sent.is_err() {
            return Err(self.ended(doing));
        }
        self.awaited.push_back((doing, Instant::now()));
        Ok(())
    }

    /// Waits for the answer to the oldest request without one. An agent on this machine that is still working when
    /// `within` is over gets more time, up to six times `within` in all; one that hangs gets three seconds.
    ///
    /// # Errors
    /// Any of [`LinkError`]; only after `Refused` can the connection still be used.
    pub fn receive(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Reply, LinkError> {
        self.receive_while(within, interrupt, (Duration::MAX, &mut || {}))
    }

    /// [`Link::receive`]; calls `meanwhile` whenever it has waited for `every`.
    pub fn receive_while(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
        (every, meanwhile): (Duration, &mut dyn FnMut()),
    ) -> Result<Reply, LinkError> {
        self.refuse_after_timeout()?;
        let asked = self.awaited.pop_front();
        let (during, sent) = asked.unwrap_or(("idle", Instant::now()));
        let mut deadline = Instant::now() + within;
        let mut extended = None;
        let answer = loop {
            let take = |arrived: &mut Vec<u8>| frame::take(arrived).transpose();
            let next = Instant::now().checked_add(every);
            let until = next.map_or(deadline, |next| next.min(deadline));
            let answer = self.child.receive(until, interrupt, take);
            if !matches!(answer, Err(WaitError::TimedOut)) {
                break answer;
            }
            if until < deadline {
                meanwhile();
                continue;
            }
            let (activity, begins) = (self.child.activity(), extended.is_none());
            let extended = extended.get_or_insert_with(|| ExtendedWait::begin(within, activity));
            if !begins && !extended.extend() {
                break answer;
            }
            deadline = extended.until();
        };
        debug!(host = self.host, ms = milliseconds(sent), "{during}");
        match answer {
            Ok(Ok(Reply::Failed(Refusal { stage, message }))) => Err(LinkError::Refused {
                stage,
                host: self.host.clone(),
                message,
            }),
            Ok(Ok(reply)) => Ok(reply),
            Err(WaitError::Interrupted) => Err(LinkError::Interrupted),
            Err(WaitError::TimedOut) => {
                let seconds = sent.elapsed().as_secs_f64();
                self.timed_out = Some((during, seconds));
                Err(self.timeout_error(during, seconds))
            }
            Ok(Err(_)) | Err(WaitError::Closed) => Err(self.ended(during)),
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

    /// Fails where the agent has ended: an error of another host is then only a consequence.
    pub fn check_running(&mut self, during: &'static str) -> Result<(), LinkError> {
        // No answer is due, so the stream is readable only at its end.
        if self.awaited.is_empty() && self.child.has_more() {
            return Err(self.ended(during));
        }
        Ok(())
    }

    /// Sends a request whose answer is [`Reply::Done`].
    pub fn done(
        &mut self,
        request: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        match self.call(request, within, interrupt)? {
            Reply::Done => Ok(()),
            _ => Err(self.unexpected_reply(request.doing())),
        }
    }

    /// Sets the exit timeout by whether settings are applied on the host. The agent undoes them before it exits, which
    /// may take as long as the plan's commands.
    pub fn set_settings_applied(&mut self, applied: bool) {
        let exit_timeout = if applied { UNDO_TIMEOUT } else { EXIT_TIMEOUT };
        self.child.set_exit_timeout(exit_timeout);
    }

    /// Process id of the agent on its host.
    pub fn pid(&self) -> u32 {
        self.agent_pid
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The error for an unexpected reply.
    pub fn unexpected_reply(&self, during: &str) -> LinkError {
        LinkError::UnexpectedReply {
            host: self.host.clone(),
            during: during.to_owned(),
        }
    }

    fn refuse_after_timeout(&self) -> Result<(), LinkError> {
        self.timed_out.map_or(Ok(()), |(during, seconds)| {
            Err(self.timeout_error(during, seconds))
        })
    }

    fn timeout_error(&self, during: &'static str, seconds: f64) -> LinkError {
        LinkError::Timeout {
            host: self.host.clone(),
            during,
            seconds,
        }
    }

    fn ended(&mut self, during: &'static str) -> LinkError {
        LinkError::Ended {
            host: self.host.clone(),
            during,
            how: self.child.end(),
        }
    }
}

fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to a process that does not answer.
    fn silent() -> Link {
        let mut command = Command::new("sleep");
        command.arg("60");
        let sleeping = ChildStream::spawn(&mut command, StderrMode::Shared, Duration::ZERO);
        Link {
            host: "a".to_owned(),
            child: sleeping.unwrap(),
            awaited: VecDeque::new(),
            timed_out: None,
            agent_pid: 0,
        }
    }

    #[test]
    fn something_else_can_be_done_while_an_answer_is_waited_for() {
        let (mut link, never) = (silent(), AtomicBool::new(false));
        link.send(&Request::Machine).unwrap();
        let mut times = 0;
        let often = Duration::from_millis(1);
        let mut meanwhile = || times += 1;
        let error = link.receive_while(Duration::from_secs(1), &never, (often, &mut meanwhile));
        assert!(matches!(error, Err(LinkError::Timeout { .. })));
        assert!(times > 0);
    }

    #[test]
    fn who_did_not_answer_in_time_is_not_waited_for_again() {
        let (mut link, never) = (silent(), AtomicBool::new(false));
        for within in [Duration::from_millis(50), Duration::from_secs(20)] {
            let error = link.call(&Request::Machine, within, &never).unwrap_err();
            // The second time it is told what was waited for the first time.
            let first = matches!(error, LinkError::Timeout { seconds, .. } if seconds < 20.0);
            assert!(first, "{error}");
        }
    }
}
