//! What only the host knows: looked at before the start, raised where that is allowed, and otherwise the sample's
//! error with what to do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use wirecost_model::sample::{Invalid, Sample};

use crate::common::{
    Record, TestDir, is_root, lab_can_be_built, lock_shared, program, run, skip, succeeds,
};

/// Runs a plan behind a command that limits what it starts.
fn limited(place: &TestDir, plan: &str, by: &[&str]) -> Record {
    let plan = place.plan(plan);
    let command = place.run_command(&plan, "out");
    let mut behind = Command::new(by[0]);
    behind
        .args(&by[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(place.path());
    run(&mut behind);
    Record::read(&place.path().join("out")).expect("a record")
}

/// Why a sample did not run to its end; of one that did, fails the test.
fn reason(sample: &Sample) -> &str {
    match &sample.invalid {
        Some(Invalid::Load(reason)) => reason,
        other => panic!("not the load's own error: {other:?}"),
    }
}

#[test]
fn descriptors_of_all_guests_together_are_raised_where_that_is_allowed() {
    if !lab_can_be_built() {
        return;
    }
    if !succeeds(Command::new("prlimit").arg("--version")) {
        skip("this needs prlimit");
        return;
    }
    let _lock = lock_shared();
    let plan = "name: many\nguests: 4\nload: { tcp-rr: { streams_per_guest: 80 } }\n\
                repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n";
    let place = TestDir::new();
    // 320 flows do not fit into the soft limit, but into the hard one.
    let record = limited(&place, plan, &["prlimit", "--nofile=256:2048"]);
    let [sample] = &record.samples[..] else {
        panic!("{:?}", record.samples);
    };
    assert_eq!(sample.invalid, None);
    assert_eq!(sample.loads[0].flows.len(), 320);
    let place = TestDir::new();
    let record = limited(&place, plan, &["prlimit", "--nofile=256:400"]);
    let words = reason(&record.samples[0]);
    for part in ["load tcp-rr:", "descriptors", "may have 400", "ulimit -Hn"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

const FEW_PORTS: &str = "\
name: ports
load:
  - tcp-crr: { streams: 4, limit: 200 }
  - tcp-stream: { streams: 20 }
vary:
  local ports:
    - { label: ten, sysctl: { net.ipv4.ip_local_port_range: 40000 40009 }, on: guests }
    - label: the kernel's
repeat: { rounds: 1, seconds: 0.3, warmup: 0.05 }
";

#[test]
fn a_connection_for_each_request_lives_on_few_ports_and_many_connections_do_not() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(FEW_PORTS);
    run(&mut place.run_command(&plan, "out"));
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        let cell = &record.head.experiment.cells[sample.cell as usize];
        let few = cell.levels["local ports"] == "ten";
        match (cell.loads[0].name.as_str(), few) {
            ("tcp-stream", true) => {
                let words = reason(sample);
                for part in [
                    "load tcp-stream:",
                    "20 local ports",
                    "there are 10",
                    "net.ipv4.ip_local_port_range",
                ] {
                    assert!(words.contains(part), "{part}: {words}");
                }
            }
            ("tcp-crr", _) => {
                assert_eq!(sample.invalid, None, "{:?}", cell.levels);
                let requests = sample.loads[0].requests.as_ref().expect("requests");
                // The server's side waits, so that the client's ports are free again at once.
                assert_eq!(requests.transactions, 200, "{requests:?}");
            }
            _ => assert_eq!(sample.invalid, None, "{:?}", cell.levels),
        }
    }
}

#[test]
fn a_socket_buffer_beyond_the_systems_limit_is_given_to_root_whose_limit_stays() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let limits = || {
        ["rmem_max", "wmem_max"]
            .map(|name| fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("a sysctl"))
    };
    let before = limits();
    let place = TestDir::new();
    let plan = place.plan(
        "name: wide\nload: { tcp-stream: { socket_buffer: [auto, 64MiB] } }\n\
         repeat: { rounds: 1, seconds: 1, warmup: 0.05 }\n",
    );
    run(&mut place.run_command(&plan, "out")).expect_code(0);
    let record = Record::read(&place.path().join("out")).expect("a record");
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        let cell = &record.head.experiment.cells[sample.cell as usize];
        let flow = &sample.loads[0].flows[0];
        if cell.levels["socket_buffer"] == "64MiB" {
            let (sender, receiver) = (flow.sender.as_ref(), flow.receiver.as_ref());
            assert_eq!(sender.expect("a socket").sndbuf, 128 << 20);
            assert_eq!(receiver.expect("a socket").rcvbuf, 128 << 20);
        }
    }
    assert_eq!(limits(), before);
}

/// A control group with a limit of memory, of whichever version there is; gone with the value.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("wirecost-test-{}-{bytes}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        places.iter().find_map(|(root, limit)| {
            let group = Self(PathBuf::from(root).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(limit), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    /// A command line of sh(1) that runs its arguments within the group.
    fn entering(&self) -> String {
        format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn memory_that_a_control_group_does_not_leave_is_the_samples_error() {
    if !is_root() {
        return;
    }
    let Some(group) = Group::new(512 << 20) else {
        skip("this needs a control group with a limit of memory");
        return;
    };
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = limited(
        &place,
        "name: narrow\nload: { tcp-stream: { streams: 1024, socket_buffer: [8KiB, 2MiB] } }\n\
         repeat: { rounds: 1, seconds: 0.3, warmup: 0.1 }\n",
        &["sh", "-c", &group.entering(), "sh"],
    );
    for sample in &record.samples {
        let cell = &record.head.experiment.cells[sample.cell as usize];
        if cell.levels["socket_buffer"] == "8KiB" {
            assert_eq!(sample.invalid, None);
            assert_eq!(sample.loads[0].flows.len(), 1024);
        } else {
            let words = reason(sample);
            for part in [
                "load tcp-stream:",
                "MiB are available",
                "smaller socket buffer",
            ] {
                assert!(words.contains(part), "{part}: {words}");
            }
        }
    }
}

#[test]
fn a_report_that_a_control_group_has_no_memory_for_is_refused_before_the_record_is_read() {
    if !is_root() {
        return;
    }
    // Less than the result of a large record may need (docs/record-format.md), and enough for the program.
    let Some(group) = Group::new(60 << 20) else {
        skip("this needs a control group with a limit of memory");
        return;
    };
    let record = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/report/tests/records/v1"
    );
    // Read, its samples would be refused with another error: they are zeros.
    let large = tempfile::tempdir().expect("a directory");
    for file in fs::read_dir(record).expect("the record") {
        let file = file.expect("a file of it");
        fs::copy(file.path(), large.path().join(file.file_name())).expect("a copy");
    }
    let samples = File::options()
        .write(true)
        .open(large.path().join("samples.jsonl"));
    let grown = samples.and_then(|samples| samples.set_len(1 << 30));
    grown.expect("a file with a hole");
    let report = |record: &Path| {
        let mut report = Command::new("sh");
        report
            .args(["-c", &group.entering(), "sh"])
            .arg(program())
            .arg("report")
            .arg(record);
        run(&mut report)
    };
    report(record.as_ref()).expect_code(0);
    let refused = report(large.path());
    refused.expect_code(3);
    assert!(refused.stderr.contains("memory.max"), "{refused:?}");
}
