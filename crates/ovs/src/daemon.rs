//! The daemons: each is started with all of its files in the scratch directory, and killed with the thread that started
//! it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wirecost_sys::process::inherit_and_die_with_thread;
use wirecost_sys::scratch::ScratchDirectory;

use crate::error::Error;

/// Upper bound on the part of a log in an error, bytes from its end.
const TOLD_BYTES: usize = 800;
/// Prefix of the name of a daemon's pid file; the run's controller follows it.
const MARK: &str = "wirecost-";
/// Names of the daemons' programs.
const DAEMONS: [&str; 4] = [
    "ovsdb-server",
    "ovs-vswitchd",
    "ovn-northd",
    "ovn-controller",
];

/// A daemon that was started. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    program: PathBuf,
    log: PathBuf,
    errors: PathBuf,
}

impl Daemon {
    /// Starts a daemon whose files are called `name`. `owner` is the run's controller, which is among the daemon's
    /// arguments.
    pub(crate) fn start(
        program: &Path,
        name: &str,
        arguments: &[String],
        directory: &ScratchDirectory,
        owner: &str,
    ) -> Result<Self, Error> {
        let path = directory.path();
        let (log, errors) = (
            path.join(format!("{name}.log")),
            path.join(format!("{name}.err")),
        );
        let file = |kind: &str| format!("{}/{name}.{kind}", path.display());
        let mut command = own(program, directory);
        command
            .args(arguments)
            .arg(format!(
                "--pidfile={}/{MARK}{owner}-{name}.pid",
                path.display()
            ))
            .arg(format!("--log-file={}", file("log")))
            .args(program_control(program, &file("ctl")))
            .args(["-vconsole:off", "-vsyslog:off", "-vfile:info"]);
        let started = File::create(&errors).and_then(|errors| command.stderr(errors).spawn());
        let child = started.map_err(|error| cannot_start(program, &error))?;
        Ok(Self {
            child,
            program: program.to_owned(),
            log,
            errors,
        })
    }

    /// Process id of the daemon.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails where the daemon has ended, with the end of its log.
    pub(crate) fn check_running(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failed(format!("ended with {status}"))),
            Err(error) => Err(self.failed(format!("cannot be waited for: {error}"))),
        }
    }

    /// An error about the daemon, with the end of its error output and log.
    pub(crate) fn failed(&self, problem: String) -> Error {
        let said =
            [&self.errors, &self.log].map(|file| fs::read_to_string(file).unwrap_or_default());
        Error::Program {
            program: self.program.clone(),
            problem,
            log: tail(&said.concat()),
        }
    }

    /// The end of the daemon's log, in one line.
    pub(crate) fn log(&self) -> String {
        tail(&fs::read_to_string(&self.log).unwrap_or_default())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // No file of the daemon is kept, so it need not end in an orderly way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Option for the socket where a daemon listens for ovs-appctl(8): ovn-controller has no such option, and uses a name
/// of its own in `OVN_RUNDIR`.
fn program_control(program: &Path, file: &str) -> Option<String> {
    let takes = program
        .file_name()
        .is_none_or(|name| name != "ovn-controller");
    takes.then(|| format!("--unixctl={file}"))
}

/// A command of Open vSwitch with all of its directories in the scratch directory.
fn own(program: &Path, directory: &ScratchDirectory) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    for variable in [
        "OVS_RUNDIR",
        "OVS_LOGDIR",
        "OVS_DBDIR",
        "OVN_RUNDIR",
        "OVN_LOGDIR",
        "OVN_DBDIR",
    ] {
        command.env(variable, directory.path());
    }
    inherit_and_die_with_thread(&mut command, directory);
    command
}

/// Runs a tool to its end.
///
/// # Errors
/// Where the tool cannot be started or fails, with its error output.
pub(crate) fn run(
    program: &Path,
    arguments: &[String],
    directory: &ScratchDirectory,
) -> Result<(), Error> {
    let mut command = own(program, directory);
    let output = command.args(arguments).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| cannot_start(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Program {
        program: program.to_owned(),
        problem: format!("ended with {}", output.status),
        log: tail(&String::from_utf8_lossy(&output.stderr)),
    })
}

fn cannot_start(program: &Path, error: &io::Error) -> Error {
    Error::Program {
        program: program.to_owned(),
        problem: format!("cannot be started: {error}"),
        log: String::new(),
    }
}

/// The end of a text, in one line, at most [`TOLD_BYTES`] long.
fn tail(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let from = line.len().saturating_sub(TOLD_BYTES);
    let from = (from..line.len()).find(|at| line.is_char_boundary(*at));
    from.map_or_else(String::new, |from| line[from..].to_owned())
}

/// The controller of the run that a daemon was started for, from the daemon's command line as /proc/PID/cmdline has it;
/// `None` for every other process, such as a daemon of the machine's own Open vSwitch.
pub fn owner_in(command_line: &str) -> Option<&str> {
    let mut words = command_line.split('\0');
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    if !DAEMONS.contains(&program) {
        return None;
    }
    let file = words.find_map(|word| word.strip_prefix("--pidfile=/proc/self/fd/"))?;
    let (_, name) = file.split_once('/')?;
    Some(name.strip_prefix(MARK)?.split_once('-')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_ours_is_told_by_its_program_and_its_mark() {
        let ours = "/usr/sbin/ovs-vswitchd\0unix:/proc/self/fd/9/db.sock\0--pidfile=/proc/self/fd/9/wirecost-12:345-switch.pid\0";
        assert_eq!(owner_in(ours), Some("12:345"));
        for other in [
            "/usr/sbin/ovs-vswitchd\0unix:/run/openvswitch/db.sock\0--pidfile=/run/openvswitch/ovs-vswitchd.pid\0",
            "/usr/sbin/ovs-vswitchd\0--pidfile=/proc/self/fd/9/other.pid\0",
            "/bin/cat\0--pidfile=/proc/self/fd/9/wirecost-12:345-switch.pid\0",
            "",
        ] {
            assert_eq!(owner_in(other), None, "{other:?}");
        }
    }

    #[test]
    fn of_a_long_log_the_end_is_told() {
        let text = format!("first\n{}last\n", "ü ".repeat(1000));
        let told = tail(&text);
        assert!(told.ends_with("last") && told.len() <= TOLD_BYTES, "{told}");
        assert_eq!(tail(""), "");
    }
}
