//! A child process as a byte stream in both directions. Every wait has a time limit, and no process of the child's
//! group outlives it.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use wirecost_sys::extended_wait;

use super::stderr_tail::StderrTail;

/// How often a wait checks the interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);
/// Upper bound on the wait for a child's end where only its exit status is needed.
const STATUS_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a wait for a child's end checks for it.
const EXIT_POLL: Duration = Duration::from_millis(1);

/// Why a wait ended without a result.
#[derive(Debug)]
pub(super) enum WaitError {
    /// The time-out passed.
    TimedOut,
    /// The stream is closed, or broken.
    Closed,
    /// The user interrupted it.
    Interrupted,
}

/// Destination of the child's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StderrMode {
    /// Inherited from this process.
    Shared,
    /// The last lines are kept for an error message.
    Kept,
    /// The last lines are kept, and everything is passed on to this process's standard error.
    Aloud,
}

/// A running child. Dropping it ends the child and every process of its group.
#[derive(Debug)]
pub(super) struct ChildStream {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    arrived: Vec<u8>,
    stderr_tail: Option<StderrTail>,
    ended: Option<ExitStatus>,
    /// How long the child may take to exit by itself.
    exit_timeout: Duration,
}

impl ChildStream {
    pub(super) fn spawn(
        command: &mut Command,
        hearing: StderrMode,
        exit_timeout: Duration,
    ) -> io::Result<Self> {
        // A process group of its own: the controller handles the terminal's Ctrl-C, and processes that the child starts
        // can be ended with it.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if hearing != StderrMode::Shared {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes");
        };
        let errors = child.stderr.take();
        let mut stream = Self {
            child,
            input: Some(input),
            output,
            arrived: Vec::new(),
            stderr_tail: None,
            ended: None,
            exit_timeout,
        };
        // From here on dropping the stream ends the child.
        let aloud = hearing == StderrMode::Aloud;
        stream.stderr_tail = errors
            .map(|errors| StderrTail::listen(errors, aloud))
            .transpose()?;
        if let Some(input) = &stream.input {
            fcntl(input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(stream)
    }

    /// Sets how long the child may take to exit by itself.
    pub(super) fn set_exit_timeout(&mut self, exit_timeout: Duration) {
        self.exit_timeout = exit_timeout;
    }

    /// Sends all of `bytes`.
    pub(super) fn send(
        &mut self,
        mut bytes: &[u8],
        deadline: Instant,
        interrupt: &AtomicBool,
    ) -> Result<(), WaitError> {
        let Some(input) = &mut self.input else {
            return Err(WaitError::Closed);
        };
        while !bytes.is_empty() {
            match input.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(input, PollFlags::POLLOUT, deadline, interrupt)?;
                }
                Err(_) => return Err(WaitError::Closed),
            }
        }
        Ok(())
    }

    /// Waits until `take` returns something from the bytes that have arrived; `take` removes what it uses.
    pub(super) fn receive<T>(
        &mut self,
        deadline: Instant,
        interrupt: &AtomicBool,
        mut take: impl FnMut(&mut Vec<u8>) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some(taken) = take(&mut self.arrived) {
                return Ok(taken);
            }
            wait(&self.output, PollFlags::POLLIN, deadline, interrupt)?;
            match self.output.read(&mut chunk) {
                Ok(0) => return Err(WaitError::Closed),
                Ok(read) => self.arrived.extend(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(WaitError::Closed),
            }
        }
    }

    /// Whether unread bytes, or the end of the stream, have arrived.
    pub(super) fn has_more(&self) -> bool {
        let now = Instant::now();
        let readable = || {
            wait(
                &self.output,
                PollFlags::POLLIN,
                now,
                &AtomicBool::new(false),
            )
        };
        !self.arrived.is_empty() || readable().is_ok()
    }

    /// Ends the child, and describes how it ended, with the last lines of its standard error.
    pub(super) fn end(&mut self) -> String {
        drop(self.input.take());
        let how = match self.status(self.exit_timeout.min(STATUS_TIMEOUT)) {
            Some(status) => status.to_string(),
            None => "its line closed".to_owned(),
        };
        match self.stderr_tail.as_ref().map(StderrTail::last) {
            Some(stderr_tail) if !stderr_tail.is_empty() => format!("{how}, after `{stderr_tail}`"),
            _ => how,
        }
    }

    /// The last lines of the child's standard error; empty where they are not kept.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr_tail
            .as_ref()
            .map(StderrTail::last)
            .unwrap_or_default()
    }

    /// The child's exit status, if it exits within the time; `None` at once for a stopped child.
    fn status(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        while self.ended.is_none() {
            if self.has_ended() {
                self.reap();
            } else if Instant::now() >= deadline || self.is_stopped() {
                return None;
            } else {
                std::thread::sleep(EXIT_POLL);
            }
        }
        self.ended
    }

    /// Whether the child has exited. It is not reaped, so that its process group id stays reserved.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(
            waitid(Id::Pid(self.pid()), flags),
            Ok(WaitStatus::StillAlive)
        )
    }

    /// Whether a signal has stopped the child (SIGSTOP).
    fn is_stopped(&self) -> bool {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(
            waitid(Id::Pid(self.pid()), flags),
            Ok(WaitStatus::Stopped(..))
        )
    }

    /// Kills the rest of the child's process group, and reaps the child.
    fn reap(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.ended = self.child.wait().ok().or(Some(ExitStatus::default()));
    }

    /// Reads the work that the child's process group has done so far.
    pub(super) fn activity(&self) -> impl Fn() -> extended_wait::ProcessActivity + use<> {
        let group = self.child.id();
        move || extended_wait::of_group(group)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for ChildStream {
    fn drop(&mut self) {
        // Closing its input makes the child exit; a stopped one has to be killed.
        drop(self.input.take());
        if self.status(self.exit_timeout).is_none() {
            self.reap();
        }
    }
}

/// Waits until the stream is readable or writable, as `what` says.
fn wait(
    stream: &impl AsFd,
    what: PollFlags,
    deadline: Instant,
    interrupt: &AtomicBool,
) -> Result<(), WaitError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(INTERRUPT_POLL.min(left)).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(stream.as_fd(), what)];
        match poll(&mut fds, timeout) {
            Ok(ready) if ready > 0 => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Err(WaitError::Closed),
        }
        if interrupt.load(Ordering::Relaxed) {
            return Err(WaitError::Interrupted);
        }
        if left.is_zero() {
            return Err(WaitError::TimedOut);
        }
    }
}
