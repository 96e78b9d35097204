//! QEMU's monitor (QMP, docs/interop/qmp-spec.txt of QEMU): lines of JSON both ways.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::QemuError;

/// Time-out of a command. A QEMU process that waits for a core answers late, the first command later still: it has to
/// set the machine up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line that is read, bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A line of the monitor, and when it arrived.
#[derive(Debug)]
pub struct TimedLine {
    /// When the line was complete.
    pub at: Instant,
    /// The line.
    pub line: Line,
}

/// A decoded line of the monitor, or a message of another thread.
#[derive(Debug)]
pub enum Line {
    /// Result of a command, or QEMU's message where it refused the command.
    Answer(Result<Value, String>),
    /// An event's name and data.
    Event(String, Value),
    /// End of the monitor's output: QEMU has ended.
    Ended,
    /// Message that another thread put into the queue ([`crate::Machine::queue`]).
    Other(String),
}

/// One machine's monitor.
#[derive(Debug)]
pub(crate) struct Monitor {
    input: ChildStdin,
    lines: Receiver<TimedLine>,
    queue: Sender<TimedLine>,
    /// Lines that arrived while a command waited for its result.
    before: VecDeque<TimedLine>,
}

fn parse(line: &str) -> Option<Line> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    if let Some(answer) = value.get_mut("return") {
        return Some(Line::Answer(Ok(answer.take())));
    }
    if let Some(error) = value.get("error") {
        let words = error.get("desc").and_then(Value::as_str);
        return Some(Line::Answer(Err(words.unwrap_or("no reason").to_owned())));
    }
    if let Some(greeting) = value.get_mut("QMP") {
        return Some(Line::Event("QMP".to_owned(), greeting.take()));
    }
    let name = value.get("event")?.as_str()?.to_owned();
    let data = value.get_mut("data").map_or(Value::Null, Value::take);
    Some(Line::Event(name, data))
}

fn read(output: ChildStdout, queue: &Sender<TimedLine>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = String::new();
        let read = output.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
        let at = Instant::now();
        let line = match read {
            Ok(0) | Err(_) => Line::Ended,
            // Nothing waits for a line of an unknown kind.
            Ok(_) => match parse(&line) {
                Some(line) => line,
                None => continue,
            },
        };
        let over = matches!(line, Line::Ended);
        if queue.send(TimedLine { at, line }).is_err() || over {
            return;
        }
    }
}

impl Monitor {
    /// Sends commands to `input`, and starts a thread that reads lines from `output`.
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> std::io::Result<Self> {
        let (queue, lines) = channel();
        let sender = queue.clone();
        thread::Builder::new()
            .name("qemu-monitor".to_owned())
            .stack_size(128 << 10)
            .spawn(move || read(output, &sender))?;
        Ok(Self {
            input,
            lines,
            queue,
            before: VecDeque::new(),
        })
    }

    /// Sender into the queue that [`Self::next`] reads ([`Line::Other`]).
    pub(crate) fn queue(&self) -> Sender<TimedLine> {
        self.queue.clone()
    }

    /// The next line or message; `None`: nothing within this time.
    pub(crate) fn next(&mut self, within: Duration) -> Option<TimedLine> {
        if let Some(timed) = self.before.pop_front() {
            return Some(timed);
        }
        match self.lines.recv_timeout(within) {
            Ok(timed) => Some(timed),
            Err(RecvTimeoutError::Timeout) => None,
            // Cannot happen: `queue` is a sender of this channel.
            Err(RecvTimeoutError::Disconnected) => Some(TimedLine {
                at: Instant::now(),
                line: Line::Ended,
            }),
        }
    }

    /// Executes a command and waits for its result. `Ok(None)`: QEMU has ended.
    pub(crate) fn execute(
        &mut self,
        command: &str,
        arguments: &Value,
    ) -> Result<Option<Value>, QemuError> {
        let text = json!({ "execute": command, "arguments": arguments }).to_string();
        if self
            .input
            .write_all(format!("{text}\n").as_bytes())
            .is_err()
        {
            return Ok(None);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(timed) = self.lines.recv_timeout(left) else {
                return Err(QemuError::Silent {
                    command: command.to_owned(),
                    after: PATIENCE,
                });
            };
            match timed.line {
                Line::Answer(Ok(value)) => return Ok(Some(value)),
                Line::Answer(Err(words)) => {
                    return Err(QemuError::Refused {
                        command: command.to_owned(),
                        words,
                    });
                }
                Line::Ended => {
                    self.before.push_back(timed);
                    return Ok(None);
                }
                Line::Event(..) | Line::Other(_) => self.before.push_back(timed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_refusals_and_events_are_told_apart() {
        let answer = parse(r#"{"return": {"status": "active"}}"#);
        assert!(
            matches!(&answer, Some(Line::Answer(Ok(value))) if value["status"] == "active"),
            "{answer:?}"
        );
        let refused = parse(r#"{"error": {"class": "GenericError", "desc": "no such thing"}}"#);
        assert!(
            matches!(&refused, Some(Line::Answer(Err(words))) if words == "no such thing"),
            "{refused:?}"
        );
        let event = parse(r#"{"timestamp": {"seconds": 1}, "event": "STOP"}"#);
        assert!(
            matches!(&event, Some(Line::Event(name, Value::Null)) if name == "STOP"),
            "{event:?}"
        );
        assert!(parse("{}").is_none() && parse("no JSON").is_none());
    }

    proptest! {
        #[test]
        fn whatever_comes_is_judged_without_a_panic(line: String) {
            let _ = parse(&line);
        }
    }
}
