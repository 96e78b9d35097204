//! Starts an agent behind a shell, over one stream: an installed program, or a copy that is sent first.
//!
//! The command at the far end is `sh`, one word that needs no quoting by whatever is in between (a login shell that is
//! fish, `docker exec`, `ip netns exec`). The shell reads a script from its standard input, which the agent inherits.
//! Controller and script take turns, so that neither the shell nor the agent reads bytes that are for the other.

mod choice;
mod script;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tracing::debug;

use super::binaries::{Binaries, Program};
use super::child::{ChildStream, WaitError};
use super::stderr_tail::readable;
use choice::{Choice, Installed, RemoteHost, choose};
use script::script;

/// How long a shell may take to start and to report; this includes ssh's own timeout.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a copy may take: enough for 8 MB at 1 Mbit/s.
const COPY: Duration = Duration::from_secs(90);
/// Prefix of the script's lines, which tells them from other output of login shells.
const MARK: &str = "wirecost-line ";
/// Upper bound on output before the script's first line, bytes: beyond it the far end is not a shell.
const NOISE_BYTES: usize = 64 << 10;

/// Why no agent was started.
#[derive(Debug)]
pub(super) enum StartFailure {
    /// The stream ended, the time limit passed, or the user interrupted; with the time limit.
    Stopped(WaitError, Duration),
    /// Another reason, as a message.
    Words(String),
}

/// Starts an agent behind the shell that `child` leads to; with `sudo -n` where it `needs_root` and the login is
/// another user. Afterwards `child` is the connection to the agent.
pub(super) fn bring_up(
    child: &mut ChildStream,
    program: &Path,
    binaries: &Binaries,
    arguments: &[String],
    needs_root: bool,
    interrupt: &AtomicBool,
) -> Result<(), StartFailure> {
    let mut session = ShellSession {
        child,
        interrupt,
        noise: String::new(),
    };
    match session.send(script(program, arguments, needs_root).as_bytes(), PATIENCE) {
        // The far end has already ended: its output says why.
        Ok(()) | Err(StartFailure::Stopped(WaitError::Closed, _)) => {}
        Err(failure) => return Err(failure),
    }
    let found = session.look_around()?;
    // For the same architecture this is the running program, to be compared with the installed ones.
    let path = binaries.of(program, &found.machine);
    let cannot_read = |error| {
        let path = path.as_deref().unwrap_or(program).display();
        StartFailure::Words(format!("reading {path}, which is to run there: {error}"))
    };
    let ours = path
        .as_deref()
        .map(Program::of)
        .transpose()
        .map_err(cannot_read)?;
    let choice = choose(&found, ours.as_ref().map(|ours| ours.sha256.as_str()));
    let choice = choice.map_err(|none| StartFailure::Words(none.to_string()))?;
    debug!(?found, ?choice, "the far end of a connection");
    match (choice, &ours) {
        (Choice::Installed(number), _) => {
            session.send(format!("{number}\n").as_bytes(), PATIENCE)?;
        }
        (Choice::Copy, ours) => {
            let Some(ours) = ours else {
                unreachable!("what is not there is not copied");
            };
            let packed = ours.gzipped().filter(|_| found.gunzips);
            let (how, bytes) =
                packed.map_or(("copy", ours.bytes.as_slice()), |packed| ("gzip", packed));
            let order = format!("{how} {} {}\n", bytes.len(), ours.sha256);
            session.send(order.as_bytes(), PATIENCE)?;
            session.expect("send", PATIENCE)?;
            match session.send(bytes, COPY) {
                // The far end has stopped reading: its next line says why.
                Ok(()) | Err(StartFailure::Stopped(WaitError::Closed, _)) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    session.expect("run", PATIENCE)
}

struct ShellSession<'a> {
    child: &'a mut ChildStream,
    interrupt: &'a AtomicBool,
    /// Other output of the far end, for an error message.
    noise: String,
}

impl ShellSession<'_> {
    fn send(&mut self, bytes: &[u8], within: Duration) -> Result<(), StartFailure> {
        self.child
            .send(bytes, Instant::now() + within, self.interrupt)
            .map_err(|stop| self.stopped(stop, within))
    }

    fn look_around(&mut self) -> Result<RemoteHost, StartFailure> {
        let mut found = RemoteHost::default();
        loop {
            let said = self.hear(PATIENCE)?;
            let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
            match word {
                "system" => {
                    let mut words = rest.split(' ').map(readable);
                    let mut next = || words.next().unwrap_or_default();
                    (found.system, found.machine) = (next(), next());
                    found.gunzips = !next().is_empty();
                }
                "have" => {
                    let mut parts = rest.splitn(3, ' ');
                    let mut next = || parts.next().unwrap_or_default();
                    let number = next().parse();
                    let (sha256, version) = (next().to_owned(), readable(next()));
                    found.programs.extend(number.ok().map(|number| Installed {
                        number,
                        sha256,
                        version,
                    }));
                }
                "choose" => return Ok(found),
                _ => return Err(foreign(&said)),
            }
        }
    }

    fn expect(&mut self, word: &str, within: Duration) -> Result<(), StartFailure> {
        let said = self.hear(within)?;
        match said.strip_prefix("failed ") {
            Some(why) => Err(StartFailure::Words(readable(why))),
            None if said == word => Ok(()),
            None => Err(foreign(&said)),
        }
    }

    /// The next line of the script, without its prefix; other output before it is kept in `noise`.
    fn hear(&mut self, within: Duration) -> Result<String, StartFailure> {
        let deadline = Instant::now() + within;
        loop {
            let line = self
                .child
                .receive(deadline, self.interrupt, take_line)
                .map_err(|stop| self.stopped(stop, within))?;
            if let Some(said) = line.strip_prefix(MARK) {
                return Ok(said.to_owned());
            }
            self.noise.push_str(&line);
            self.noise.push('\n');
            if self.noise.len() > NOISE_BYTES {
                return Err(self.not_a_shell());
            }
        }
    }

    fn stopped(&self, stop: WaitError, within: Duration) -> StartFailure {
        match stop {
            WaitError::Closed if !self.noise.trim().is_empty() => self.not_a_shell(),
            stop => StartFailure::Stopped(stop, within),
        }
    }

    fn not_a_shell(&self) -> StartFailure {
        let noise = readable(self.noise.lines().next().unwrap_or_default());
        StartFailure::Words(format!(
            "it printed `{noise}` where a shell should run wirecost's commands: the command that leads to the host \
             must run the `sh` that is appended to it, and connect its standard input and output"
        ))
    }
}

fn foreign(said: &str) -> StartFailure {
    let said = readable(said);
    StartFailure::Words(format!(
        "its shell answered `{said}`, which wirecost's script does not print"
    ))
}

/// A complete line without its end. Bytes that are not UTF-8 are replaced: such a line is not the script's.
fn take_line(arrived: &mut Vec<u8>) -> Option<String> {
    let end = match arrived.iter().position(|byte| *byte == b'\n') {
        Some(end) => end,
        // No line of the script is that long.
        None if arrived.len() > NOISE_BYTES => arrived.len() - 1,
        None => return None,
    };
    let line: Vec<u8> = arrived.drain(..=end).collect();
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_one_by_one_and_the_rest_stays() {
        let mut arrived = b"one\r\ntwo\nthr".to_vec();
        assert_eq!(take_line(&mut arrived).as_deref(), Some("one"));
        assert_eq!(take_line(&mut arrived).as_deref(), Some("two"));
        assert_eq!(take_line(&mut arrived), None);
        assert_eq!(arrived, b"thr");
    }
}
