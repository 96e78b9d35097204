//! Runs a plan's command to its end, within a time limit.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use wirecost_sys::process::PidFd;

use super::error::SettingsError;

/// Time limit of a plan's command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Upper bound on the output that an error message quotes, bytes: the end of the output.
const OUTPUT_BYTES: u64 = 1000;

/// Runs a command with `sh -c` to its end, with `place` in `WIRECOST_PLACE`. Processes that it leaves in the background
/// are not waited for.
pub(super) fn run(command: &str, place: &str) -> Result<(), SettingsError> {
    let failed = |source: io::Error| SettingsError::CommandNotRun {
        command: command.trim().to_owned(),
        source,
    };
    // A memory file rather than a pipe: it needs no reader, and a child that keeps it open does not delay the end.
    let output = memfd_create(c"output", MFdFlags::MFD_CLOEXEC).map_err(|e| failed(e.into()))?;
    let mut output = File::from(output);
    let to = || output.try_clone().map(Stdio::from).map_err(failed);
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("WIRECOST_PLACE", place)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(to()?)
        .stderr(to()?)
        .spawn()
        .map_err(failed)?;
    let handle = PidFd::open(child.id()).map_err(failed)?;
    let ended = has_ended(&handle).map_err(failed)?;
    if !ended {
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    }
    let status = child.wait().map_err(failed)?;
    if ended && status.success() {
        return Ok(());
    }
    let how = match (ended, status.code(), status.signal()) {
        (false, ..) => format!(
            "was still running after {} s and was killed",
            COMMAND_LIMIT.as_secs()
        ),
        (_, Some(127), _) => "was not found (exit code 127)".to_owned(),
        (_, Some(code), _) => format!("ended with exit code {code}"),
        (_, None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    Err(SettingsError::CommandFailed {
        command: command.trim().to_owned(),
        how,
        output: said(&mut output),
    })
}

/// Waits for the end of a process; whether it came within the time limit. Signals that the settings guard ignores
/// interrupt poll(2) too; the wait continues, otherwise the command would run unsupervised.
fn has_ended(process: &PidFd) -> io::Result<bool> {
    let deadline = Instant::now() + COMMAND_LIMIT;
    loop {
        match process.wait(deadline.saturating_duration_since(Instant::now())) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

/// The end of a command's output, in one line.
fn said(output: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let from = length.saturating_sub(OUTPUT_BYTES);
    let read = output
        .seek(SeekFrom::Start(from))
        .and_then(|_| output.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
