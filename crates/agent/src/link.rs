//! A controller's end of the line to one agent: a child process and its standard input and output.

mod error;
mod host;
mod line;
mod said;
mod shell;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tracing::debug;
use wirecost_sys::overtime::Overtime;

use self::line::{Hearing, Line, Stop};
use crate::frame;
use crate::protocol::{Refusal, Reply, Request, VERSION};
use crate::stray::Owner;

pub use error::LinkError;
pub use host::{HostAgent, Starting};

/// How long an agent may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// The same where settings are to be undone: some commands of a plan at their limits.
const LONG_FAREWELL: Duration = Duration::from_mins(1);
/// How long one on this machine may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// How long a request may take to be handed over: it is small, and its reader waits for it.
const HANDOVER: Duration = Duration::from_secs(5);

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
    line: Line,
    /// What was asked and is not answered yet, and when.
    awaited: VecDeque<(&'static str, Instant)>,
    /// What it did not answer in time, and how many seconds that was: an answer that comes now would be taken for another.
    silent: Option<(&'static str, f64)>,
    agent_pid: u32,
}

impl Link {
    /// Starts a lab host's agent and greets it.
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
        match Line::spawn(&mut command, Hearing::Shared, FAREWELL) {
            Ok(line) => Self::greet(host, line, GREETING, interrupt),
            Err(source) => Err(LinkError::Start { host, source }),
        }
    }

    /// Greets the agent at the end of a line.
    fn greet(
        host: String,
        line: Line,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, LinkError> {
        let mut greeted = Self {
            host,
            line,
            awaited: VecDeque::new(),
            silent: None,
            agent_pid: 0,
        };
        match greeted.call(&Request::Hello { version: VERSION }, within, interrupt)? {
            Reply::Hello {
                version: VERSION,
                pid,
            } => greeted.agent_pid = pid,
            Reply::Hello { version, .. } => {
                return Err(LinkError::Version {
                    host: greeted.host.clone(),
                    ours: VERSION,
                    theirs: version,
                });
            }
            _ => return Err(greeted.confused("Hello")),
        }
        Ok(greeted)
    }

    /// Sends a request without waiting, so that several hosts can work at the same time.
    ///
    /// # Errors
    /// All of [`LinkError`]; at once after it was `Silent`.
    pub fn send(&mut self, request: &Request) -> Result<(), LinkError> {
        self.not_silent()?;
        let doing = request.doing();
        let deadline = Instant::now() + HANDOVER;
        // An interrupt is seen while the answer is waited for.
        let uninterrupted = AtomicBool::new(false);
        let sent = frame::encode(request)
            .map_err(|_| Stop::Closed)
            .and_then(|bytes| self.line.send(&bytes, deadline, &uninterrupted));
        if sent.is_err() {
            return Err(self.ended(doing));
        }
        self.awaited.push_back((doing, Instant::now()));
        Ok(())
    }

    /// Waits for the answer to the oldest request that has none yet. An agent on this machine that is at work when the time is
    /// over gets more, six times `within` in all at most; one that hangs a second.
    ///
    /// # Errors
    /// All of [`LinkError`]; only after `Refused` is the line still good.
    pub fn receive(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Reply, LinkError> {
        self.not_silent()?;
        let asked = self.awaited.pop_front();
        let (during, sent) = asked.unwrap_or(("idle", Instant::now()));
        let mut deadline = Instant::now() + within;
        let mut overtime = None;
        let answer = loop {
            let take = |arrived: &mut Vec<u8>| frame::take(arrived).transpose();
            let answer = self.line.receive(deadline, interrupt, take);
            if !matches!(answer, Err(Stop::Late)) {
                break answer;
            }
            let (worked, begins) = (self.line.worked(), overtime.is_none());
            let overtime = overtime.get_or_insert_with(|| Overtime::begin(within, worked));
            if !begins && !overtime.goes_on() {
                break answer;
            }
            deadline = overtime.until();
        };
        debug!(host = self.host, ms = milliseconds(sent), "{during}");
        match answer {
            Ok(Ok(Reply::Failed(Refusal { stage, message }))) => Err(LinkError::Refused {
                stage,
                host: self.host.clone(),
                message,
            }),
            Ok(Ok(reply)) => Ok(reply),
            Err(Stop::Interrupted) => Err(LinkError::Interrupted),
            Err(Stop::Late) => {
                let seconds = sent.elapsed().as_secs_f64();
                self.silent = Some((during, seconds));
                Err(self.was_silent(during, seconds))
            }
            Ok(Err(_)) | Err(Stop::Closed) => Err(self.ended(during)),
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
        if self.awaited.is_empty() && self.line.has_more() {
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
        let farewell = if in_force { LONG_FAREWELL } else { FAREWELL };
        self.line.may_take_to_end(farewell);
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

    fn not_silent(&self) -> Result<(), LinkError> {
        self.silent.map_or(Ok(()), |(during, seconds)| {
            Err(self.was_silent(during, seconds))
        })
    }

    fn was_silent(&self, during: &'static str, seconds: f64) -> LinkError {
        LinkError::Silent {
            host: self.host.clone(),
            during,
            seconds,
        }
    }

    fn ended(&mut self, during: &'static str) -> LinkError {
        LinkError::Ended {
            host: self.host.clone(),
            during,
            how: self.line.end(),
        }
    }
}

fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_not_answer_in_time_is_not_waited_for_again() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let sleeping = Line::spawn(&mut command, Hearing::Shared, Duration::ZERO);
        let mut link = Link {
            host: "a".to_owned(),
            line: sleeping.unwrap(),
            awaited: VecDeque::new(),
            silent: None,
            agent_pid: 0,
        };
        let never = AtomicBool::new(false);
        for within in [Duration::from_millis(50), Duration::from_secs(20)] {
            let error = link.call(&Request::Machine, within, &never).unwrap_err();
            // The second time it is told what was waited for the first time.
            let first = matches!(error, LinkError::Silent { seconds, .. } if seconds < 1.0);
            assert!(first, "{error}");
        }
    }
}
