//! A fault's network, built: in mount and network namespaces of one thread, so that its names are nobody else's,
//! several are up side by side, and the kernel drops everything with the thread, whatever ends it.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use wirecost_sys::namespace::{NAMED, UserNamespace, isolate};

use crate::build::{Step, steps};
use crate::fault::Fault;

/// Why a network could not be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine does not let us.
    #[error("{0}: labs of faults need root")]
    Unprivileged(io::Error),
    /// A program could not be started, or a file not be opened.
    #[error("{what}: {source}")]
    Machine {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// This kernel has no device of a kind that a file makes.
    #[error("{fault}: this kernel has no such device: {said}")]
    Lacks {
        /// The file's name.
        fault: String,
        /// The command, and the kernel's answer.
        said: String,
    },
    /// A command of a file was refused.
    #[error("{fault}: {place}: {said}")]
    Command {
        /// The file's name.
        fault: String,
        /// The namespace.
        place: String,
        /// The commands that were run, and what the last of them said.
        said: String,
    },
}

/// A fault's network, as long as it is there. The thread that is given it finds the namespaces below /run/netns.
#[derive(Debug)]
pub struct Lab {
    /// Hidden namespaces: held by these descriptors, and by no name.
    _hidden: Vec<File>,
}

impl Lab {
    /// Builds a fault's network, and has `work` use it from a thread that sees it: programs that it starts do so too.
    ///
    /// # Errors
    /// Where this machine does not let us, or a command was refused.
    pub fn with<T: Send>(
        fault: &Fault,
        work: impl FnOnce(&Self) -> T + Send,
    ) -> Result<T, LabError> {
        let thread = || -> Result<T, LabError> {
            let lab = Self::build(fault)?;
            Ok(work(&lab))
        };
        std::thread::scope(|scope| {
            let inside = std::thread::Builder::new()
                .name(fault.name.clone())
                .spawn_scoped(scope, thread)
                .map_err(machine("starting a thread"))?;
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn build(fault: &Fault) -> Result<Self, LabError> {
        isolate(UserNamespace::Keep).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LabError::Unprivileged(error),
            _ => machine("making a namespace")(error),
        })?;
        let names = Step {
            at: None,
            script: format!("mkdir -p {NAMED}\nmount -t tmpfs wirecost {NAMED}"),
        };
        run(fault, &names)?;
        for step in steps(fault) {
            run(fault, &step)?;
        }
        let hidden = fault.namespaces.iter().filter(|(_, made)| made.hidden);
        let hidden = hidden.map(|(name, _)| hide(fault, name));
        Ok(Self {
            _hidden: hidden.collect::<Result<_, _>>()?,
        })
    }
}

fn machine(what: &str) -> impl FnOnce(io::Error) -> LabError {
    let what = what.to_owned();
    move |source| LabError::Machine { what, source }
}

/// Takes a namespace's name away and keeps it alive.
fn hide(fault: &Fault, name: &str) -> Result<File, LabError> {
    let path = format!("{NAMED}/{name}");
    let file = File::open(&path).map_err(machine(&format!("opening {path}")))?;
    let step = Step {
        at: None,
        script: format!("ip netns delete {name}"),
    };
    run(fault, &step)?;
    Ok(file)
}

fn run(fault: &Fault, step: &Step<'_>) -> Result<(), LabError> {
    let path = step.at.map(|name| format!("--net={NAMED}/{name}"));
    let mut command = match &path {
        None => Command::new("sh"),
        Some(path) => {
            let mut enter = Command::new("nsenter");
            enter.args([path, "sh"]);
            enter
        }
    };
    let search = std::env::var("PATH").unwrap_or_default();
    let output = command
        // The trace says which command failed.
        .args(["-exc", &step.script])
        // A plain user's has no directory of ip, nft and sysctl.
        .env("PATH", format!("{search}:/usr/sbin:/sbin"))
        .stdin(Stdio::null())
        .output()
        .map_err(machine("starting sh"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.iter().rposition(|line| line.starts_with("+ "));
    let said = lines[last.unwrap_or(0)..].join("; ");
    let fault = fault.name.clone();
    Err(if said.contains("Unknown device type") {
        LabError::Lacks { fault, said }
    } else {
        let place = step.at.unwrap_or("beside the namespaces").to_owned();
        LabError::Command { fault, place, said }
    })
}
