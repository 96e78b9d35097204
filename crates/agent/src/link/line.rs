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
use wirecost_sys::overtime;

use super::said::Said;

/// How often a wait looks at the interrupt flag.
const GLANCE: Duration = Duration::from_millis(50);
/// How long an end is waited for where only its status is wanted.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How often a wait for a process's end looks.
const LOOK: Duration = Duration::from_millis(1);

/// Why a wait ended without what was waited for.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its time is over.
    Late,
    /// The stream is closed, or broken.
    Closed,
    /// The user interrupted it.
    Interrupted,
}

/// What becomes of what the child says on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It goes where ours goes.
    Shared,
    /// It is kept for an error.
    Kept,
    /// Kept, and passed on.
    Aloud,
}

/// A running child. Dropping it ends it, and every process of its group.
#[derive(Debug)]
pub(super) struct Line {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    arrived: Vec<u8>,
    said: Option<Said>,
    ended: Option<ExitStatus>,
    /// How long it may take to end by itself.
    farewell: Duration,
}

impl Line {
    pub(super) fn spawn(
        command: &mut Command,
        hearing: Hearing,
        farewell: Duration,
    ) -> io::Result<Self> {
        // A group of its own: the terminal's Ctrl-C is for the controller to handle, and what the child starts
        // in turn is known.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if hearing != Hearing::Shared {
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
            said: None,
            ended: None,
            farewell,
        };
        // From here on dropping the line ends the child.
        let aloud = hearing == Hearing::Aloud;
        line.said = errors
            .map(|errors| Said::listen(errors, aloud))
            .transpose()?;
        if let Some(input) = &line.input {
            fcntl(input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(line)
    }

    /// How long it may take to end by itself from now on.
    pub(super) fn may_take_to_end(&mut self, farewell: Duration) {
        self.farewell = farewell;
    }

    /// Hands over all of it.
    pub(super) fn send(
        &mut self,
        mut bytes: &[u8],
        deadline: Instant,
        interrupt: &AtomicBool,
    ) -> Result<(), Stop> {
        let Some(input) = &mut self.input else {
            return Err(Stop::Closed);
        };
        while !bytes.is_empty() {
            match input.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(input, PollFlags::POLLOUT, deadline, interrupt)?;
                }
                Err(_) => return Err(Stop::Closed),
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
    ) -> Result<T, Stop> {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some(taken) = take(&mut self.arrived) {
                return Ok(taken);
            }
            wait(&self.output, PollFlags::POLLIN, deadline, interrupt)?;
            match self.output.read(&mut chunk) {
                Ok(0) => return Err(Stop::Closed),
                Ok(read) => self.arrived.extend(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Stop::Closed),
            }
        }
    }

    /// Whether something arrived that nobody has taken, the stream's end included.
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
        let how = match self.status(self.farewell.min(LAST_WORDS)) {
            Some(status) => status.to_string(),
            None => "its line closed".to_owned(),
        };
        match self.said.as_ref().map(Said::last) {
            Some(said) if !said.is_empty() => format!("{how}, after `{said}`"),
            _ => how,
        }
    }

    /// What it said last on standard error, where that is kept.
    pub(super) fn said(&self) -> String {
        self.said.as_ref().map(Said::last).unwrap_or_default()
    }

    /// Its exit status, if it ends within the time.
    fn status(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        while self.ended.is_none() {
            if self.has_ended() {
                self.reap();
            } else if Instant::now() >= deadline {
                return None;
            } else {
                std::thread::sleep(LOOK);
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

    /// Ends what is left of its group, and waits for it.
    fn reap(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.ended = self.child.wait().ok().or(Some(ExitStatus::default()));
    }

    /// What the child, and what it starts, worked so far.
    pub(super) fn worked(&self) -> impl Fn() -> Duration + use<> {
        let group = self.child.id();
        move || overtime::of_group(group)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Closing its input ends it; a stopped one has to be killed.
        drop(self.input.take());
        if self.status(self.farewell).is_none() {
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
) -> Result<(), Stop> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(GLANCE.min(left)).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(stream.as_fd(), what)];
        match poll(&mut fds, timeout) {
            Ok(ready) if ready > 0 => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Err(Stop::Closed),
        }
        if interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        if left.is_zero() {
            return Err(Stop::Late);
        }
    }
}
