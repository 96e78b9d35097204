//! A keeper: a process that puts settings in force in the namespaces it was started in, and undoes them
//! when it is told to, or when whoever started it is gone.
//!
//! It is a process of its own because an agent of the lab is killed with its controller, by the kernel
//! and at once: nothing that leads out of the lab's namespaces could be undone. A keeper outlives both;
//! only killing the keeper itself leaves its settings in force.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use wirecost_model::vary::Setting;

use crate::frame;
use crate::settings::InForce;

/// What a keeper is told. Both ends are the same program.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Look whether sysctls are there and may be changed.
    Check(Setting),
    /// Put sysctls and command in force.
    Put(Setting),
    /// Undo everything.
    Undo,
}

/// The error is in words, for the user.
type Answer = Result<(), String>;

/// A running keeper. Dropping it has it undo what is in force, and waits until it has.
#[derive(Debug)]
pub struct Keeper {
    place: String,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Keeper {
    /// Starts one in the calling thread's namespaces. `owner` is the controller's
    /// ([`crate::stray::Owner::argument`]), `place` what messages call where it is.
    ///
    /// # Errors
    /// In words.
    pub fn start(
        program: &Path,
        owner: &str,
        place: &str,
        is_machine: bool,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| {
            format!("{place}: starting the process that changes settings: {error}")
        };
        let mut command = Command::new(program);
        // The name is the program's whatever it is started by.
        command
            .arg0("wirecost")
            .args(["keeper", "--owner", owner, "--place", place])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if is_machine {
            command.arg("--machine");
        }
        let mut child = command.spawn().map_err(failed)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                place: place.to_owned(),
                child,
                input: Some(input),
                output,
            }),
            _ => Err(failed(io::Error::other("no pipes"))),
        }
    }

    /// Looks whether the sysctls of a level are there and may be changed, and changes nothing.
    ///
    /// # Errors
    /// In words, with place and level.
    pub fn check(&mut self, setting: &Setting) -> Answer {
        self.call(&Order::Check(setting.clone()))
    }

    /// Puts the sysctls and the command of a level in force.
    ///
    /// # Errors
    /// In words, with place and level; [`Keeper::undo`] is due all the same.
    pub fn put(&mut self, setting: &Setting) -> Answer {
        self.call(&Order::Put(setting.clone()))
    }

    /// Undoes everything that is in force.
    ///
    /// # Errors
    /// What could not be undone, in words.
    pub fn undo(&mut self) -> Answer {
        self.call(&Order::Undo)
    }

    /// Waits as long as the keeper does: its commands have their limit.
    fn call(&mut self, order: &Order) -> Answer {
        let gone = |place: &str| {
            format!(
                "{place}: the process that changes settings is gone; what it had put in force may still be: \
                 `wirecost run PLAN --dry-run` shows what that is"
            )
        };
        let Some(input) = &mut self.input else {
            return Err(gone(&self.place));
        };
        frame::write(input, order).map_err(|_| gone(&self.place))?;
        match frame::read::<Answer>(&mut self.output) {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) => Err(gone(&self.place)),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The keeper's own loop: obeys until its input ends, then undoes what is still in force.
///
/// # Errors
/// What could not be undone at the end, in words.
pub fn keep(
    mut input: impl Read,
    mut output: impl Write,
    place: &str,
    is_machine: bool,
) -> Result<(), String> {
    let mut in_force = InForce::nothing(place, is_machine);
    while let Ok(Some(order)) = frame::read(&mut input) {
        let answer = match order {
            Order::Check(setting) => in_force.check(&setting),
            Order::Put(setting) => in_force.put(&setting),
            Order::Undo => in_force.undo(),
        };
        if frame::write(&mut output, &answer).is_err() {
            break;
        }
    }
    in_force.undo()
}
