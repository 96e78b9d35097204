//! The probe process: single-threaded until it has its namespaces, and exits when done.
//!
//! Each outcome is written to standard output at once, as one line of JSON, so that a trial that
//! hangs or kills the process loses no earlier outcome.

mod attempts;
mod scratch;

use std::io::Write;
use std::os::unix::process::parent_id;

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use wirecost_netbuild::trial;
use wirecost_sys::namespace::{self, UserNamespace};
use wirecost_sys::process;

use crate::evidence::{Outcome, Trial};
use attempts::{outcome, refused};
pub(crate) use scratch::trials;

/// User that root becomes for [`Privilege::Plain`]: `nobody` on most systems; owns no files.
const PLAIN_USER: u32 = 65534;

/// The privilege that a probe runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The caller's own privilege.
    Own,
    /// A plain user's privilege in a new user namespace: root becomes a plain user first.
    Plain,
}

impl Privilege {
    /// Value of the hidden option `doctor --probe`.
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
    /// The user that the probe runs as.
    Who(String),
    /// Outcome of one trial.
    Tried(Trial, Outcome),
    /// End of the output.
    Done,
}

/// Runs every trial and writes each outcome to `output` as a line of JSON. To be called in a process of
/// its own with one thread, which exits right after: its namespaces go with it.
pub fn probe(way: Privilege, output: &mut impl Write) {
    let parent = parent_id();
    let who = become_user(way);
    // After the change of user, which clears PR_SET_PDEATHSIG. Without the parent there is no reader.
    if process::die_with_parent(parent).is_err() {
        return;
    }
    let mut print_line = |line: &ProbeLine| {
        // Errors are ignored: where the reader is gone, the kernel ends this process too.
        let text = serde_json::to_string(line).unwrap_or_default();
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    };
    print_line(&ProbeLine::Who(who));
    let mut report = |trial, outcome| print_line(&ProbeLine::Tried(trial, outcome));
    // These trials need no namespace.
    let program = attempts::ebpf(&mut report);
    report(Trial::IoUring, attempts::io_uring());
    report(Trial::Userfaultfd, attempts::userfaultfd());
    if way == Privilege::Own {
        // Groups decide who may open /dev/kvm: what `nobody` may do tells nothing about other users.
        report(Trial::Kvm, attempts::kvm());
    }
    let user = match way {
        Privilege::Own => UserNamespace::Keep,
        Privilege::Plain => UserNamespace::New,
    };
    match namespace::isolate(user) {
        Ok(()) => {
            let settings = trial::settings().map(|()| String::new());
            report(Trial::Namespaces, outcome(settings));
            // Where mounting it is forbidden, receive steering is set and cannot be read back.
            let _ = namespace::mount_own_sysfs();
            scratch::try_all(program.as_ref(), &mut report);
        }
        Err(error) => {
            report(Trial::Namespaces, refused(&error));
            for trial in trials() {
                report(trial, Outcome::NotTried("no namespace to try it in".into()));
            }
        }
    }
    if way == Privilege::Own {
        // Last, since it starts threads.
        print_line(&ProbeLine::Tried(Trial::Qemu, attempts::qemu()));
    }
    print_line(&ProbeLine::Done);
}

/// Changes to the user that trials run as, and returns a name for that user.
fn become_user(way: Privilege) -> String {
    let uid = geteuid();
    match way {
        Privilege::Own if uid.is_root() => "root".into(),
        Privilege::Plain if uid.is_root() => match process::become_plain_user(PLAIN_USER) {
            Ok(()) => format!("a plain user (uid {PLAIN_USER})"),
            // In a user namespace with one id, or without CAP_SETUID, root stays root.
            Err(_) => "this root, in a user namespace of its own".into(),
        },
        Privilege::Own | Privilege::Plain => format!("this user (uid {uid})"),
    }
}
