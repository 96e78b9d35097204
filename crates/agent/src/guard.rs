//! The settings guard: a process that applies settings in the namespaces it was started in, and undoes them on
//! request or when its parent exits.
//!
//! It is a separate process because the kernel kills a lab's agent together with its controller: the agent could not
//! undo settings outside of the lab's namespaces. The guard outlives both. Its settings stay applied only if the guard
//! itself is killed.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use wirecost_model::vary::Setting;

pub use crate::settings::{SettingsError, SettingsTarget, SysctlError, remove_unfinished_journals};

use crate::error::{AgentError, Context, Result};
use crate::frame;
use crate::protocol::{Refusal, Stage};
use crate::settings::AppliedSettings;

/// Requests to the guard. Both ends are the same program.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Check that the sysctls exist and can be changed.
    Check(Setting),
    /// Apply sysctls and command.
    Apply(Setting),
    /// Undo everything.
    Undo,
}

/// The guard's reply to an order.
type Answer = Result<(), Refusal>;

/// A running guard. Dropping it undoes what is applied, and waits for that.
#[derive(Debug)]
pub struct SettingsGuard {
    place: String,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl SettingsGuard {
    /// Starts a guard in the calling thread's namespaces. `owner` is the controller, as
    /// [`crate::orphan::Owner::argument`] writes it; messages call the namespaces `place`.
    ///
    /// # Errors
    /// The guard cannot be started; the message names the place.
    pub fn start(
        program: &Path,
        owner: &str,
        place: &str,
        target: &SettingsTarget,
    ) -> Result<Self> {
        let step = || format!("{place}: starting the process that changes settings");
        let mut command = Command::new(program);
        // `wirecost` as argv[0], whatever the name of this program's file: orphans are recognised by it.
        command
            .arg0("wirecost")
            .args(["settings-guard", "--owner", owner, "--place", place])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        match target {
            SettingsTarget::Lab => {}
            SettingsTarget::Machine => {
                command.arg("--machine");
            }
            SettingsTarget::Existing { device } => {
                command.args(["--device", device]);
            }
        }
        let mut child = command.spawn().context(step())?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                place: place.to_owned(),
                child,
                input: Some(input),
                output,
            }),
            _ => Err(io::Error::other("no pipes")).context(step()),
        }
    }

    /// Checks that the sysctls of a level exist and can be changed; changes nothing.
    ///
    /// # Errors
    /// A sysctl is missing or may not be changed; the message names place and level.
    pub fn check(&mut self, setting: &Setting) -> Result<()> {
        self.call(&Order::Check(setting.clone()))
    }

    /// Applies the sysctls and the command of a level.
    ///
    /// # Errors
    /// A setting cannot be applied; the message names place and level. Call [`SettingsGuard::undo`] also after an
    /// error.
    pub fn apply(&mut self, setting: &Setting) -> Result<()> {
        self.call(&Order::Apply(setting.clone()))
    }

    /// Undoes everything that is applied.
    ///
    /// # Errors
    /// Something could not be undone; the message says what.
    pub fn undo(&mut self) -> Result<()> {
        self.call(&Order::Undo)
    }

    /// Sends an order and waits for its answer, without a time limit: the guard's commands have one.
    fn call(&mut self, order: &Order) -> Result<()> {
        let gone = |place: &str| {
            format!(
                "{place}: the process that changes settings is gone; what it had applied may still be applied: \
                 `wirecost run PLAN --dry-run` shows what that is"
            )
        };
        let Some(input) = &mut self.input else {
            return Err(gone(&self.place).into());
        };
        frame::write(input, order).map_err(|_| gone(&self.place))?;
        match frame::read::<Answer>(&mut self.output) {
            Ok(Some(answer)) => answer.map_err(|refusal| AgentError::Refused(refusal.message)),
            Ok(None) | Err(_) => Err(gone(&self.place).into()),
        }
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The guard's main loop: serves requests until its input ends, then undoes what is still applied.
///
/// # Errors
/// Something could not be undone at the end; the message says what.
pub fn serve(
    mut input: impl Read,
    mut output: impl Write,
    place: &str,
    target: SettingsTarget,
) -> Result<(), SettingsError> {
    let mut applied = AppliedSettings::nothing(place, target);
    while let Ok(Some(order)) = frame::read(&mut input) {
        let answer = match order {
            Order::Check(setting) => applied.check(&setting),
            Order::Apply(setting) => applied.apply(&setting),
            Order::Undo => applied.undo(),
        };
        let answer: Answer = answer.map_err(|error| Refusal::new(Stage::Setting, &error));
        if frame::write(&mut output, &answer).is_err() {
            break;
        }
    }
    applied.undo()
}
