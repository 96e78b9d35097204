//! The `wirecost` program as a child, driven as a user does: a plan in on its standard input, its JSON result or its
//! record out. The record is thrown away once it was read.

use std::env;
use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wirecost_report::{ReadError, RecordedRun};

use crate::scratch::Scratch;

/// Between looks whether a child has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Why the program gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Where this program is, is not known.
    #[error("looking for this program: {0}")]
    Here(io::Error),
    /// It is not there.
    #[error("there is no program {}: build it (`make build`), or name it with --program", .0.display())]
    Missing(PathBuf),
    /// No place for its records.
    #[error("making a directory for its records: {0}")]
    Scratch(io::Error),
    /// It could not be started, or not be spoken with.
    #[error("running {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// It ended without a result.
    #[error("`wirecost {command}` ended with {status}: {stderr}")]
    Ended {
        /// What was asked of it.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to its standard error.
        stderr: String,
    },
    /// Its result is not JSON, or not text.
    #[error("reading the result of `wirecost {command}`: {reason}")]
    Result {
        /// What was asked of it.
        command: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Its record cannot be read.
    #[error(transparent)]
    Record(#[from] ReadError),
    /// A signal asked for the end.
    #[error("interrupted")]
    Interrupted,
}

impl From<ProgramError> for String {
    fn from(error: ProgramError) -> Self {
        error.to_string()
    }
}

/// The program that was named, or the one beside this program.
///
/// # Errors
/// It is not there.
pub fn find(named: Option<&Path>) -> Result<PathBuf, ProgramError> {
    let program = match named {
        Some(program) => program.to_owned(),
        None => env::current_exe()
            .map_err(ProgramError::Here)?
            .with_file_name("wirecost"),
    };
    if program.is_file() {
        Ok(program)
    } else {
        Err(ProgramError::Missing(program))
    }
}

/// What a child wrote, and how it ended.
struct ChildOutput {
    status: ExitStatus,
    output: Vec<u8>,
    errors: String,
}

/// What came of a command, whether or not it did what was asked.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output, where that is one JSON document.
    pub document: Option<Value>,
    /// Its standard error, trimmed.
    pub stderr: String,
}

/// The program, with a place for its records.
#[derive(Debug)]
pub struct Wirecost {
    program: PathBuf,
    scratch: Scratch,
    interrupt: Arc<AtomicBool>,
}

impl Wirecost {
    /// The program that was named, or the one beside this program. Once `interrupt` is set, whatever of it runs is
    /// asked to end and waited for.
    ///
    /// # Errors
    /// It is not there, or there is no place for its records.
    pub fn find(named: Option<&Path>, interrupt: Arc<AtomicBool>) -> Result<Self, ProgramError> {
        Ok(Self {
            program: find(named)?,
            scratch: Scratch::create().map_err(ProgramError::Scratch)?,
            interrupt,
        })
    }

    /// A built-in plan's text.
    ///
    /// # Errors
    /// There is none of that name, or the program cannot be run.
    pub fn plan(&self, name: &str) -> Result<String, ProgramError> {
        let command = format!("plans {name}");
        let ended = self.output(Command::new(&self.program).args(["plans", name]), "")?;
        let text = ended.succeeded(&command)?.output;
        String::from_utf8(text).map_err(|error| ProgramError::Result {
            command,
            reason: error.to_string(),
        })
    }

    /// Runs a plan to its end and returns its result, the document of `--json`.
    ///
    /// # Errors
    /// It did not come to its end, or some cell could not be measured.
    pub fn run(&self, plan: &str) -> Result<Value, ProgramError> {
        let out = self.scratch.path().join("run");
        let ended = self.started(plan, &out, None);
        // The next run wants the name.
        let _ = fs::remove_dir_all(&out);
        let command = "run -".to_owned();
        let output = ended?.succeeded(&command)?.output;
        serde_json::from_slice(&output).map_err(|error| ProgramError::Result {
            command,
            reason: error.to_string(),
        })
    }

    /// Runs a plan to its end and returns its record, also where cells could not be measured: their samples say why.
    ///
    /// # Errors
    /// It left no record, which is told with what it said.
    pub fn record(&self, plan: &str, seed: u32) -> Result<RecordedRun, ProgramError> {
        let out = self.scratch.path().join("record");
        let ended = self.started(plan, &out, Some(seed));
        let reading = wirecost_report::read(&out);
        let _ = fs::remove_dir_all(&out);
        let ended = ended?;
        match reading {
            Ok(reading) => Ok(reading),
            Err(ReadError::NoDirectory(_)) => {
                ended.succeeded("run -")?;
                Err(ReadError::NoDirectory(out).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs a plan with its record in the place for records, under `name`, where it stays. With `cpu`, the program may
    /// run on that core alone.
    ///
    /// # Errors
    /// It could not be started, or a signal asked for the end.
    pub fn run_recorded(
        &self,
        plan: &str,
        name: &str,
        cpu: Option<u32>,
    ) -> Result<Answer, ProgramError> {
        let mut command = match cpu {
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string()]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .args(["run", "-", "--json", "-q", "--out"])
            .arg(self.record_dir(name));
        Ok(self.output(&mut command, plan)?.into())
    }

    /// Where the record that was kept under `name` is.
    pub fn record_dir(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Throws away the record that was kept under `name`.
    pub fn remove_record(&self, name: &str) {
        let _ = fs::remove_dir_all(self.record_dir(name));
    }

    /// A command about records, such as `compare BEFORE AFTER`, with `--json`.
    ///
    /// # Errors
    /// It could not be started, or a signal asked for the end.
    pub fn run_on_records(&self, command: &str, records: &[&str]) -> Result<Answer, ProgramError> {
        let records = records.iter().map(|name| self.record_dir(name));
        let mut child = Command::new(&self.program);
        child.arg(command).args(records).arg("--json");
        Ok(self.output(&mut child, "")?.into())
    }

    fn started(
        &self,
        plan: &str,
        out: &Path,
        seed: Option<u32>,
    ) -> Result<ChildOutput, ProgramError> {
        let mut command = Command::new(&self.program);
        command.args(["run", "-", "--json", "-q", "--out"]).arg(out);
        if let Some(seed) = seed {
            command.args(["--seed", &seed.to_string()]);
        }
        self.output(&mut command, plan)
    }

    /// Runs a command to its end, with `input` on its standard input.
    fn output(&self, command: &mut Command, input: &str) -> Result<ChildOutput, ProgramError> {
        let failed = |source| ProgramError::Run {
            program: self.program.clone(),
            source,
        };
        let mut child = command
            // A group of its own: the terminal's Ctrl-C is for this program to pass on, once.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take().map(read_to_end);
        let errors = child.stderr.take().map(read_to_end);
        if let Some(mut stdin) = child.stdin.take() {
            match stdin.write_all(input.as_bytes()) {
                // It ended before it read; how it ended says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written.map_err(failed)?,
            }
        }
        let status = self.wait(&mut child).map_err(failed)?;
        let [output, errors] = [output, errors].map(|reading| {
            let read = reading.and_then(|reading| reading.join().ok());
            read.unwrap_or_default()
        });
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(ProgramError::Interrupted);
        }
        Ok(ChildOutput {
            status,
            output,
            errors: String::from_utf8_lossy(&errors).trim().to_owned(),
        })
    }

    /// Until it ends, and asks it to once this program was asked to.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut asked = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.interrupt.load(Ordering::Relaxed) && !asked {
                asked = true;
                // Not waited for yet, so that the number is still its own.
                kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM)?;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Reads in a thread of its own, so that neither of two pipes fills up while the other is read.
fn read_to_end(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

impl From<ChildOutput> for Answer {
    fn from(ended: ChildOutput) -> Self {
        Self {
            code: ended.status.code(),
            document: serde_json::from_slice(&ended.output).ok(),
            stderr: ended.errors,
        }
    }
}

impl ChildOutput {
    fn succeeded(self, command: &str) -> Result<Self, ProgramError> {
        if self.status.success() {
            return Ok(self);
        }
        Err(ProgramError::Ended {
            command: command.to_owned(),
            status: self.status,
            stderr: self.errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(program: &str, interrupted: bool) -> Wirecost {
        Wirecost {
            program: program.into(),
            scratch: Scratch::create().expect("a directory"),
            interrupt: Arc::new(AtomicBool::new(interrupted)),
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = find(Some(Path::new("/nowhere/wirecost"))).expect_err("missing");
        insta::assert_snapshot!(error, @"there is no program /nowhere/wirecost: build it (`make build`), or name it with --program");
    }

    #[test]
    fn more_than_a_pipe_holds_goes_in_and_comes_out() {
        let input = "x".repeat(1 << 20);
        let mut command = Command::new("sh");
        command.args(["-c", "all=$(cat); echo much >&2; printf %s \"$all\""]);
        let ended = with("sh", false)
            .output(&mut command, &input)
            .expect("it ran");
        assert!(ended.status.success());
        assert_eq!(
            (ended.output.len(), ended.errors.as_str()),
            (1 << 20, "much")
        );
    }

    #[test]
    fn one_that_fails_is_told_with_what_it_said() {
        let failed = with("ls", false).run("name: x\n");
        let Err(ProgramError::Ended {
            command, stderr, ..
        }) = failed
        else {
            panic!("{failed:?}");
        };
        assert!(command == "run -" && stderr.starts_with("ls: "), "{stderr}");
    }

    #[test]
    fn one_that_says_nothing_has_no_result_and_no_record() {
        let silent = with("true", false);
        assert!(matches!(silent.run(""), Err(ProgramError::Result { .. })));
        assert!(matches!(silent.record("", 1), Err(ProgramError::Record(_))));
    }

    #[test]
    fn it_is_asked_to_end_once_this_program_is() {
        let mut command = Command::new("sleep");
        let ended = with("sleep", true).output(command.arg("600"), "");
        assert!(matches!(ended, Err(ProgramError::Interrupted)));
    }
}
