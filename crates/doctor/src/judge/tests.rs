//! Advice from recorded evidence.

use std::collections::BTreeMap;

use wirecost_model::record::WakeupCost;

use super::*;
use crate::check::Status;
use crate::evidence::{
    CallerPrivileges, Clock, EncapsulationKind, MachineFacts, Outcome, ProbeResults, Trial, Window,
};
use crate::kernel_config::KernelConfig;
use crate::probe::trials;

const ANYWHERE: [Trial; 5] = [
    Trial::Ebpf,
    Trial::IoUring,
    Trial::Userfaultfd,
    Trial::Kvm,
    Trial::Qemu,
];

fn works() -> Outcome {
    Outcome::Works("made".into())
}

fn refused(code: i32, words: &str) -> Outcome {
    Outcome::Refused {
        code: Some(code),
        words: words.into(),
    }
}

/// As Linux 6.18 answers `ip link add type geneve` without CONFIG_GENEVE.
fn unknown_device() -> Outcome {
    refused(95, "EOPNOTSUPP: Unknown device type")
}

fn not_permitted() -> Outcome {
    refused(1, "EPERM: Operation not permitted")
}

/// A probe in which everything worked.
fn all(who: &str) -> ProbeResults {
    let trials = trials().into_iter().chain(ANYWHERE);
    let mut outcomes: BTreeMap<Trial, Outcome> = trials.map(|trial| (trial, works())).collect();
    outcomes.insert(Trial::Namespaces, works());
    outcomes.insert(Trial::BridgeNetfilter, refused(2, "ENOENT: No such file"));
    ProbeResults {
        who: who.into(),
        outcomes,
        cut_short: None,
    }
}

/// A probe that could make no namespace.
fn no_namespace(who: &str, outcome: Outcome) -> ProbeResults {
    let mut tried = all(who);
    for trial in trials() {
        let why = "no namespace to try it in".into();
        tried.outcomes.insert(trial, Outcome::NotTried(why));
    }
    tried.outcomes.insert(Trial::Namespaces, outcome);
    tried
}

/// A good machine.
fn machine() -> MachineFacts {
    MachineFacts {
        release: "6.8.0-31-generic".into(),
        online: vec![0, 1, 2, 3],
        allowed: vec![0, 1, 2, 3],
        physical: vec![vec![0, 2], vec![1, 3]],
        governors: vec!["performance".into()],
        clock: Clock {
            source: "tsc".into(),
            available: vec!["tsc".into(), "hpet".into()],
            reading_ns: 25.0,
        },
        virtualisation: Some("vmx".into()),
        is_guest: Some(false),
        memory_available: Some(8 << 30),
        descriptors: Some((1024, 4096)),
        btf: Some(Ok(5_000_000)),
        window: Some(Window {
            seconds: 0.5,
            steal: 0.0,
            foreign_cores: Some(0.01),
            idle_step_s: 1e-6,
        }),
        wakeup: Some(WakeupCost {
            timer_ns: 1_140,
            other_core_ns: 2_310,
        }),
        ..MachineFacts::default()
    }
}

fn as_root() -> Evidence {
    Evidence {
        caller: CallerPrivileges {
            uid: 0,
            may_make_namespaces: true,
        },
        own: all("root"),
        plain: all("a plain user (uid 65534)"),
        machine: machine(),
    }
}

fn as_user() -> Evidence {
    Evidence {
        caller: CallerPrivileges {
            uid: 1000,
            may_make_namespaces: false,
        },
        own: no_namespace("this user (uid 1000)", not_permitted()),
        plain: all("this user (uid 1000)"),
        machine: machine(),
    }
}

fn check(evidence: &Evidence, id: &str) -> Check {
    let checks = examination(evidence, 0.7).checks;
    let found = checks.into_iter().find(|check| check.id == id);
    found.unwrap_or_else(|| panic!("no check {id}"))
}

#[track_caller]
fn expect(evidence: &Evidence, id: &str, status: Status, advice: &str) {
    let check = check(evidence, id);
    assert_eq!(check.status, status, "{check:?}");
    let said = check.advice.as_deref().unwrap_or_default();
    assert!(said.contains(advice), "{advice}: {check:?}");
}

fn config(text: &str) -> KernelConfig {
    KernelConfig::parse("/proc/config.gz".into(), text)
}

#[test]
fn a_machine_that_can_everything_gets_no_advice() {
    let result = examination(&as_root(), 0.7);
    assert_eq!(
        result.summary,
        "This machine can run the built-in plan, as root and without."
    );
    assert!(result.can_run_labs && result.as_plain_user);
    assert_eq!(result.as_root, Some(true));
    for check in &result.checks {
        assert_eq!(check.status, Status::Yes, "{check:?}");
        assert_eq!(check.advice, None, "{check:?}");
    }
}

#[test]
fn ids_are_unique_and_in_kebab_case() {
    let mut ids: Vec<_> = examination(&as_root(), 0.0)
        .checks
        .iter()
        .map(|check| check.id)
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let kebab = |id: &&str| {
        id.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    assert!(ids.iter().all(kebab), "{ids:?}");
}

#[test]
fn a_plain_user_who_can_make_namespaces_can_run_the_plan() {
    let evidence = as_user();
    let result = examination(&evidence, 0.7);
    assert_eq!(
        result.summary,
        "This machine can run the built-in plan without root."
    );
    assert_eq!(result.as_root, None);
    expect(
        &evidence,
        "namespaces-as-root",
        Status::Unknown,
        "sudo wirecost doctor",
    );
    expect(&evidence, "vxlan", Status::Yes, "");
}

#[test]
fn each_setting_that_forbids_user_namespaces_is_named_with_what_to_write() {
    for (name, bad, good) in [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "16384"),
        ("user.max_net_namespaces", "0", "16384"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ] {
        let mut evidence = as_user();
        evidence.plain = no_namespace("this user (uid 1000)", not_permitted());
        let settings = &mut evidence.machine.settings;
        settings.insert(name.into(), bad.into());
        let wanted = format!("{name} is {bad}: `sysctl -w {name}={good}` as root");
        expect(&evidence, "namespaces-as-user", Status::No, &wanted);
        let result = examination(&evidence, 0.7);
        assert!(!result.can_run_labs);
        assert!(result.summary.contains(&wanted), "{}", result.summary);

        // Root need not care.
        let mut evidence = as_root();
        evidence.plain = no_namespace("a plain user (uid 65534)", not_permitted());
        let result = examination(&evidence, 0.7);
        assert!(result.can_run_labs);
        assert_eq!(
            result.summary,
            "This machine can run the built-in plan as root; a plain user cannot, because of missing namespaces."
        );
    }
}

#[test]
fn two_forbidding_settings_are_both_named() {
    let mut evidence = as_user();
    evidence.plain = no_namespace("this user (uid 1000)", not_permitted());
    for (name, value) in [
        ("kernel.unprivileged_userns_clone", "0"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1"),
        ("user.max_user_namespaces", "15000"),
    ] {
        evidence.machine.settings.insert(name.into(), value.into());
    }
    let advice = check(&evidence, "namespaces-as-user")
        .advice
        .expect("advice");
    assert!(advice.contains("userns_clone=1") && advice.contains("unprivileged_userns=0"));
    assert!(!advice.contains("max_user_namespaces"), "{advice}");
}

#[test]
fn without_a_forbidding_setting_the_error_decides() {
    for (code, config_text, words) in [
        (28, "", "too many namespaces are in use"),
        (87, "", "nested too deep"),
        (1, "", "seccomp"),
        (22, "CONFIG_NET_NS=y", "built without CONFIG_USER_NS"),
        (22, "CONFIG_USER_NS=y", "run as root"),
    ] {
        let mut evidence = as_user();
        evidence.plain = no_namespace("this user (uid 1000)", refused(code, "E"));
        evidence.machine.config = Some(config(config_text));
        expect(&evidence, "namespaces-as-user", Status::No, words);
    }
}

#[test]
fn root_of_a_container_is_told_how_to_start_it() {
    let mut evidence = as_root();
    evidence.caller.may_make_namespaces = false;
    evidence.own = no_namespace("root", not_permitted());
    evidence.plain = no_namespace("this root, in a user namespace of its own", not_permitted());
    expect(&evidence, "namespaces-as-root", Status::No, "--privileged");
    let result = examination(&evidence, 0.7);
    assert!(!result.can_run_labs);
    assert!(
        result.summary.contains("--privileged"),
        "{}",
        result.summary
    );
    // It may have been let into a user namespace all the same, as a run would be.
    evidence.plain = all("this root, in a user namespace of its own");
    assert!(examination(&evidence, 0.7).can_run_labs);

    // AppArmor refuses the mount of the new namespace with EACCES.
    for code in [1, 13] {
        let mut evidence = as_root();
        evidence.own = no_namespace("root", refused(code, "E"));
        let words = "a security module forbids it: start the container with `--privileged`";
        expect(&evidence, "namespaces-as-root", Status::No, words);
    }
    let mut evidence = as_root();
    evidence.own = no_namespace("root", refused(22, "EINVAL"));
    expect(&evidence, "namespaces-as-root", Status::No, "CONFIG_NET_NS");
}

/// As in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN that is not privileged.
#[test]
fn namespaces_whose_settings_are_read_only_are_none_for_a_lab() {
    let mut evidence = as_root();
    let settings = &mut evidence.machine.settings;
    settings.insert("user.max_user_namespaces".into(), "0".into());
    for tried in [&mut evidence.own, &mut evidence.plain] {
        let read_only = refused(30, "EROFS: Read-only file system");
        tried.outcomes.insert(Trial::Namespaces, read_only);
    }
    for tried in [&mut evidence.own, &mut evidence.plain] {
        tried.outcomes.insert(Trial::Steering, refused(30, "EROFS"));
    }
    for id in [
        "namespaces-as-root",
        "namespaces-as-user",
        "receive-steering",
    ] {
        expect(&evidence, id, Status::No, "/proc/sys or /sys is read-only");
    }
    let result = examination(&evidence, 0.7);
    assert!(!result.can_run_labs && !result.as_plain_user);
    assert!(
        result.summary.contains("/proc/sys or /sys is read-only"),
        "{}",
        result.summary
    );
}

#[test]
fn a_missing_device_is_explained_by_the_kernels_configuration() {
    /// Configuration, modules that are installed, words of the advice.
    type Case = (
        Option<&'static str>,
        Option<&'static [&'static str]>,
        &'static str,
    );
    let cases: [Case; 6] = [
        (
            Some("CONFIG_VXLAN=y\n# CONFIG_GENEVE is not set\n"),
            None,
            "built without CONFIG_GENEVE",
        ),
        (
            Some("CONFIG_GENEVE=m\n"),
            None,
            "`modprobe geneve` as root; where that finds nothing, `apt install \
             linux-modules-extra-6.8.0-31-generic` as root",
        ),
        (
            Some("CONFIG_GENEVE=m\n"),
            Some(&["vxlan", "geneve"]),
            "`modprobe geneve` as root",
        ),
        (
            None,
            None,
            "`modprobe geneve` as root; where that finds nothing, `apt install \
             linux-modules-extra-6.8.0-31-generic` as root, or boot a kernel built with CONFIG_GENEVE",
        ),
        (None, Some(&["geneve"]), "`modprobe geneve` as root"),
        (Some("CONFIG_GENEVE=y\n"), None, "built in, yet refused"),
    ];
    for (text, modules, words) in cases {
        let mut evidence = as_root();
        for tried in [&mut evidence.own, &mut evidence.plain] {
            tried.outcomes.insert(
                Trial::Encapsulation(EncapsulationKind("geneve")),
                unknown_device(),
            );
        }
        evidence.machine.distribution = Some("ubuntu".into());
        evidence.machine.config = text.map(config);
        evidence.machine.modules =
            modules.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        expect(&evidence, "geneve", Status::No, words);
        let check = check(&evidence, "geneve");
        assert_eq!(check.seen, "EOPNOTSUPP: Unknown device type");
        // Nothing that the built-in plan needs.
        assert!(!check.essential && examination(&evidence, 0.7).can_run_labs);
    }
}

#[test]
fn each_distribution_has_its_own_package_of_modules() {
    for (distribution, words) in [
        (
            Some("ubuntu"),
            "apt install linux-modules-extra-6.8.0-31-generic` as root",
        ),
        (
            Some("fedora"),
            "dnf install kernel-modules-extra-6.8.0-31-generic` as root",
        ),
        (
            Some("debian"),
            "apt install linux-image-6.8.0-31-generic` as root",
        ),
        (
            Some("arch"),
            "install the modules of kernel 6.8.0-31-generic",
        ),
        (None, "install the modules of kernel 6.8.0-31-generic"),
    ] {
        let mut evidence = as_user();
        evidence.plain.outcomes.insert(
            Trial::Encapsulation(EncapsulationKind("vlan")),
            unknown_device(),
        );
        evidence.machine.distribution = distribution.map(str::to_owned);
        expect(&evidence, "vlan", Status::No, words);
    }
}

#[test]
fn netem_and_fq_are_named_with_the_package_that_has_them() {
    for (trial, id, module) in [
        (Trial::Netem, "netem", "sch_netem"),
        (Trial::Fq, "fq", "sch_fq"),
    ] {
        let mut evidence = as_user();
        let none = refused(2, "ENOENT: No such file or directory");
        evidence.plain.outcomes.insert(trial, none);
        let words = format!(
            "`modprobe {module}` as root; where that finds nothing, `apt install linux-modules-extra-"
        );
        evidence.machine.distribution = Some("ubuntu".into());
        expect(&evidence, id, Status::No, &words);
        let option = format!("CONFIG_NET_{}=y\n", module.to_uppercase());
        let other = option.replace(
            module.trim_start_matches("sch_").to_uppercase().as_str(),
            "TBF",
        );
        let config = KernelConfig::parse("/proc/config.gz".into(), &other);
        evidence.machine.config = Some(config);
        let words = format!("built without {}", option.trim_end().trim_end_matches("=y"));
        expect(&evidence, id, Status::No, &words);
        // A lab without a delay needs neither.
        assert!(examination(&evidence, 0.7).can_run_labs);
    }
}

#[test]
fn a_missing_essential_decides_and_is_named_in_the_summary() {
    for (trial, id, outcome, words) in [
        (Trial::Vxlan, "vxlan", unknown_device(), "`modprobe vxlan`"),
        (Trial::Veth, "veth", unknown_device(), "`modprobe veth`"),
        (
            Trial::Bridge,
            "bridge",
            unknown_device(),
            "`modprobe bridge`",
        ),
        (
            Trial::RateLimit,
            "tbf",
            refused(2, "ENOENT"),
            "`modprobe sch_tbf`",
        ),
        (
            Trial::Congestion,
            "cubic",
            refused(2, "ENOENT"),
            "`modprobe tcp_cubic`",
        ),
        (
            Trial::Capture,
            "packet-socket",
            refused(97, "EAFNOSUPPORT"),
            "`modprobe af_packet`",
        ),
    ] {
        let mut evidence = as_root();
        for tried in [&mut evidence.own, &mut evidence.plain] {
            tried.outcomes.insert(trial, outcome.clone());
        }
        expect(&evidence, id, Status::No, words);
        let result = examination(&evidence, 0.7);
        assert!(!result.can_run_labs && !result.as_plain_user, "{id}");
        let title = check(&evidence, id).title;
        let begin = format!("This machine cannot run the built-in plan, because it lacks {title}.");
        assert!(result.summary.starts_with(&begin), "{}", result.summary);
        assert!(result.summary.contains(words), "{}", result.summary);
    }
}

#[test]
fn the_summarys_advice_is_about_what_is_missing() {
    let mut evidence = as_root();
    evidence.plain = no_namespace("a plain user (uid 65534)", not_permitted());
    let settings = &mut evidence.machine.settings;
    settings.insert("kernel.unprivileged_userns_clone".into(), "0".into());
    evidence.own.outcomes.insert(Trial::Vxlan, unknown_device());
    let summary = examination(&evidence, 0.7).summary;
    assert!(
        summary.contains("because it lacks VXLAN. What to do: `modprobe vxlan`"),
        "{summary}"
    );
    assert!(!summary.contains("userns_clone"), "{summary}");
}

#[test]
fn who_cannot_steer_can_run_labs_all_the_same() {
    let mut evidence = as_user();
    let without = Outcome::Partly("there is no net.core.rps_default_mask".into());
    evidence.plain.outcomes.insert(Trial::Steering, without);
    expect(
        &evidence,
        "receive-steering",
        Status::Limited,
        "`cores: shared`",
    );
    assert!(examination(&evidence, 0.7).can_run_labs);
}

#[test]
fn on_one_core_nothing_is_steered() {
    let mut evidence = as_user();
    evidence
        .plain
        .outcomes
        .insert(Trial::Steering, not_permitted());
    assert!(!examination(&evidence, 0.7).can_run_labs);
    evidence.machine.allowed = vec![3];
    evidence.machine.physical = vec![vec![3]];
    assert!(examination(&evidence, 0.7).can_run_labs);
    assert!(!check(&evidence, "receive-steering").essential);
}

#[test]
fn what_works_as_root_only_is_limited() {
    let mut evidence = as_root();
    evidence
        .plain
        .outcomes
        .insert(Trial::Tap, refused(13, "EACCES: Permission denied"));
    expect(&evidence, "tun", Status::Limited, "as root");
    let seen = check(&evidence, "tun").seen;
    assert_eq!(
        seen,
        "as root: made; as a plain user: EACCES: Permission denied"
    );
}

/// As root of a container with CAP_SYS_ADMIN and without CAP_NET_ADMIN.
#[test]
fn what_only_a_plain_user_may_is_not_to_be_run_as_root() {
    let mut evidence = as_root();
    for trial in [Trial::Veth, Trial::Ipv6, Trial::Congestion] {
        evidence.own.outcomes.insert(trial, not_permitted());
    }
    for id in ["veth", "ipv6", "cubic"] {
        let advice = "run what needs it as a plain user: root itself is refused here";
        expect(&evidence, id, Status::Limited, advice);
    }
    let summary = examination(&evidence, 0.7).summary;
    assert!(summary.contains("as a plain user"), "{summary}");
}

#[test]
fn an_emulated_guest_needs_what_kvm_wants_and_no_root() {
    let mut evidence = as_root();
    let emulated = Outcome::Partly("QEMU 7.2.22, its guest is emulated (TCG)".into());
    evidence.own.outcomes.insert(Trial::Qemu, emulated);
    evidence.plain.outcomes.remove(&Trial::Qemu);
    let hardware = "a machine where QEMU runs its guest by KVM";
    expect(&evidence, "qemu", Status::Limited, hardware);
    for (code, words) in [(2, "`modprobe kvm_intel` as root"), (13, "usermod -aG kvm")] {
        evidence.own.outcomes.insert(Trial::Kvm, refused(code, "E"));
        expect(&evidence, "qemu", Status::Limited, words);
    }
}

#[test]
fn without_open_vswitch_its_package_is_named_and_without_tap_its_module() {
    let refused_with = |outcome: &Outcome, distribution: Option<&str>| {
        let mut evidence = as_root();
        evidence.machine.distribution = distribution.map(str::to_owned);
        for tried in [&mut evidence.own, &mut evidence.plain] {
            tried.outcomes.insert(Trial::OpenVswitch, outcome.clone());
        }
        evidence
    };
    let missing = refused(2, "there is no ovs-vswitchd");
    for (distribution, package) in [
        (Some("debian"), "apt-get install openvswitch-switch"),
        (Some("fedora"), "dnf install openvswitch` as root"),
        (Some("rocky"), "install `openvswitchX.Y` as root"),
        (None, "ovsdb-server"),
    ] {
        let evidence = refused_with(&missing, distribution);
        expect(&evidence, "open-vswitch", Status::No, package);
    }
    let evidence = refused_with(&refused(19, "no /dev/net/tun"), Some("debian"));
    expect(&evidence, "open-vswitch", Status::No, "modprobe tun");
}

#[test]
fn without_ovn_its_packages_are_named() {
    for (distribution, packages) in [
        (Some("debian"), "ovn-central ovn-host"),
        (Some("fedora"), "dnf install ovn-central ovn-host` as root"),
        (Some("rhel"), "and `ovnYY.MM-host` as root"),
        (None, "ovn-northd"),
    ] {
        let mut evidence = as_root();
        evidence.machine.distribution = distribution.map(str::to_owned);
        for tried in [&mut evidence.own, &mut evidence.plain] {
            let missing = refused(2, "there is no ovn-northd");
            tried.outcomes.insert(Trial::Ovn, missing);
        }
        expect(&evidence, "ovn", Status::No, packages);
    }
}

#[test]
fn a_setting_or_a_group_that_forbids_is_named() {
    let setting = |evidence: &mut Evidence, name: &str, value: &str| {
        evidence.machine.settings.insert(name.into(), value.into());
    };
    let mut evidence = as_user();
    evidence
        .plain
        .outcomes
        .insert(Trial::Congestion, not_permitted());
    setting(
        &mut evidence,
        "net.ipv4.tcp_allowed_congestion_control",
        "reno bbr",
    );
    expect(
        &evidence,
        "cubic",
        Status::No,
        "tcp_allowed_congestion_control=\"reno bbr cubic\"",
    );

    let mut evidence = as_user();
    evidence
        .own
        .outcomes
        .insert(Trial::IoUring, not_permitted());
    expect(&evidence, "io-uring", Status::No, "seccomp");
    setting(&mut evidence, "kernel.io_uring_disabled", "2");
    expect(
        &evidence,
        "io-uring",
        Status::No,
        "sysctl -w kernel.io_uring_disabled=0",
    );

    let mut evidence = as_user();
    let partly = Outcome::Partly("faults in user mode only".into());
    evidence.own.outcomes.insert(Trial::Userfaultfd, partly);
    expect(
        &evidence,
        "userfaultfd",
        Status::Limited,
        "vm.unprivileged_userfaultfd=1",
    );

    let mut evidence = as_user();
    evidence.own.outcomes.insert(Trial::Ebpf, not_permitted());
    expect(&evidence, "ebpf", Status::No, "use sudo");

    let mut evidence = as_user();
    evidence
        .plain
        .outcomes
        .insert(Trial::AfXdp, refused(105, "ENOBUFS"));
    expect(&evidence, "af-xdp", Status::No, "ulimit -l unlimited");
}

#[test]
fn ipv6_that_is_built_in_and_not_there_is_switched_off_at_boot() {
    let command_line = "boot without `ipv6.disable=1`";
    for (text, load) in [
        (Some("CONFIG_IPV6=y\n"), false),
        (Some("CONFIG_IPV6=m\n"), true),
        (None, true),
    ] {
        let mut evidence = as_root();
        evidence.machine.config = text.map(config);
        for tried in [&mut evidence.own, &mut evidence.plain] {
            tried.outcomes.insert(Trial::Ipv6, refused(2, "ENOENT"));
        }
        expect(&evidence, "ipv6", Status::No, command_line);
        let advice = check(&evidence, "ipv6").advice.expect("advice");
        assert_eq!(advice.contains("`modprobe ipv6` as root"), load, "{advice}");
    }
    let mut evidence = as_root();
    evidence.machine.config = Some(config("CONFIG_VXLAN=y\n"));
    for tried in [&mut evidence.own, &mut evidence.plain] {
        tried.outcomes.insert(Trial::Ipv6, refused(2, "ENOENT"));
    }
    expect(&evidence, "ipv6", Status::No, "built without CONFIG_IPV6");
    // A container without CAP_NET_ADMIN has not switched IPv6 off.
    for tried in [&mut evidence.own, &mut evidence.plain] {
        tried.outcomes.insert(Trial::Ipv6, not_permitted());
    }
    expect(&evidence, "ipv6", Status::No, "a security module's policy");
}

#[test]
fn tcx_is_missing_in_an_early_kernel_or_in_its_configuration() {
    let mut evidence = as_root();
    for tried in [&mut evidence.own, &mut evidence.plain] {
        tried.outcomes.insert(Trial::Tcx, refused(22, "EINVAL"));
    }
    evidence.machine.release = "6.1.0-18-amd64".into();
    expect(
        &evidence,
        "tcx",
        Status::No,
        "came with Linux 6.6, this is 6.1.0-18-amd64",
    );
    evidence.machine.release = "6.8.0".into();
    evidence.machine.config = Some(config("CONFIG_VXLAN=y\n"));
    expect(
        &evidence,
        "tcx",
        Status::No,
        "without CONFIG_NET_XGRESS (Linux 6.6 and later",
    );
}

#[test]
fn kvm_wants_a_group_a_module_the_firmware_or_the_hypervisor() {
    let with = |code, flag: Option<&str>, guest| {
        let mut evidence = as_user();
        evidence.own.outcomes.insert(Trial::Kvm, refused(code, "E"));
        evidence.machine.virtualisation = flag.map(str::to_owned);
        evidence.machine.is_guest = Some(guest);
        evidence
    };
    expect(&with(13, None, true), "kvm", Status::No, "usermod -aG kvm");
    expect(
        &with(2, Some("vmx"), false),
        "kvm",
        Status::No,
        "modprobe kvm_intel",
    );
    expect(
        &with(2, Some("svm"), false),
        "kvm",
        Status::No,
        "modprobe kvm_amd",
    );
    expect(&with(2, None, false), "kvm", Status::No, "firmware");
    expect(&with(2, None, true), "kvm", Status::No, "nested");
}

#[test]
fn a_probe_that_was_cut_short_leaves_unknowns_and_no_yes() {
    let mut evidence = as_user();
    evidence
        .plain
        .outcomes
        .retain(|trial, _| *trial < Trial::Vxlan);
    evidence.plain.cut_short = Some("it was ended by signal 9".into());
    let vxlan = check(&evidence, "vxlan");
    assert_eq!(vxlan.status, Status::Unknown);
    assert!(
        vxlan.seen.contains("not tried") || vxlan.seen.contains("signal 9"),
        "{vxlan:?}"
    );
    let result = examination(&evidence, 5.2);
    assert!(!result.can_run_labs);
    assert!(
        result.summary.contains("because it lacks VXLAN"),
        "{}",
        result.summary
    );

    let mut evidence = as_root();
    for tried in [&mut evidence.own, &mut evidence.plain] {
        *tried = ProbeResults {
            cut_short: Some("/gone/wirecost could not be started: ENOENT".into()),
            ..ProbeResults::default()
        };
    }
    let result = examination(&evidence, 0.6);
    assert!(!result.can_run_labs);
    assert!(result.checks[0].seen.contains("could not be started"));
    assert!(result.summary.contains("namespaces"), "{}", result.summary);
}

#[test]
fn cores_are_judged_by_what_two_hosts_can_have() {
    let with = |online: u32, physical: &[&[u32]]| {
        let mut evidence = as_root();
        evidence.machine.online = (0..online).collect();
        evidence.machine.physical = physical.iter().map(|core| core.to_vec()).collect();
        evidence.machine.allowed = physical.concat();
        evidence
    };
    expect(
        &with(4, &[&[0], &[1], &[2], &[3]]),
        "cores",
        Status::Yes,
        "",
    );
    expect(&with(4, &[&[0, 1], &[2, 3]]), "cores", Status::Yes, "");
    expect(&with(4, &[&[0, 1]]), "cores", Status::Limited, "SMT");
    expect(&with(4, &[&[2]]), "cores", Status::Limited, "taskset");
    expect(
        &with(1, &[&[0]]),
        "cores",
        Status::Limited,
        "use a machine with two",
    );
    assert_eq!(
        check(&with(8, &[&[0], &[1]]), "cores").seen,
        "2 of 8 may be used"
    );
    expect(&with(2, &[]), "cores", Status::Unknown, "");

    let mut limited = with(4, &[&[0], &[1]]);
    limited.machine.cpu_quota = Some(1.5);
    expect(&limited, "cores", Status::Limited, "cpu.max");
    assert_eq!(
        check(&limited, "cores").seen,
        "2 of 4 may be used, for the time of 1.50 (control group)"
    );
    limited.machine.cpu_quota = Some(2.0);
    expect(&limited, "cores", Status::Yes, "");
}

#[test]
fn a_slow_clock_is_told_by_its_reading_not_by_its_name() {
    let with = |source: &str, reading_ns, available: &[&str]| {
        let mut evidence = as_root();
        evidence.machine.clock = Clock {
            source: source.into(),
            available: available.iter().map(|name| (*name).to_owned()).collect(),
            reading_ns,
        };
        evidence
    };
    expect(
        &with("arch_sys_counter", 30.0, &[]),
        "clock",
        Status::Yes,
        "",
    );
    let slow = with("hpet", 1300.0, &["tsc", "hpet"]);
    expect(
        &slow,
        "clock",
        Status::Limited,
        "`echo tsc > /sys/devices/system/clocksource",
    );
    assert_eq!(check(&slow, "clock").seen, "hpet, 1300 ns a reading");
    let stuck = with("acpi_pm", 900.0, &["acpi_pm"]);
    expect(&stuck, "clock", Status::Limited, "dmesg");
}

#[test]
fn what_disturbs_is_judged_by_a_runs_own_thresholds() {
    let with = |steal, foreign_cores| {
        let mut evidence = as_root();
        evidence.machine.window = Some(Window {
            seconds: 0.5,
            steal,
            foreign_cores,
            idle_step_s: 0.01,
        });
        evidence
    };
    expect(&with(0.02, Some(0.05)), "steal", Status::Yes, "");
    expect(
        &with(0.03, None),
        "steal",
        Status::Limited,
        "dedicated cores",
    );
    expect(&with(0.02, Some(0.05)), "foreign-load", Status::Yes, "");
    expect(
        &with(0.0, Some(1.5)),
        "foreign-load",
        Status::Limited,
        "`top`",
    );
    expect(&with(0.0, None), "foreign-load", Status::Unknown, "");
}

#[test]
fn a_lab_behind_firewall_hooks_is_said_to_be_one() {
    let with = |outcome: Outcome, config_text: Option<&str>| {
        let mut evidence = as_root();
        evidence
            .own
            .outcomes
            .insert(Trial::BridgeNetfilter, outcome);
        evidence.machine.config = config_text.map(config);
        evidence
    };
    let value = |text: &str| Outcome::Works(text.into());
    expect(&with(value("0"), None), "bridge-netfilter", Status::Yes, "");
    let module = with(value("1"), Some("CONFIG_BRIDGE_NETFILTER=m"));
    expect(
        &module,
        "bridge-netfilter",
        Status::Limited,
        "modprobe -r br_netfilter",
    );
    let built_in = with(value("1"), Some("CONFIG_BRIDGE_NETFILTER=y"));
    expect(
        &built_in,
        "bridge-netfilter",
        Status::Limited,
        "built into this kernel",
    );
}

#[test]
fn memory_descriptors_governor_and_types_have_their_advice() {
    let mut evidence = as_root();
    evidence.machine.memory_available = Some(300 << 20);
    expect(&evidence, "memory", Status::Limited, "768 MiB");
    evidence.machine.memory_available = Some(8 << 30);
    evidence.machine.memory_left = Some(512 << 20);
    expect(&evidence, "memory", Status::Limited, "memory.max");
    let seen = check(&evidence, "memory").seen;
    assert_eq!(seen, "0.5 GiB available (control group)");
    evidence.machine.memory_left = Some(16 << 30);
    expect(&evidence, "memory", Status::Yes, "");
    evidence.machine.descriptors = Some((64, 4096));
    expect(
        &evidence,
        "descriptors",
        Status::Limited,
        "`ulimit -n 1024`",
    );
    evidence.machine.descriptors = Some((64, 64));
    expect(&evidence, "descriptors", Status::Limited, "as root");
    evidence.machine.governors = vec!["powersave".into()];
    expect(&evidence, "cpu-frequency", Status::Limited, "cpupower");
    evidence.machine.btf = Some(Err("/sys/kernel/btf/vmlinux: not found".into()));
    expect(&evidence, "btf", Status::No, "CONFIG_DEBUG_INFO_BTF");
}

#[test]
fn what_a_wakeup_costs_is_told_with_how_fine_time_is_counted() {
    let mut evidence = as_root();
    let seen = |evidence: &Evidence| check(evidence, "wakeups").seen;
    assert_eq!(
        seen(&evidence),
        "1.1 us of a core by a timer, 2.3 us of two by another core; busy time is counted in microseconds"
    );
    evidence.machine.window = None;
    evidence.machine.wakeup = Some(WakeupCost {
        timer_ns: 17_000,
        other_core_ns: 0,
    });
    assert_eq!(seen(&evidence), "17.0 us of a core by a timer");
    evidence.machine.wakeup = None;
    expect(&evidence, "wakeups", Status::Unknown, "");
}
