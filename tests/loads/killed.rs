//! Storage and migrations that are killed in the middle: no process is left, nor anything in shared memory, and the
//! record says who ended it.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use wirecost_model::record::{Outcome, file};
use wirecost_sys::dirty_pages::DirtyPages;

use crate::common::{
    Record, Running, TestDir, lab_can_be_built, lock_shared, signal, skip, wait_for,
};

/// One sample takes 64 MiB over 100 Mbit/s: 5 s. It is killed in the first; on a busy machine a late kill is in another.
const MIGRATION: &str = "\
name: killed-move
underlay: { rate: 100mbit }
guests: 2
guest_mtu: 1500
load: { migration: { machines_per_guest: 1, memory: 32MiB, channels: 2, dirty_rate: 10mbit, watch: on } }
repeat: { rounds: 20, seconds: 1, warmup: 0 }
";

/// Both windows of the network's share.
const STORAGE: &str = "\
name: killed-storage
guest_mtu: 1500
load: { storage: { connections: 4, pattern: random-mix, flush_every: 8, network_share: on } }
repeat: { rounds: 20, seconds: 4, warmup: 0 }
";

fn shared_memory() -> BTreeSet<String> {
    let names = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("wirecost"))
        .collect()
}

fn killed(plan: &str, victim: Option<&str>, after: Duration) {
    let place = TestDir::new();
    let path = place.plan(plan);
    let before = shared_memory();
    let out = place.path().join("out");
    let mut running = Running::start(&mut place.run_command(&path, "out"));
    running.wait_for("the record", |_| {
        out.join(file::SAMPLES).exists().then_some(())
    });
    sleep(after);
    match victim {
        None => assert!(running.signal(Signal::SIGKILL), "it had ended"),
        Some(host) => {
            let agents = running.agents();
            let agent = agents.iter().find(|agent| agent.host == host);
            assert!(signal(agent.expect("an agent").pid, Signal::SIGKILL));
        }
    }
    let ended = running.wait();
    wait_for("the agents to be gone", || {
        running.agents().is_empty().then_some(())
    });
    assert_eq!(shared_memory(), before);
    match victim {
        None => assert!(ended.was_killed(), "{ended:#?}"),
        Some(host) => {
            ended.expect_code(3);
            let record = Record::read(&out).expect("a record");
            let end = record.end.expect("an end");
            assert_eq!(end.outcome, Outcome::Failed);
            let reason = end.reason.unwrap_or_default();
            assert!(
                reason.contains(&format!("agent of host {host}")),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_migration_that_is_killed_leaves_no_process_and_no_memory() {
    if !lab_can_be_built() {
        return;
    }
    if let Err(error) = DirtyPages::check() {
        skip(format!("this kernel does not track writes: {error}"));
        return;
    }
    let _lock = lock_shared();
    for (victim, ms) in [
        (None, 20),
        (None, 900),
        (Some("a"), 60),
        (Some("a"), 1200),
        (Some("b"), 700),
    ] {
        killed(MIGRATION, victim, Duration::from_millis(ms));
    }
}

#[test]
fn storage_that_is_killed_leaves_no_process_and_no_socket() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    // Within the window across the network, and within that at the target.
    for (victim, ms) in [
        (None, 500),
        (None, 2600),
        (Some("a"), 900),
        (Some("b"), 2700),
    ] {
        killed(STORAGE, victim, Duration::from_millis(ms));
    }
}
