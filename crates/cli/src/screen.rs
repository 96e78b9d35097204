//! Properties of the terminal, and printing on standard output and standard error.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::process::ExitCode;

use serde::Serialize;

use wirecost_report::{Detail, FormatError, Terminal};
use wirecost_sys::stdio::stdout_was_closed;

use crate::exit;
use crate::failure::{Cause, CommandResult, Failure};

/// Width of the output in columns where standard output is not a terminal.
const PIPE_WIDTH: usize = 120;

/// Width, colour and character set of standard output.
pub(crate) fn terminal() -> Terminal {
    let is_terminal = stdout().is_terminal();
    let width = terminal_size::terminal_size().map_or(PIPE_WIDTH, |(width, _)| width.0.into());
    Terminal {
        width: if is_terminal { width } else { PIPE_WIDTH },
        colour: wants_colour(is_terminal),
        ascii: wants_ascii(|name| std::env::var(name).ok()),
        detail: Detail::default(),
    }
}

/// Whether to print ASCII characters only: `TERM=dumb`, or the locale is `C` or `POSIX` (locale(7): the first of
/// LC_ALL, LC_CTYPE and LANG that is set decides).
fn wants_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    let posix = locale.is_some_and(|locale| locale == "C" || locale == "POSIX");
    posix || variable("TERM").is_some_and(|term| term == "dumb")
}

/// Whether a stream gets colour: it is a terminal, and `NO_COLOR` is not set (no-color.org).
pub(crate) fn wants_colour(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints a text on standard output as it is.
pub(crate) fn print_as_is(text: &str) -> CommandResult {
    stream(|to| {
        let written = to.write_all(text.as_bytes());
        written.map_err(FormatError::Output)
    })
}

/// Prints a text on standard output, with a line end.
pub(crate) fn print(text: &str) -> CommandResult {
    print_as_is(&format!("{text}\n"))
}

/// Writes a result to standard output, not through its global buffer, which would hide write errors until the program
/// ends. A closed pipe is no error: the reader has read enough.
pub(crate) fn stream(
    print: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
) -> CommandResult {
    let mut written = 0;
    let error = match streamed(print, &mut written) {
        Ok(()) => return Ok(exit::FINE),
        Err(FormatError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(exit::FINE);
        }
        Err(FormatError::Output(error)) => error,
        Err(made @ FormatError::Made(_)) => return Err(Failure::of(Cause::Machine, &made)),
    };
    let lost = match written {
        0 => "the result".to_owned(),
        bytes => format!("all but the first {bytes} bytes of the result"),
    };
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room, or ",
        _ => "",
    };
    Err(Failure::new(
        Cause::Output,
        format!(
            "cannot write to standard output: {error}; {lost} is lost: {advice}write it to another place"
        ),
    )
    .unprinted())
}

fn streamed(
    print: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
    written: &mut usize,
) -> Result<(), FormatError> {
    // Rust's runtime opens /dev/null in place of a closed standard output, where writes would succeed.
    if stdout_was_closed() {
        return Err(FormatError::Output(io::Error::other("it is closed")));
    }
    let out = stdout().as_fd().try_clone_to_owned();
    let file = File::from(out.map_err(FormatError::Output)?);
    let mut out = BufWriter::with_capacity(1 << 16, Counted { file, written });
    let printed = print(&mut out).and_then(|()| out.flush().map_err(FormatError::Output));
    // After an error the rest of the buffer is dropped, not written again.
    let _ = out.into_parts();
    printed
}

/// Counts the bytes that were written to a file.
struct Counted<'a> {
    file: File,
    written: &'a mut usize,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        *self.written += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Prints a value as one JSON document on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> CommandResult {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&text),
        Err(error) => Err(Failure::of(Cause::Machine, &error)),
    }
}

/// Prints a failure on standard error, and with `json` also as a document on standard output. Returns the exit code.
pub(crate) fn report_failure(failure: &Failure, json: bool) -> ExitCode {
    print_stderr(&failure.text());
    if json && failure.is_printable() {
        print_failure(failure);
    }
    failure.exit_code()
}

/// Prints a failure as a JSON document on standard output.
pub(crate) fn print_failure(failure: &Failure) {
    if let Err(unprinted) = print_json(&failure.document()) {
        print_stderr(&unprinted.text());
    }
}

/// A duration in seconds as text: `0.4 s`, `82 s`, `12 min`, `3 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes) = (whole / 3600, (whole as f64 / 60.0).round() as u64);
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{minutes} min"),
        _ => format!("{hours} h {} min", (whole % 3600) / 60),
    }
}

/// Breaks a line between words to fit `width` columns; lines after the first begin with `indent`.
pub(crate) fn wrap(text: &str, indent: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if used > indent.len() && used + length > width {
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
            lines.push_str(indent);
            used = indent.len();
        }
        lines.push_str(word);
        used += word.chars().count();
    }
    lines
}

/// Prints a line on standard error; a closed standard error does not end a run.
pub(crate) fn print_stderr(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_no_word_is_lost() {
        assert_eq!(
            wrap("  round 1: 0 1 2 3", "    ", 14),
            "  round 1: 0 1\n    2 3"
        );
        assert_eq!(
            wrap("a word-that-is-too-long b", "", 6),
            "a\nword-that-is-too-long\nb"
        );
        assert_eq!(wrap("short", "", 80), "short");
    }

    #[test]
    fn posix_and_dumb_terminals_get_ascii() {
        let with = |pairs: &'static [(&str, &str)]| {
            wants_ascii(|name| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!with(&[]));
        assert!(with(&[("LANG", "C")]));
        assert!(!with(&[("LANG", "C"), ("LC_ALL", "C.UTF-8")]));
        assert!(with(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")]));
        assert!(with(&[("TERM", "dumb"), ("LANG", "en_US.UTF-8")]));
    }

    #[test]
    fn durations_are_as_long_as_people_want_them() {
        let cases = [
            (0.44, "0.4 s"),
            (81.6, "82 s"),
            (720.0, "12 min"),
            (11_100.0, "3 h 5 min"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }
}
