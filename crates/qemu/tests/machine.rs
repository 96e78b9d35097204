//! The guest in QEMU, by KVM and emulated: that it writes where, as often and as long as it is told, and that nothing
//! outlives its handle.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirecost_model::load::{DirtyOrder, Migration};
use wirecost_model::machine_move::Accelerator;
use wirecost_qemu::guest::{self, Program};
use wirecost_qemu::{HostQemu, Machine, QemuError, Spec, host_qemu};

const LONG: Duration = Duration::from_secs(20);

fn host() -> Option<&'static HostQemu> {
    match host_qemu() {
        Ok(found) => Some(found),
        Err(error) => {
            wirecost_skips::skip(error);
            None
        }
    }
}

fn spec(accelerator: Accelerator, order: DirtyOrder, dirty_rate: u64) -> Spec {
    let migration = Migration {
        memory: 16 << 20,
        dirty_order: order,
        dirty_rate,
        zero_pages: 25,
        working_set: 50,
        ..Migration::USUAL
    };
    Spec {
        memory: migration.memory,
        accelerator,
        program: Program::of(&migration),
        incoming: false,
    }
}

fn started(host: &HostQemu, spec: &Spec) -> Machine {
    let mut machine = Machine::start(&host.program, spec).expect("a machine");
    machine.await_guest(LONG).expect("a guest");
    machine
}

fn await_writes(machine: &Machine, more: u32) {
    let (before, deadline) = (guest::writes(machine.memory()), Instant::now() + LONG);
    while guest::writes(machine.memory()) < before + more {
        assert!(Instant::now() < deadline, "it does not write");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_guest_writes_what_it_is_told_and_its_memory_says_so() {
    let Some(host) = host() else { return };
    for accelerator in [host.accelerator, Accelerator::Tcg] {
        for order in [DirtyOrder::Sequential, DirtyOrder::Random] {
            let spec = spec(accelerator, order, 400_000_000);
            let mut machine = started(host, &spec);
            await_writes(&machine, 3000);
            machine.execute("stop", &json!({})).expect("stopped");
            let writes = guest::writes(machine.memory());
            assert_eq!(spec.program.check(machine.memory()), Ok(writes));
            // What the monitor reads of the guest's memory is the same.
            let arguments = json!({ "command-line": "xp /1wx 0x1000" });
            let read = machine.execute("human-monitor-command", &arguments);
            let read = read
                .expect("the word")
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert!(
                read.contains(&format!("{writes:#010x}")),
                "{read} {writes:#x}"
            );
            // Neither does it write while it is stopped, nor does a difference pass.
            assert_eq!(guest::writes(machine.memory()), writes);
            let word = (guest::FIRST_PAGE as usize + 100) * 512 + 3;
            machine.memory().words()[word].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(spec.program.check(machine.memory()).is_err());
            machine.execute("cont", &json!({})).expect("goes on");
            await_writes(&machine, 1);
        }
    }
}

#[test]
fn qemu_itself_sees_pages_become_dirty_or_none() {
    let Some(host) = host() else { return };
    for (dirty_rate, writes) in [(400_000_000, true), (0, false)] {
        let mut machine = started(
            host,
            &spec(host.accelerator, DirtyOrder::Random, dirty_rate),
        );
        machine
            .execute(
                "calc-dirty-rate",
                &json!({ "calc-time": 1, "sample-pages": 4096 }),
            )
            .expect("begun");
        let deadline = Instant::now() + LONG;
        let rate = loop {
            let answer = machine
                .execute("query-dirty-rate", &json!({}))
                .expect("an answer");
            if answer["status"] == "measured" {
                break answer["dirty-rate"].as_u64().expect("a rate");
            }
            assert!(Instant::now() < deadline, "{answer}");
            std::thread::sleep(Duration::from_millis(50));
        };
        // MB/s. The guest's own words are one page.
        assert_eq!(rate > 0, writes, "{rate} MB/s");
    }
}

#[test]
fn a_machine_ends_with_its_handle_and_says_why_it_ended_before() {
    let Some(host) = host() else { return };
    let spec = spec(host.accelerator, DirtyOrder::Random, 0);
    let mut machine = started(host, &spec);
    let status = machine
        .execute("query-status", &json!({}))
        .expect("a status");
    assert_eq!(status["status"], "running");
    let refused = machine
        .execute("no-such-command", &Value::Null)
        .expect_err("a refusal");
    assert!(matches!(&refused, QemuError::Refused { command, .. } if command == "no-such-command"));
    machine.execute("quit", &json!({})).expect("it quits");
    let deadline = Instant::now() + LONG;
    let died = loop {
        match machine.next(Duration::from_millis(50)) {
            Ok(_) => assert!(Instant::now() < deadline, "it does not end"),
            Err(error) => break error,
        }
    };
    assert!(
        died.to_string().starts_with("QEMU ended (exit status: 0"),
        "{died}"
    );
    // What it was not told to have, it does not have.
    let odd = Spec {
        memory: 1 << 46,
        ..spec
    };
    let error = Machine::start(&host.program, &odd).expect_err("too large");
    assert!(!error.to_string().is_empty());
    let absent = Machine::start(Path::new("/nonexistent/qemu"), &spec).expect_err("absent");
    assert!(absent.to_string().contains("starting QEMU"), "{absent}");
}
