//! The daemons of a run's Open vSwitch and OVN: which they are, where they write, and that they end with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::common::{
    Owner, Running, TestDir, lines_written, lock_machine_state, signal, state_and_start, wait_for,
};
use nix::sys::signal::Signal;

/// What a run's agents have started: by command line, whoever holds it.
pub(crate) fn daemons_of(owner: Owner) -> Vec<u32> {
    let mark = format!("/wirecost-{}-", owner.argument());
    let processes = fs::read_dir("/proc").expect("proc").filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        line.contains(&mark).then_some(pid)
    });
    processes.collect()
}

/// What is in the places of the machine's own Open vSwitch and OVN.
pub(crate) fn on_this_machine() -> BTreeSet<PathBuf> {
    let directories = [
        "/run/openvswitch",
        "/var/log/openvswitch",
        "/etc/openvswitch",
        "/var/lib/openvswitch",
        "/run/ovn",
        "/var/log/ovn",
        "/var/lib/ovn",
    ];
    let entries = directories
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()));
    entries.collect()
}

/// Every file with a name that a process has open lies in a file system that is mounted nowhere on this machine. (What
/// tmpfile(3) makes has no name, and goes with its process.)
fn writes_nowhere(pid: u32) {
    let mounted: BTreeSet<u64> = fs::read_to_string("/proc/self/mountinfo")
        .expect("proc")
        .lines()
        .filter_map(|line| {
            let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
            Some(nix::sys::stat::makedev(
                major.parse().ok()?,
                minor.parse().ok()?,
            ))
        })
        .collect();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors");
    let files: Vec<_> = open
        .flatten()
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .filter(|file| file.is_file() && file.nlink() > 0)
        .collect();
    assert!(!files.is_empty(), "a database or a log");
    for file in files {
        assert!(!mounted.contains(&file.dev()), "{file:?}");
    }
}

pub(crate) fn is_gone(pid: u32) -> bool {
    state_and_start(pid).is_none_or(|(state, _)| state == 'Z')
}

fn devices() -> usize {
    let all = fs::read_to_string("/proc/net/dev").expect("proc");
    all.lines().count()
}

/// A run of the plan with that many daemons, killed after its first sample: no daemon, file or device is left.
pub(crate) fn leaves_nothing_when_killed(plan: &str, number: usize) {
    let _lock = lock_machine_state();
    let before = (on_this_machine(), devices());
    let place = TestDir::new();
    let plan = place.plan(plan);
    let mut running = Running::start(&mut place.run_command(&plan, "out"));
    running.wait_for("a sample", |_| {
        (lines_written(&place.path().join("out")) > 0).then_some(())
    });
    let daemons = daemons_of(Owner::of(running.pid()));
    assert_eq!(daemons.len(), number, "{daemons:?}");
    for daemon in &daemons {
        writes_nowhere(*daemon);
    }
    let agents = running.agents();
    // One that is stopped cannot do anything about its own end.
    signal(daemons[0], Signal::SIGSTOP);
    running.signal(Signal::SIGKILL);
    assert!(running.wait().was_killed());
    wait_for("agents and daemons to be gone", || {
        let agents = agents.iter().all(|agent| is_gone(agent.pid));
        (agents && daemons.iter().all(|pid| is_gone(*pid))).then_some(())
    });
    assert_eq!((on_this_machine(), devices()), before);
}
