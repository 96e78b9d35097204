//! A program that was started, what it says, and its end. Whatever ends this program ends it too.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::guest::{Guest, ListeningPort};

/// How long it may take to begin, or to end after its test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A started program. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its name and side, for messages.
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    reader: Option<JoinHandle<(String, String)>>,
}

/// What a program said by its end.
#[derive(Debug)]
pub(crate) struct FinishedProgram {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl FinishedProgram {
    /// Its last words, for messages.
    pub(crate) fn words(&self) -> String {
        let words = [&self.errors, &self.output]
            .into_iter()
            .map(|text| text.trim())
            .find(|text| !text.is_empty())
            .unwrap_or("it said nothing");
        let tail: Vec<&str> = words.lines().rev().take(3).collect();
        format!(
            "{}: {}",
            self.status,
            tail.into_iter().rev().collect::<Vec<_>>().join("; ")
        )
    }
}

impl Process {
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, BenchError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(BenchError::machine("starting a tool"))?;
        let input = child.stdin.take();
        let pipes = child.stdout.take().zip(child.stderr.take());
        // Read all along: a full pipe would stop it.
        let reader = pipes.map(|(mut output, mut errors)| {
            thread::spawn(move || {
                let errors = thread::spawn(move || {
                    let mut text = String::new();
                    let _ = errors.read_to_string(&mut text);
                    text
                });
                let mut text = String::new();
                // What cannot be read shows as an answer that makes no sense.
                let _ = output.read_to_string(&mut text);
                (text, errors.join().unwrap_or_default())
            })
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            input,
            reader,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn failed(&self, message: impl Into<String>) -> BenchError {
        BenchError::Tool {
            name: self.name.clone(),
            message: message.into(),
        }
    }

    /// # Errors
    /// It has ended.
    pub(crate) fn still_runs(&mut self, interrupt: &AtomicBool) -> Result<(), BenchError> {
        if self.ended()?.is_none() {
            return Ok(());
        }
        let finished = self.finish(PATIENCE, interrupt)?;
        Err(self.failed(format!("ended before its window: {}", finished.words())))
    }

    /// Writes a line to its input, all of it at once: who has read its end may be gone.
    pub(crate) fn send_line(&mut self, line: &str) -> Result<(), BenchError> {
        let line = format!("{line}\n");
        let told = self
            .input
            .as_mut()
            .map(|input| input.write_all(line.as_bytes()));
        match told {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(format!("it takes no orders: {error}"))),
            None => Err(self.failed("its input is closed")),
        }
    }

    /// Closes its input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits until it waits on a port.
    pub(crate) fn wait_open(
        &mut self,
        guest: &Guest,
        listening_port: ListeningPort,
        interrupt: &AtomicBool,
    ) -> Result<(), BenchError> {
        let deadline = Instant::now() + PATIENCE;
        while !guest.is_open(listening_port) {
            if self.ended()?.is_some() {
                let finished = self.finish(PATIENCE, interrupt)?;
                return Err(self.failed(finished.words()));
            }
            pause(interrupt)?;
            if Instant::now() >= deadline {
                return Err(self.failed("did not begin to listen"));
            }
        }
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, BenchError> {
        self.child
            .try_wait()
            .map_err(BenchError::machine("waiting for a tool"))
    }

    /// Waits for its end and returns what it said.
    pub(crate) fn finish(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<FinishedProgram, BenchError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.ended()? {
                let read = self.reader.take().and_then(|reader| reader.join().ok());
                let (output, errors) = read.unwrap_or_default();
                return Ok(FinishedProgram {
                    status,
                    output,
                    errors,
                });
            }
            pause(interrupt)?;
            if Instant::now() >= deadline {
                let words = format!("did not end within {:.1} s", within.as_secs_f64());
                return Err(self.failed(words));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reaped already, or ended now; there is nobody to tell if neither works.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// # Errors
/// What starts the tools in their guests is not installed.
pub(crate) fn look_for_starters() -> Result<(), BenchError> {
    let package = "util-linux";
    for program in ["nsenter", "taskset", "setpriv", "chrt"] {
        match Command::new(program).arg("--version").output() {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(BenchError::Missing { program, package });
            }
            Err(error) => return Err(BenchError::machine("starting a tool")(error)),
        }
    }
    Ok(())
}

/// The processes that these have started, and so on: their work is theirs too.
pub(crate) fn with_descendants(pids: &[u32]) -> Vec<u32> {
    let mut all = pids.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    all
}

fn pause(interrupt: &AtomicBool) -> Result<(), BenchError> {
    check(interrupt)?;
    sleep(POLL_INTERVAL);
    Ok(())
}

/// # Errors
/// [`BenchError::Interrupted`].
pub(crate) fn check(interrupt: &AtomicBool) -> Result<(), BenchError> {
    if interrupt.load(Ordering::Relaxed) {
        Err(BenchError::Interrupted)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start("sh", command).expect("a shell")
    }

    #[test]
    fn what_it_says_on_both_outputs_is_kept_apart() {
        let finished = shell("echo out; echo err >&2; exit 3")
            .finish(PATIENCE, &AtomicBool::new(false))
            .expect("ends");
        assert_eq!(
            (finished.output.trim(), finished.errors.trim()),
            ("out", "err")
        );
        assert_eq!(finished.words(), "exit status: 3: err");
    }

    #[test]
    fn a_line_reaches_its_input() {
        let mut process = shell("read line; echo \"$line\"");
        process.send_line("0.4 1").expect("open");
        let finished = process.finish(PATIENCE, &AtomicBool::new(false));
        assert_eq!(finished.expect("ends").output.trim(), "0.4 1");
    }

    #[test]
    fn children_of_children_belong_to_it() {
        let mut process = shell("sh -c 'read line' <&0 & read line; wait");
        let deadline = Instant::now() + PATIENCE;
        while with_descendants(&[process.pid()]).len() < 2 && Instant::now() < deadline {
            sleep(POLL_INTERVAL);
        }
        assert_eq!(with_descendants(&[process.pid()]).len(), 2);
        process.send_line("end\nend").expect("open");
    }
}
