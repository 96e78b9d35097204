//! Attempts that need no namespace.

use std::io;

use nix::errno::Errno;
use wirecost_netbuild::error_code;
use wirecost_qemu::QemuError;
use wirecost_sys::bpf::PassingClassifier;
use wirecost_sys::io_uring::IdleRing;
use wirecost_sys::kvm::{self, Kvm};
use wirecost_sys::userfaultfd::{Faults, Userfaultfd};

use crate::evidence::{Outcome, Trial};

/// A refusal with the error's name, and the kernel's own message where the error carries one.
pub(super) fn refused(error: &io::Error) -> Outcome {
    let code = error_code(error);
    let text = error.to_string();
    let words = match code {
        None => text,
        Some(code) => {
            // Either "Operation not permitted (os error 1)", or that after the kernel's own message.
            let plain = io::Error::from_raw_os_error(code).to_string();
            let own = text.strip_suffix(&plain).unwrap_or_default();
            let own = own.trim_end_matches([':', ' ', '.']);
            let errno = Errno::from_raw(code);
            let said = if own.is_empty() { errno.desc() } else { own };
            format!("{errno:?}: {said}")
        }
    };
    Outcome::Refused { code, words }
}

pub(super) fn outcome(result: io::Result<String>) -> Outcome {
    match result {
        Ok(seen) => Outcome::Works(seen),
        Err(error) => refused(&error),
    }
}

/// Loads an eBPF classifier, and returns it for the trial of tcx.
pub(super) fn ebpf(report: &mut impl FnMut(Trial, Outcome)) -> Option<PassingClassifier> {
    match PassingClassifier::load() {
        Ok(program) => {
            let seen = "a classifier passed the verifier".into();
            report(Trial::Ebpf, Outcome::Works(seen));
            Some(program)
        }
        Err(error) => {
            report(Trial::Ebpf, refused(&error));
            None
        }
    }
}

pub(super) fn io_uring() -> Outcome {
    outcome(IdleRing::set_up(8).map(|ring| format!("a ring, features {:#x}", ring.features())))
}

pub(super) fn userfaultfd() -> Outcome {
    let tracking = |userfaultfd: &Userfaultfd| {
        if userfaultfd.write_protects() {
            "write protection included"
        } else {
            "without write protection"
        }
    };
    match Userfaultfd::open(Faults::All) {
        Ok(userfaultfd) => Outcome::Works(format!("all faults, {}", tracking(&userfaultfd))),
        Err(error) => match Userfaultfd::open(Faults::UserModeOnly) {
            Ok(userfaultfd) => Outcome::Partly(format!(
                "faults in user mode only, {}",
                tracking(&userfaultfd)
            )),
            Err(_) => refused(&error),
        },
    }
}

pub(super) fn kvm() -> Outcome {
    let made = Kvm::open().and_then(|kvm| {
        let version = kvm.api_version()?;
        if version != kvm::API_VERSION {
            let expected = kvm::API_VERSION;
            let words = format!("API version {version}, not {expected}");
            return Err(io::Error::other(words));
        }
        kvm.create_machine()?;
        Ok(format!("API version {version}, an empty machine was made"))
    });
    outcome(made)
}

/// Boots the QEMU guest that migrations move.
pub(super) fn qemu() -> Outcome {
    match wirecost_qemu::host_qemu() {
        Ok(found) => match &found.no_kvm {
            None => Outcome::Works(format!("QEMU {}, its guest runs by KVM", found.version)),
            Some(words) => Outcome::Partly(format!(
                "QEMU {}, its guest is emulated (TCG), since KVM does not run it: {words}",
                found.version
            )),
        },
        Err(QemuError::Absent) => refused(&Errno::ENOENT.into()),
        Err(error) => Outcome::Refused {
            code: None,
            words: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_errors_name_and_no_number_in_its_words() {
        assert_eq!(
            refused(&io::Error::from_raw_os_error(95)),
            Outcome::Refused {
                code: Some(95),
                words: "EOPNOTSUPP: Operation not supported on transport endpoint".into()
            }
        );
    }

    #[test]
    fn a_refusal_in_words_only_keeps_them() {
        assert_eq!(
            refused(&io::Error::other("MTU: asked for 9000, read back 1500")),
            Outcome::Refused {
                code: None,
                words: "MTU: asked for 9000, read back 1500".into()
            }
        );
    }
}
