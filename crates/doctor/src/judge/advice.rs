//! Advice for a refusal: the command to run, or the setting to change.

use crate::check::Status;
use crate::evidence::{Evidence, MachineFacts, Outcome, Trial};
use crate::judge::kernel_feature::{
    EACCES, EAFNOSUPPORT, EINVAL, ENOBUFS, ENODEV, ENOENT, EOPNOTSUPP, EPERM, EROFS, KernelFeature,
};
use crate::kernel_config::OptionState;

/// Advice where a namespace could be made and none of its settings changed.
pub(super) const READ_ONLY_SETTINGS: &str = "/proc/sys or /sys is read-only, as in most containers, and a \
     lab changes settings of its namespaces: start the container with `--privileged`, or run on the \
     host itself";

/// Advice for a feature that is missing or limited.
pub(super) fn for_feature(
    feature: &KernelFeature,
    refusal: &Outcome,
    status: Status,
    evidence: &Evidence,
) -> String {
    let machine = &evidence.machine;
    let limited = status == Status::Limited;
    if limited && feature.trial == Trial::Qemu {
        return by_kvm(evidence);
    }
    // Before any setting: a plain user may, so no setting forbids it to everyone.
    let own = evidence.own.outcomes.get(&feature.trial);
    if limited && matches!(own, Some(Outcome::Refused { .. })) {
        return "run what needs it as a plain user: root itself is refused here, because a capability is missing or a policy \
                forbids it"
            .into();
    }
    let code = match refusal {
        Outcome::Refused { code, .. } => *code,
        _ => None,
    };
    if let Some(special) = special(feature.trial, code, machine) {
        return special;
    }
    match code {
        _ if limited => "run what needs it as root".into(),
        Some(EROFS) => READ_ONLY_SETTINGS.into(),
        Some(code) if feature.absent.contains(&code) => absent(feature, machine),
        Some(EPERM | EACCES) if evidence.caller.may_make_namespaces => {
            "a container's or a security module's policy forbids it: try on the host itself".into()
        }
        Some(EPERM | EACCES) => "use sudo".into(),
        _ => "an unexpected error: `dmesg` may say more".into(),
    }
}

/// Advice where QEMU works and emulates its guest: what KVM wants.
fn by_kvm(evidence: &Evidence) -> String {
    let kvm = match evidence.own.outcomes.get(&Trial::Kvm) {
        Some(Outcome::Refused { code, .. }) => special(Trial::Kvm, *code, &evidence.machine),
        _ => None,
    };
    kvm.unwrap_or_else(|| {
        "for the times of hardware, use a machine where QEMU runs its guest by KVM".into()
    })
}

/// Advice that depends on a setting, a group or a package, not on the kernel's configuration; `None` for all other
/// refusals.
fn special(trial: Trial, code: Option<i32>, machine: &MachineFacts) -> Option<String> {
    let setting = |name: &str| machine.settings.get(name).map(String::as_str);
    let advice = match (trial, code) {
        (Trial::Congestion, Some(EPERM)) => {
            let allowed = setting("net.ipv4.tcp_allowed_congestion_control").unwrap_or("reno");
            format!("`sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{allowed} cubic\"` as root")
        }
        (Trial::Steering, None) => {
            "a kernel from Linux 6.3 on with CONFIG_RPS has it; on this one run as root, or write `cores: shared` in \
             the plan"
                .into()
        }
        (Trial::Ipv6, Some(ENOENT | EAFNOSUPPORT | EOPNOTSUPP)) => {
            let built = machine.config.as_ref();
            let load = match built.map(|config| config.of("CONFIG_IPV6")) {
                Some(OptionState::Not) => return None,
                Some(OptionState::In) => "",
                Some(OptionState::Module) | None => "`modprobe ipv6` as root, and ",
            };
            format!("{load}boot without `ipv6.disable=1` on the kernel's command line")
        }
        (Trial::Tcx, Some(EINVAL)) if older(&machine.release, 6, 6) => {
            format!("tcx came with Linux 6.6, this is {}: use a later kernel", machine.release)
        }
        (Trial::OpenVswitch, Some(ENOENT)) => match machine.distribution.as_deref() {
            Some("fedora") => "`dnf install openvswitch` as root".into(),
            Some("rhel" | "centos" | "rocky" | "almalinux") => nfv("`openvswitchX.Y`"),
            Some("debian" | "ubuntu") => "`apt-get install openvswitch-switch` as root".into(),
            _ => "install Open vSwitch: ovs-vswitchd, ovsdb-server, ovsdb-tool, ovs-ofctl and its schema".into(),
        },
        (Trial::Ovn, Some(ENOENT)) => match machine.distribution.as_deref() {
            Some("fedora") => "`dnf install ovn-central ovn-host` as root".into(),
            Some("rhel" | "centos" | "rocky" | "almalinux") => {
                nfv("`openvswitchX.Y`, `ovnYY.MM-central` and `ovnYY.MM-host`")
            }
            Some("debian" | "ubuntu") => {
                "`apt-get install openvswitch-switch ovn-central ovn-host` as root; `datapath: ovn` starts an OVN of its \
                 own, so their services need not run"
                    .into()
            }
            _ => "install Open vSwitch and OVN: ovn-northd, ovn-controller and the databases' schemas".into(),
        },
        (Trial::OpenVswitch, Some(ENODEV)) => {
            "`modprobe tun` as root; where that finds nothing, boot a kernel built with CONFIG_TUN, as Debian's stock \
             kernel is"
                .into()
        }
        (Trial::AfXdp, Some(ENOBUFS)) => {
            "too little memory may be locked: `ulimit -l unlimited` (as root)".into()
        }
        (Trial::IoUring, Some(EPERM)) => match setting("kernel.io_uring_disabled") {
            Some("0") | None => {
                "a container's seccomp profile forbids it: try on the host itself".into()
            }
            Some(value) => format!(
                "kernel.io_uring_disabled is {value}: `sysctl -w kernel.io_uring_disabled=0` as root"
            ),
        },
        (Trial::Userfaultfd, Some(EPERM) | None) => {
            "use sudo, or `sysctl -w vm.unprivileged_userfaultfd=1` as root".into()
        }
        (Trial::Qemu, Some(ENOENT)) => match machine.distribution.as_deref() {
            Some("fedora" | "rhel" | "centos" | "rocky" | "almalinux") => {
                "`dnf install qemu-kvm` as root".into()
            }
            Some("debian" | "ubuntu") => "`apt-get install qemu-system-x86` as root".into(),
            _ => "install qemu-system-x86_64".into(),
        },
        (Trial::Kvm, Some(EACCES)) => {
            "join the group that owns /dev/kvm: `sudo usermod -aG kvm $USER`, then log in again".into()
        }
        (Trial::Kvm, Some(_)) if machine.virtualisation.is_none() => {
            let where_ = match machine.is_guest {
                Some(true) => "allow nested virtualisation for this virtual machine on its host",
                _ => "switch VT-x or AMD-V on in the firmware's settings",
            };
            format!("the processor shows no vmx or svm flag: {where_}")
        }
        (Trial::Kvm, Some(_)) => {
            let module = match machine.virtualisation.as_deref() {
                Some("svm") => "kvm_amd",
                _ => "kvm_intel",
            };
            format!("`modprobe {module}` as root; in a container, pass /dev/kvm in")
        }
        _ => return None,
    };
    Some(advice)
}

/// How Red Hat's distributions other than Fedora get packages whose names have a version.
fn nfv(packages: &str) -> String {
    format!(
        "install {packages} as root (with a version): they are in the repository of \
         `dnf install centos-release-nfv-openvswitch`, for RHEL in Fast Datapath, and in no base repository"
    )
}

/// Advice where the kernel lacks the feature, or has it in a module that is not loaded.
fn absent(feature: &KernelFeature, machine: &MachineFacts) -> String {
    let KernelFeature { option, module, .. } = feature;
    let built = machine.config.as_ref().map(|config| config.of(option));
    let installed = |name: &str| {
        let modules = machine.modules.as_ref();
        modules.is_some_and(|modules| modules.iter().any(|module| module == name))
    };
    match (built, module) {
        (Some(OptionState::Not), _) => {
            let since = feature.since.map_or_else(String::new, |since| {
                format!(" (Linux {since} and later can have it)")
            });
            format!(
                "this kernel is built without {option}{since}: boot one that has it, as Debian's stock \
                 kernel has"
            )
        }
        (Some(OptionState::Module) | None, Some(module)) if installed(module) => {
            format!("`modprobe {module}` as root")
        }
        (Some(OptionState::Module), Some(module)) => format!(
            "`modprobe {module}` as root; where that finds nothing, {}",
            install(machine)
        ),
        (None, Some(module)) => format!(
            "`modprobe {module}` as root; where that finds nothing, {}, or boot a kernel built with \
             {option}, as Debian's stock kernel is",
            install(machine)
        ),
        (Some(OptionState::In), _) => format!(
            "{option} is built in, yet refused: a container's or a security module's policy? Try on \
             the host itself"
        ),
        (Some(OptionState::Module) | None, None) => {
            format!("boot a kernel built with {option}, as Debian's stock kernel is")
        }
    }
}

/// How to install the modules that a distribution's base kernel package leaves out.
fn install(machine: &MachineFacts) -> String {
    let release = &machine.release;
    match machine.distribution.as_deref() {
        Some("ubuntu") => format!("`apt install linux-modules-extra-{release}` as root"),
        Some("fedora" | "rhel" | "centos" | "rocky" | "almalinux") => {
            format!("`dnf install kernel-modules-extra-{release}` as root")
        }
        Some("debian") => format!("`apt install linux-image-{release}` as root"),
        _ => format!("install the modules of kernel {release}"),
    }
}

/// Whether a kernel's release is before a version; `false` where the release cannot be parsed.
fn older(release: &str, major: u32, minor: u32) -> bool {
    let mut parts = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next()) {
        (Some(found), Some(then)) => (found, then) < (major, minor),
        _ => false,
    }
}

/// Advice for a refused user namespace: the sysctls that forbid it, or what the error number means.
pub(super) fn for_user_namespace(code: Option<i32>, machine: &MachineFacts) -> String {
    use crate::judge::kernel_feature::{ENOSPC, EUSERS};
    if code == Some(EROFS) {
        return READ_ONLY_SETTINGS.into();
    }
    let table = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "16384"),
        ("user.max_net_namespaces", "0", "16384"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbidding = table.into_iter().filter(|(name, bad, _)| {
        machine
            .settings
            .get(*name)
            .is_some_and(|value| value == bad)
    });
    let settings: Vec<String> = forbidding
        .map(|(name, bad, good)| format!("{name} is {bad}: `sysctl -w {name}={good}` as root"))
        .collect();
    let config = |option| {
        machine
            .config
            .as_ref()
            .is_some_and(|c| c.of(option) == OptionState::Not)
    };
    if !settings.is_empty() {
        return format!("{}; or run as root", settings.join(", and "));
    }
    match code {
        Some(ENOSPC) => {
            "too many namespaces are in use: `sysctl -w user.max_user_namespaces=16384 \
                         user.max_net_namespaces=16384` as root; or run as root"
                .into()
        }
        Some(EUSERS) => "user namespaces are nested too deep (32 at most): run further out".into(),
        Some(EINVAL | EOPNOTSUPP | EAFNOSUPPORT) if config("CONFIG_USER_NS") => {
            "this kernel is built without CONFIG_USER_NS: run as root".into()
        }
        Some(EPERM | EACCES) => {
            "a container's seccomp profile or a security module forbids it: run as \
                                 root, or on the host itself"
                .into()
        }
        _ => "run as root".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert!(older("6.1.0-18-amd64", 6, 6));
        assert!(older("5.15.0-105-generic", 6, 6));
        for later in ["6.6.0", "6.18.44-fc", "6.10-rc1", "7.0", "unknown", ""] {
            assert!(!older(later, 6, 6), "{later}");
        }
    }
}
