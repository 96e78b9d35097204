//! The last lines that a program writes to standard error, for an error message.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write, stderr};
use std::process::ChildStderr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Upper bounds on the lines kept, and on the characters of each.
const LINES: usize = 4;
const LINE_BYTES: usize = 300;
/// How long to wait for the last output of a program that has ended.
const DELAY: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    over: bool,
}

/// The last lines of a program's standard error. They are read continuously, so that the program never blocks on
/// writing.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<(Mutex<Tail>, Condvar)>);

impl StderrTail {
    /// Reads standard error to its end, on a thread that ends with the program. With `aloud`, passes everything on.
    pub(super) fn listen(source: ChildStderr, aloud: bool) -> std::io::Result<Self> {
        let stderr_tail = Self::default();
        let reader = stderr_tail.clone();
        thread::Builder::new()
            .name("stderr-tail".to_owned())
            .spawn(move || reader.read(source, aloud))?;
        Ok(stderr_tail)
    }

    fn read(&self, source: ChildStderr, aloud: bool) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while source
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            if aloud {
                let _ = stderr().lock().write_all(&line);
            }
            let text = readable(&String::from_utf8_lossy(&line));
            if !text.is_empty() {
                let mut tail = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
                tail.lines.push_back(text);
                if tail.lines.len() > LINES {
                    tail.lines.pop_front();
                }
            }
            line.clear();
        }
        let mut tail = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.over = true;
        self.0.1.notify_all();
    }

    /// The last lines, joined by `; `; empty where there are none. Waits up to 2 s for the end of the output.
    pub(super) fn last(&self) -> String {
        let tail = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(tail, DELAY, |tail| !tail.over);
        let (tail, _) = waited.unwrap_or_else(PoisonError::into_inner);
        tail.lines.iter().cloned().collect::<Vec<_>>().join("; ")
    }
}

/// One line for a message: no control characters, shortened.
pub(super) fn readable(text: &str) -> String {
    let text: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match text.char_indices().nth(LINE_BYTES) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}
