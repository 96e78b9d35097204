use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::thread;

use wirecost_model::offload::Role;
use wirecost_model::vary::Scope;
use wirecost_sys::namespace::{self, UserNamespace};

use super::*;

fn command(before: &str, after: &str) -> Setting {
    Setting {
        factor: "f".into(),
        label: "l".into(),
        sysctl: BTreeMap::new(),
        ethtool: BTreeMap::new(),
        device: [].into(),
        device_name: None,
        command: Some(CommandPair {
            before: before.into(),
            after: after.into(),
        }),
        on: Scope::Machine,
    }
}

fn here() -> AppliedSettings {
    AppliedSettings::nothing("this machine", SettingsTarget::Machine)
}

#[test]
fn a_command_is_undone_the_last_first() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().display();
    let say = |word: &str| format!("echo {word} >> {path}");
    let mut applied = here();
    applied
        .apply(&command(&say("one"), &say("un-one")))
        .expect("one");
    applied
        .apply(&command(&say("two"), &say("un-two")))
        .expect("two");
    applied.undo().expect("undone");
    applied.undo().expect("nothing more");
    let said = fs::read_to_string(file.path()).expect("the file");
    assert_eq!(said, "one\ntwo\nun-two\nun-one\n");
}

#[test]
fn a_command_that_fails_is_named_with_what_it_said_and_undone_all_the_same() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut applied = here();
    let undo = format!("echo undone > {}", file.path().display());
    let error = applied
        .apply(&command("echo some words >&2; exit 3", &undo))
        .expect_err("exit code 3");
    assert_eq!(
        error.to_string(),
        "this machine: the level `l` of `f`: the command `echo some words >&2; exit 3` ended with exit code 3 and \
         said: some words"
    );
    applied.undo().expect("undone");
    assert_eq!(
        fs::read_to_string(file.path()).expect("the file"),
        "undone\n"
    );
}

#[test]
fn what_cannot_be_undone_is_told_and_keeps_nothing_else_from_being_undone() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut applied = here();
    let undo = format!("echo undone > {}", file.path().display());
    applied.apply(&command("true", &undo)).expect("the first");
    applied
        .apply(&command("true", "no-such-command-anywhere"))
        .expect("the second");
    let error = applied.undo().expect_err("no such command").to_string();
    assert!(error.contains("could not be undone"), "{error}");
    assert!(error.contains("exit code 127"), "{error}");
    assert_eq!(
        fs::read_to_string(file.path()).expect("the file"),
        "undone\n"
    );
}

#[test]
fn what_could_not_be_undone_is_told_until_it_is_undone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut applied = here();
    let undo = format!("test -e {} && echo undone >> {}", path("now"), path("told"));
    applied.apply(&command("true", &undo)).expect("applied");
    for _ in 0..2 {
        let error = applied.undo().expect_err("not yet").to_string();
        assert!(error.contains("could not be undone"), "{error}");
    }
    fs::write(path("now"), "").expect("a file");
    applied.undo().expect("undone");
    applied.undo().expect("nothing more");
    let told = fs::read_to_string(path("told")).expect("the file");
    assert_eq!(told, "undone\n");
}

#[test]
fn what_a_command_leaves_in_the_background_holds_nobody_up() {
    let mut applied = here();
    // It keeps the output open, and ends by itself soon enough not to be in anybody's way.
    let began = std::time::Instant::now();
    applied
        .apply(&command("sleep 8 & true", "true"))
        .expect("applied");
    let waited = began.elapsed();
    // Not a matter of speed: it either waits for the background process or does not.
    assert!(waited.as_secs() < 8, "{waited:?}");
}

#[test]
fn a_sysctl_that_is_not_there_is_named_with_what_to_do() {
    let nothing = Setting {
        sysctl: [("net.ipv4.no_such_thing".to_owned(), "1".to_owned())].into(),
        command: None,
        ..command("", "")
    };
    let error = here().apply(&nothing).expect_err("none").to_string();
    assert!(
        error.contains("this machine has no sysctl `net.ipv4.no_such_thing`"),
        "{error}"
    );
    let mut in_lab = AppliedSettings::nothing("host a", SettingsTarget::Lab);
    let error = in_lab.apply(&nothing).expect_err("none").to_string();
    assert!(
        error.starts_with("host a: the level `l` of `f`:"),
        "{error}"
    );
    assert!(error.contains("on: machine"), "{error}");
    in_lab.undo().expect("nothing was changed");
}

/// Makes a setting a hostile one.
type Change = fn(&mut Setting);

#[test]
fn a_level_that_no_plan_has_changes_nothing() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let touch = format!("echo run > {}", file.path().display());
    let changes: [(Change, &str); 6] = [
        (
            |it| drop(it.sysctl.insert("net/../../../tmp/x".into(), "1".into())),
            "\"net/../../../tmp/x\" is not the name of a sysctl",
        ),
        (
            |it| drop(it.sysctl.insert("net.ipv4.tcp_sack".into(), "1\n2".into())),
            "the sysctl `net.ipv4.tcp_sack` cannot be \"1\\n2\"",
        ),
        (
            |it| {
                it.ethtool
                    .insert(Role::Underlay, [("../rx".into(), true)].into());
            },
            "\"../rx\" is not the name of a feature",
        ),
        (
            |it| drop(it.device.insert(DeviceSetting::Qdisc, "fq codel".into())),
            "`qdisc` cannot be \"fq codel\"",
        ),
        (
            |it| drop(it.device.insert(DeviceSetting::Rps, "3 4".into())),
            "`rps` cannot be \"3 4\"",
        ),
        (
            |it| it.device_name = Some("/run/netns/../x/eth0".into()),
            "\"/run/netns/../x/eth0\" is no device",
        ),
    ];
    for (change, words) in changes {
        let mut setting = command(&touch, "true");
        change(&mut setting);
        let mut applied = here();
        let told = format!("this machine: the level `l` of `f`: {words}");
        for refused in [applied.check(&setting), applied.apply(&setting)] {
            assert_eq!(refused.expect_err("refused").to_string(), told);
        }
        applied.undo().expect("nothing was applied");
    }
    let said = fs::read_to_string(file.path()).expect("the file");
    assert_eq!(said, "");
}

/// Runs a script in the calling thread's namespaces.
fn sh(script: &str) {
    let ended = Command::new("sh").args(["-ec", script]).status();
    assert!(ended.expect("a shell").success(), "{script}");
}

#[test]
fn steering_that_is_lost_with_queues_is_restored_after_them() {
    let told = thread::spawn(|| {
        // This thread's own namespaces, which end with it.
        namespace::isolate(UserNamespace::Keep)?;
        namespace::mount_own_sysfs()?;
        sh(
            "ip link add here numrxqueues 2 numtxqueues 2 type veth peer name there; ethtool -L here rx 2 tx 2\n\
             echo 1 >/sys/class/net/here/queues/rx-1/rps_cpus",
        );
        let mut device = ExistingDevice::open("here").expect("a device");
        let mut masks = || device.setting(DeviceSetting::Rps).expect("masks");
        let before = masks();
        let mut other = ExistingDevice::open("here").expect("a device");
        let steps = UndoAction::before_change(&mut other, DeviceSetting::Queues).expect("queues");
        let kinds = [&steps[0], &steps[1]].map(|what| matches!(what, UndoAction::QueueFiles(_)));
        // A veth's queues are not combined, so that the setting itself cannot change them.
        sh("ethtool -L here rx 1 tx 1; ethtool -L here rx 2 tx 2");
        let lost = masks();
        let step = |what| Undo {
            of: "the level `l` of `f`".to_owned(),
            what,
            device: None,
        };
        let target = SettingsTarget::Existing {
            device: "here".to_owned(),
        };
        let mut applied = AppliedSettings {
            undo: steps.into_iter().map(step).collect(),
            ..AppliedSettings::nothing("host a", target)
        };
        let undone = applied.undo();
        Ok::<_, io::Error>((kinds, before, lost, undone, masks()))
    });
    let told = match told.join().expect("the thread") {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            wirecost_skips::skip(format!("this needs root: {error}"));
            return;
        }
        told => told.expect("namespaces"),
    };
    let (kinds, before, lost, undone, after) = told;
    assert_eq!(kinds, [true, false], "the last is undone first");
    assert_ne!(
        lost, before,
        "the kernel keeps nothing for a queue that is gone"
    );
    undone.expect("undone");
    assert_eq!(after, before);
}

#[test]
fn the_kernels_own_qdisc_is_restored_after_the_mtu_that_it_takes_its_options_from() {
    let mut applied = AppliedSettings::nothing("host a", SettingsTarget::Lab);
    let mut note = |device, setting, was: &str| {
        let was = was.to_owned();
        let noted = applied.note(
            "the level `l` of `f`",
            UndoAction::Device { setting, was },
            device,
        );
        noted.expect("no journal");
    };
    note(None, DeviceSetting::Rps, "1");
    note(None, DeviceSetting::Mtu, "1500");
    note(Some("other"), DeviceSetting::Qdisc, "0: fq_codel 08ee");
    note(None, DeviceSetting::Qdisc, "0: fq_codel 08ee");
    note(None, DeviceSetting::Qdisc, "8001: fq 08ee");
    let order = applied.undo.iter().map(|step| match &step.what {
        UndoAction::Device { setting, was } => (*setting, &**was, step.device.is_some()),
        other => panic!("{other:?}"),
    });
    let qdisc = DeviceSetting::Qdisc;
    assert_eq!(
        order.collect::<Vec<_>>(),
        [
            (DeviceSetting::Rps, "1", false),
            (qdisc, "0: fq_codel 08ee", false),
            (DeviceSetting::Mtu, "1500", false),
            (qdisc, "0: fq_codel 08ee", true),
            (qdisc, "8001: fq 08ee", false),
        ]
    );
}
