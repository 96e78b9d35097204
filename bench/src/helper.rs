//! A part of this program that runs as a process of its own (a hidden subcommand) and answers a line with a line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;
use crate::guest::Guest;
use crate::process::check;

/// Between two looks at who else may have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A started one. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Helper {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
}

impl Helper {
    /// This program with a subcommand.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        name: &'static str,
        subcommand: &str,
        guest: &Guest,
    ) -> Result<Self, BenchError> {
        let program = std::env::current_exe()
            .map_err(BenchError::machine("starting a part of this program"))?;
        let words = [program.display().to_string(), subcommand.to_owned()];
        Self::of(name, guest.command(&words))
    }

    fn of(name: &'static str, mut command: Command) -> Result<Self, BenchError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(BenchError::machine("starting a part of this program"))?;
        let (tell, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || forward(output, &tell));
        }
        Ok(Self { name, child, lines })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// # Errors
    /// It has ended.
    pub(crate) fn send_line(&mut self, line: &str) -> Result<(), BenchError> {
        let told = self
            .child
            .stdin
            .as_mut()
            .map(|input| writeln!(input, "{line}").and_then(|()| input.flush()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("it has ended")),
        }
    }

    /// The answer to what it was told last.
    ///
    /// # Errors
    /// None within `within`; `alive` may say what ended meanwhile.
    pub(crate) fn answer<T: DeserializeOwned>(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
        mut alive: impl FnMut() -> Result<(), BenchError>,
    ) -> Result<T, BenchError> {
        let deadline = Instant::now() + within;
        loop {
            check(interrupt)?;
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => {
                    return serde_json::from_str(&line).map_err(|_| self.failed(&line));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("it has ended")),
                Err(RecvTimeoutError::Timeout) => alive()?,
            }
            if Instant::now() >= deadline {
                return Err(self.failed("it gave no answer within its time"));
            }
        }
    }

    fn failed(&self, message: &str) -> BenchError {
        BenchError::Tool {
            name: self.name.to_owned(),
            message: message.to_owned(),
        }
    }
}

fn forward(output: ChildStdout, tell: &Sender<String>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if tell.send(line).is_err() {
            return;
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Its own side: answers the line it was told.
///
/// # Errors
/// In words.
pub(crate) fn answer(what: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(what).map_err(|error| error.to_string())?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(|error| format!("telling what was counted: {error}"))
}

/// What is looked at when the window of a line begins, and when it ends.
///
/// # Errors
/// In words: those of the looks, and a line that is none.
pub(crate) fn over<T>(
    line: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<[T; 2], String> {
    let (warmup, seconds) = window_of(line)?;
    let begin = Instant::now() + warmup;
    thread::sleep(warmup);
    let before = look()?;
    thread::sleep((begin + seconds).saturating_duration_since(Instant::now()));
    Ok([before, look()?])
}

/// `WARMUP SECONDS` of a line.
///
/// # Errors
/// In words.
fn window_of(line: &str) -> Result<(Duration, Duration), String> {
    let mut numbers = line.split_whitespace().map(|word| {
        word.parse()
            .ok()
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
    });
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Some(warmup)), Some(Some(seconds)), None) => Ok((warmup, seconds)),
        _ => Err(format!("`{}` is not WARMUP SECONDS", line.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Helper {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Helper::of("a shell", command).expect("a shell")
    }

    #[test]
    fn a_window_is_two_numbers_of_seconds() {
        assert_eq!(
            window_of("0.4 1\n"),
            Ok((Duration::from_millis(400), Duration::from_secs(1)))
        );
        for line in ["", "1", "1 x", "1 -1", "1 2 3", "inf 1"] {
            assert!(window_of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_line_is_answered_by_a_line() {
        let mut helper = shell("while read line; do echo \"$line\"; done");
        helper.send_line("42").expect("it reads");
        let within = Duration::from_secs(10);
        let answer = helper.answer::<u32>(within, &AtomicBool::new(false), || Ok(()));
        assert_eq!(answer.expect("an echo"), 42);
    }

    #[test]
    fn an_answer_that_makes_no_sense_and_an_end_are_errors() {
        let within = Duration::from_secs(10);
        for (script, words) in [
            ("echo what", "a shell: what"),
            ("true", "a shell: it has ended"),
        ] {
            let answer = shell(script).answer::<u32>(within, &AtomicBool::new(false), || Ok(()));
            assert_eq!(answer.expect_err("no number").to_string(), words);
        }
    }
}
