//! A child process as a stream of bytes both ways. Every wait has an end, and nothing of the child's outlives this.

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

/// How often a wait looks at the interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);
/// How long an end is waited for where only its status is wanted.
const STATUS_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a wait for a process's end looks.
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

/// Where the child's standard error goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StderrMode {
    /// Inherited from this process.
    Shared,
    /// Its last lines are kept for an error message.
    Kept,
    /// Its last lines are kept, and everything is passed on.
    Aloud,
}

/// A running child. Dropping it ends it, and every process of its group.
#[derive(Debug)]
pub(super) struct ChildLine {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    arrived: Vec<u8>,
    stderr_tail: Option<StderrTail>,
    ended: Option<ExitStatus>,
    /// How long it may take to exit by itself.
    exit_timeout: Duration,
}

impl ChildLine {
    pub(super) fn spawn(
        command: &mut Command,
        hearing: StderrMode,
        exit_timeout: Duration,
    ) -> io::Result<Self> {
        // A group of its own: the terminal's Ctrl-C is for the controller to handle, and what the child starts
        // in turn is known.
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
        let mut line = Self {
            child,
            input: Some(input),
            output,
            arrived: Vec::new(),
            stderr_tail: None,
            ended: None,
            exit_timeout,
        };
        // From here on dropping the line ends the child.
        let aloud = hearing == StderrMode::Aloud;
        line.stderr_tail = errors
            .map(|errors| StderrTail::listen(errors, aloud))
            .transpose()?;
        if let Some(input) = &line.input {
            fcntl(input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(line)
    }

    /// Sets how long it may take to exit by itself.
    pub(super) fn set_exit_timeout(&mut self, exit_timeout: Duration) {
        self.exit_timeout = exit_timeout;
    }

    /// Sends all bytes.
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

    /// Waits until `take` finds what it looks for in what has arrived; it removes what it takes.
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

    /// Ends it, and says how that was: what it said last is in it.
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

    /// The last lines of its standard error, if they are kept.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr_tail
            .as_ref()
            .map(StderrTail::last)
            .unwrap_or_default()
    }

    /// Its exit status, if it ends within the time. A stopped one does not.
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

    /// Whether it has ended; it is not waited for, so that the number of its group still is its own.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(
            waitid(Id::Pid(self.pid()), flags),
            Ok(WaitStatus::StillAlive)
        )
    }

    /// Whether a signal has stopped it, as SIGSTOP does.
    fn is_stopped(&self) -> bool {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(
            waitid(Id::Pid(self.pid()), flags),
            Ok(WaitStatus::Stopped(..))
        )
    }

    /// Ends what is left of its group, and waits for it.
    fn reap(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.ended = self.child.wait().ok().or(Some(ExitStatus::default()));
    }

    /// What the child, and what it starts, worked so far.
    pub(super) fn worked(&self) -> impl Fn() -> extended_wait::Work + use<> {
        let group = self.child.id();
        move || extended_wait::of_group(group)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for ChildLine {
    fn drop(&mut self) {
        // Closing its input ends it; a stopped one has to be killed.
        drop(self.input.take());
        if self.status(self.exit_timeout).is_none() {
            self.reap();
        }
    }
}

/// Waits until the stream can be used.
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
