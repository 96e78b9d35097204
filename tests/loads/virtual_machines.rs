//! Migrations of virtual machines in QEMU through the whole program: what comes of them, and that nothing is left.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use wirecost_model::machine_move::MoveOutcome;

use super::record_of;
use crate::common::{
    Running, TestDir, lab_can_be_built, lock_shared, run, signal, skip, succeeds, wait_for,
};

const MOVES: &str = "\
name: virtual
underlay: { mtu: 9000, rate: 2gbit }
guest_mtu: [1500, 8900]
offload: none
load:
  migration:
    engine: qemu
    machines: 2
    memory: 32MiB
    channels: [1, 2]
    dirty_rate: 100mbit
    zero_pages: 25
    max_downtime: 50ms
    watch: on
repeat: { rounds: 1, seconds: 0.3, warmup: 0 }
";

/// What cannot converge: more is written than the line carries.
const HASTY: &str = "\
name: hasty
underlay: { rate: 200mbit }
guest_mtu: 1500
load:
  migration:
    engine: qemu
    memory: 16MiB
    dirty_rate: 2gbit
    working_set: 100
    max_downtime: 10ms
    max_rounds: 4
    fallback: [give-up, stop]
repeat: { rounds: 2, seconds: 0.3, warmup: 0 }
";

/// 96 MiB over 100 Mbit/s: 8 s.
const SLOW: &str = "\
name: slow
underlay: { rate: 100mbit }
guest_mtu: 1500
load: { migration: { engine: qemu, memory: 96MiB, dirty_rate: 10mbit } }
repeat: { rounds: 1, seconds: 1, warmup: 0 }
";

fn can_run() -> bool {
    if !lab_can_be_built() {
        return false;
    }
    if !succeeds(std::process::Command::new("qemu-system-x86_64").arg("--version")) {
        skip("there is no qemu-system-x86_64");
        return false;
    }
    true
}

/// `SLOW`'s machines, as QEMU is told; the one that is tried first is smaller.
const SIZE: &str = "size=98304K";

fn is_machine(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(SIZE)
}

/// Processes of QEMU that one of these started, ascending.
fn machines_of(agents: &[u32]) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name: state, parent.
            let after = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
            let parent = after.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            parent.is_some_and(|parent| agents.contains(&parent)) && is_machine(*pid)
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn virtual_machines_move_and_qemu_and_the_load_both_say_how() {
    if !can_run() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, MOVES);
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        let load = &sample.loads[0];
        assert_eq!(load.moves.len(), 2);
        for one in &load.moves {
            assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
            let said = one.hypervisor.as_ref().expect("QEMU's figures");
            // All pages above the first megabyte but the zero ones were sent, and some again.
            assert!(one.sent_bytes >= (32 << 20) / 4 * 3 - (1 << 20), "{one:?}");
            assert!(said.transferred_bytes >= one.sent_bytes, "{one:?}");
            assert!(one.rounds.len() >= 2 && one.rounds[0].pages > 0, "{one:?}");
            assert!(
                one.downtime_s > 0.0 && one.downtime_s < one.total_s,
                "{one:?}"
            );
            assert!(
                said.downtime_s <= said.total_s && said.setup_s <= said.total_s,
                "{one:?}"
            );
            assert!(one.dirty_reached > 0.0, "{one:?}");
            // A guest that answered at both ends at once would leave no gap. One direction's may be shorter than
            // QEMU's downtime: that ends when the source learns that the guest runs again.
            let seen = one.seen.expect("what an observer saw");
            let gaps = [seen.to_machine_s, seen.from_machine_s];
            let longest = gaps[0].max(gaps[1]);
            assert!(longest >= said.downtime_s / 2.0, "{one:?}");
            for gap in gaps {
                assert!(gap > 0.0 && gap < one.total_s + 3.0, "{one:?}");
            }
            assert!(
                seen.answered > 0 && seen.answered <= 2 * seen.asked,
                "{one:?}"
            );
        }
    }
    let report =
        run(crate::common::wirecost(["report", "out", "--full"]).current_dir(place.path()));
    report.expect_code(0);
    assert!(report.stdout.contains("qemu ms"), "{}", report.stdout);
}

#[test]
fn a_virtual_machine_that_does_not_converge_stays_or_is_stopped() {
    if !can_run() {
        return;
    }
    let _lock = lock_shared();
    let record = record_of(&TestDir::new(), HASTY);
    let cells = &record.head.experiment.cells;
    let mut told = BTreeSet::new();
    for sample in &record.samples {
        let fallback = &cells[sample.cell as usize].levels["fallback"];
        let one = &sample.loads[0].moves[0];
        // A guest that had no core while its memory was sent converges.
        if one.rounds.iter().all(|round| round.dirtied == 0) {
            continue;
        }
        told.insert(fallback);
        let expected = if fallback == "stop" {
            MoveOutcome::Forced
        } else {
            MoveOutcome::NotConverged
        };
        assert_eq!(one.outcome, expected, "{one:?}");
        assert_eq!(one.downtime_s > 0.0, fallback == "stop", "{one:?}");
    }
    assert_eq!(told.len(), 2, "{:?}", record.samples);
}

/// Starts the slow move and waits until so many machines run at each end, and then a time.
fn moving(place: &TestDir, after: Duration) -> (Running, Vec<u32>, [Vec<u32>; 2]) {
    let plan = place.plan(SLOW);
    let mut running = Running::start(&mut place.run_command(&plan, "out"));
    let (agents, machines) = running.wait_for("the machines", |running| {
        let agents = running.agents();
        let of = |host: &str| {
            agents
                .iter()
                .find(|agent| agent.host == host)
                .map(|one| one.pid)
        };
        let pids = vec![of("a")?, of("b")?];
        let machines = [machines_of(&pids[..1]), machines_of(&pids[1..])];
        let all_there = machines.iter().all(|one| one.len() == 1);
        all_there.then_some((pids, machines))
    });
    sleep(after);
    (running, agents, machines)
}

fn expect_gone(agents: &[u32], machines: &[Vec<u32>; 2]) {
    let alive = || {
        let all = machines.iter().flatten();
        let mut alive: Vec<u32> = all.copied().filter(|pid| is_machine(*pid)).collect();
        alive.extend(machines_of(agents));
        alive
    };
    wait_for("the machines to be gone", || {
        alive().is_empty().then_some(())
    });
}

#[test]
fn a_virtual_machine_that_dies_is_named_and_nothing_is_left() {
    if !can_run() {
        return;
    }
    let _lock = lock_shared();
    for (host, words) in [
        (0, "QEMU ended (signal: 9"),
        (1, "at the destination: QEMU ended (signal: 9"),
    ] {
        let place = TestDir::new();
        let (mut running, agents, machines) = moving(&place, Duration::from_millis(1500));
        assert!(signal(machines[host][0], Signal::SIGKILL));
        let ended = running.wait();
        ended.expect_code(3);
        assert!(ended.stderr.contains(words), "{ended:#?}");
        expect_gone(&agents, &machines);
    }
}

#[test]
fn a_run_or_an_agent_that_is_killed_leaves_no_virtual_machine() {
    if !can_run() {
        return;
    }
    let _lock = lock_shared();
    // Before the move, in the midst of it; the run, and either agent.
    for (victim, ms) in [(None, 0), (None, 1200), (Some(0), 900), (Some(1), 1200)] {
        let place = TestDir::new();
        let (mut running, agents, machines) = moving(&place, Duration::from_millis(ms));
        match victim {
            None => assert!(running.signal(Signal::SIGKILL), "it had ended"),
            Some(host) => assert!(signal(agents[host], Signal::SIGKILL)),
        }
        let ended = running.wait();
        if victim.is_some() {
            ended.expect_code(3);
        }
        expect_gone(&agents, &machines);
        wait_for("the agents to be gone", || {
            running.agents().is_empty().then_some(())
        });
    }
}

#[test]
fn where_qemu_is_absent_or_too_old_the_load_is_refused_with_the_reason() {
    if !can_run() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(SLOW);
    let ended = run(place
        .run_command(&plan, "absent")
        .env("PATH", "/nonexistent"));
    ended.expect_code(3);
    assert!(ended.stderr.contains("no qemu-system-x86_64"), "{ended:#?}");
    for (option, words) in [
        (
            "watch: on, post_copy: on",
            "watch needs `engine: memory` with post_copy",
        ),
        ("find_limit: on", "find_limit needs `engine: memory`"),
        ("threads: 1", "threads means nothing to QEMU"),
        ("memory: 4MiB", "a virtual machine of 4194304 bytes"),
        ("machines: 40", "40 virtual machines: 32 at most"),
    ] {
        let plan = place.plan(&format!(
            "name: wrong\nguest_mtu: 1500\nload: {{ migration: {{ engine: qemu, {option} }} }}\n\
             repeat: {{ rounds: 1, seconds: 0.1 }}\n"
        ));
        let ended = run(&mut place.run_command(&plan, "wrong"));
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{ended:#?}");
    }
}
