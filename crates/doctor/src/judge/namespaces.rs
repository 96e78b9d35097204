//! Judges the two ways to get namespaces: as root, and in a user namespace without root.

use crate::check::{Check, Group, Status};
use crate::evidence::{Evidence, Outcome, ProbeResults, Trial};
use crate::judge::advice;
use crate::judge::kernel_feature::{EACCES, EINVAL, EPERM, EROFS};

/// Id of the check for namespaces with the caller's own privilege.
pub(super) const AS_ROOT: &str = "namespaces-as-root";
pub(super) const AS_USER: &str = "namespaces-as-user";

pub(super) fn checks(evidence: &Evidence) -> [Check; 2] {
    [as_root(evidence), as_plain_user(evidence)]
}

fn check(
    id: &'static str,
    title: &'static str,
    needed_for: &'static str,
    (status, seen, advice): (Status, String, Option<String>),
) -> Check {
    Check {
        id,
        title,
        group: Group::Essentials,
        essential: true,
        status,
        seen,
        needed_for,
        advice,
    }
}

fn as_root(evidence: &Evidence) -> Check {
    let caller = evidence.caller;
    let answer = match evidence.own.outcomes.get(&Trial::Namespaces) {
        Some(Outcome::Works(_) | Outcome::Partly(_)) => {
            let seen = format!("network and mount namespaces made as {}", evidence.own.who);
            (Status::Yes, seen, None)
        }
        Some(Outcome::Refused { words, code }) => {
            let seen = format!("{words}, as {}", evidence.own.who);
            if caller.uid != 0 && !caller.may_make_namespaces {
                let advice = "`sudo wirecost doctor` tries it".into();
                (Status::Unknown, format!("not root: {seen}"), Some(advice))
            } else {
                (
                    Status::No,
                    seen,
                    Some(refused_to_root(*code, caller.may_make_namespaces)),
                )
            }
        }
        _ => silent(&evidence.own),
    };
    let needed_for = "every lab, when run as root";
    check(AS_ROOT, "Namespaces as root", needed_for, answer)
}

fn refused_to_root(code: Option<i32>, capable: bool) -> String {
    match code {
        Some(EPERM) if !capable => {
            "this root has no CAP_SYS_ADMIN, as in most containers: start the container with \
             `--privileged`, or run on the host itself"
                .into()
        }
        Some(EPERM | EACCES) => {
            "a container's profile (seccomp, AppArmor) or a security module forbids it: \
             start the container with `--privileged`, or run on the host itself"
                .into()
        }
        Some(EROFS) => advice::READ_ONLY_SETTINGS.into(),
        Some(EINVAL) => "the kernel needs CONFIG_NET_NS: boot one that has it, as Debian's stock \
             kernel has"
            .into(),
        _ => "see user.max_net_namespaces, and `dmesg`".into(),
    }
}

fn as_plain_user(evidence: &Evidence) -> Check {
    let plain = &evidence.plain;
    let answer = match plain.outcomes.get(&Trial::Namespaces) {
        Some(Outcome::Works(_) | Outcome::Partly(_)) => {
            let seen = format!("made in a user namespace, as {}", plain.who);
            (Status::Yes, seen, None)
        }
        Some(Outcome::Refused { words, code }) => {
            let advice = advice::for_user_namespace(*code, &evidence.machine);
            (
                Status::No,
                format!("{words}, as {}", plain.who),
                Some(advice),
            )
        }
        _ => silent(plain),
    };
    let needed_for = "every lab, when run without root";
    check(AS_USER, "Namespaces without root", needed_for, answer)
}

fn silent(tried: &ProbeResults) -> (Status, String, Option<String>) {
    let why = tried.cut_short.as_deref().unwrap_or("no reason is known");
    let advice = "try again when the machine is less busy; `dmesg` may say more".into();
    (
        Status::Unknown,
        format!("the probe reported nothing: {why}"),
        Some(advice),
    )
}
