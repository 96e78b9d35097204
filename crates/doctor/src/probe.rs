//! The probe process: single-threaded until it has its namespaces, and exits when done.
//!
//! It tells each outcome on its standard output as one line of JSON when it has it, so that
//! whatever hangs or dies leaves what came before, and its own name.

mod attempts;
mod scratch;

use std::io::Write;
use std::os::unix::process::parent_id;

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use wirecost_sys::namespace::{self, UserNamespace};
use wirecost_sys::process;

use crate::evidence::{Outcome, Trial};
use attempts::refused;
pub(crate) use scratch::trials;

/// `nobody`, on most systems; owns nothing on any.
const PLAIN_USER: u32 = 65534;

/// The privilege that a probe runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The caller's own.
    Own,
    /// A plain user's, in a new user namespace: root becomes one first.
    Plain,
}

impl Privilege {
    /// As an argument of the hidden command.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Plain => "plain",
        }
    }
}

/// One line of a probe's output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeLine {
    /// The user that it runs as.
    Who(String),
    /// What came of one trial.
    Tried(Trial, Outcome),
    /// End of the output.
    Done,
}

/// Tries everything and tells it, line by line. To be called by a process of its own with one
/// thread, which ends right after: its namespaces go with it.
pub fn probe(way: Privilege, output: &mut impl Write) {
    let parent = parent_id();
    let who = become_user(way);
    // After the change of user, which clears it. A parent that is gone reads nothing anyway.
    if process::die_with_parent(parent).is_err() {
        return;
    }
    let mut tell = |line: &ProbeLine| {
        // A reader that is gone has no more questions; the kernel ends this process with it.
        let text = serde_json::to_string(line).unwrap_or_default();
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    };
    tell(&ProbeLine::Who(who));
    let mut told = |trial, outcome| tell(&ProbeLine::Tried(trial, outcome));
    // These need no namespace.
    let program = attempts::ebpf(&mut told);
    told(Trial::IoUring, attempts::io_uring());
    told(Trial::Userfaultfd, attempts::userfaultfd());
    if way == Privilege::Own {
        // Who may open /dev/kvm goes by group: what `nobody` may says nothing about anybody.
        told(Trial::Kvm, attempts::kvm());
    }
    let user = match way {
        Privilege::Own => UserNamespace::Keep,
        Privilege::Plain => UserNamespace::New,
    };
    match namespace::isolate(user) {
        Ok(()) => {
            told(Trial::Namespaces, Outcome::Works(String::new()));
            // Where it is forbidden, steering is set and cannot be read back.
            let _ = namespace::mount_own_sysfs();
            scratch::try_all(program.as_ref(), &mut told);
        }
        Err(error) => {
            told(Trial::Namespaces, refused(&error));
            for trial in trials() {
                told(trial, Outcome::NotTried("no namespace to try it in".into()));
            }
        }
    }
    if way == Privilege::Own {
        // The last one: it starts threads.
        tell(&ProbeLine::Tried(Trial::Qemu, attempts::qemu()));
    }
    tell(&ProbeLine::Done);
}

/// Changes to the user that things are to be tried as, and says who that is.
fn become_user(way: Privilege) -> String {
    let uid = geteuid();
    match way {
        Privilege::Own if uid.is_root() => "root".into(),
        Privilege::Plain if uid.is_root() => match process::become_plain_user(PLAIN_USER) {
            Ok(()) => format!("a plain user (uid {PLAIN_USER})"),
            // In a user namespace with one id, or without CAP_SETUID: as it is, then.
            Err(_) => "this root, in a user namespace of its own".into(),
        },
        Privilege::Own | Privilege::Plain => format!("this user (uid {uid})"),
    }
}
