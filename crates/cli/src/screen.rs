//! What the terminal can show, and writing to it.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use serde::Serialize;

use wirecost_report::Terminal;

use crate::{complain, exit};

/// Width without a terminal: pipes and files have room.
const PIPE_WIDTH: usize = 120;

/// Standard output's width, and colour unless it is a pipe or `NO_COLOR` is set (no-color.org).
pub(crate) fn terminal() -> Terminal {
    let is_terminal = stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_size::terminal_size().map_or(PIPE_WIDTH, |(width, _)| width.0.into());
    Terminal {
        width: if is_terminal { width } else { PIPE_WIDTH },
        colour: is_terminal && !plain,
    }
}

/// Prints a text that has its own line ends.
pub(crate) fn print_as_is(text: &str) -> ExitCode {
    written(&mut stdout().lock(), text)
}

/// Prints a result, with a line end. A reader that has gone has read enough.
pub(crate) fn print(text: &str) -> ExitCode {
    written(&mut stdout().lock(), &format!("{text}\n"))
}

fn written(out: &mut impl Write, text: &str) -> ExitCode {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&error);
            exit::incomplete()
        }
        _ => exit::FINE,
    }
}

/// Prints a result as one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&text),
        Err(error) => {
            complain(&error);
            exit::incomplete()
        }
    }
}

/// Tells something on standard error; nobody listening is no reason to end a run.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}
