//! The meter on this machine's own counters.

use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use wirecost_meter::{Meter, MeterError, Scope, delta};

fn scope(cpus: Vec<u32>) -> Scope {
    let task = gettid().as_raw().unsigned_abs();
    Scope {
        cpus,
        pid: std::process::id(),
        host_task: task,
        guest_tasks: vec![task],
    }
}

fn first_allowed_core() -> usize {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("affinity");
    (0..CpuSet::count())
        .find(|&cpu| allowed.is_set(cpu).unwrap_or(false))
        .expect("a core")
}

#[test]
fn a_spinning_thread_makes_its_core_busy() {
    let cpu = first_allowed_core();
    let mut meter = Meter::open(scope(vec![cpu as u32])).expect("meter");
    let before = meter.snapshot().expect("before");
    let spinning = std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(cpu).expect("core");
        sched_setaffinity(Pid::from_raw(0), &only).expect("pinned");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }
    });
    spinning.join().expect("spun");
    let usage = delta(&before, &meter.snapshot().expect("after"));

    assert!(usage.window_s >= 0.3);
    assert_eq!(usage.cores.len(), 1);
    let busy = usage.cores[0].busy_s;
    assert!(busy > 0.0 && busy <= usage.window_s + 0.02, "{usage:?}");
    assert_eq!(usage.foreign_cores, None);
}

#[test]
fn the_guests_links_are_named_apart_and_loopback_is_left_out() {
    let mut meter = Meter::open(scope(vec![])).expect("meter");
    let before = meter.snapshot().expect("before");
    let usage = delta(&before, &meter.snapshot().expect("after"));
    assert!(!usage.links.contains_key("lo") && !usage.links.contains_key("guest:lo"));
    for name in usage.links.keys().filter(|name| !name.contains(':')) {
        assert!(usage.links.contains_key(&format!("guest:{name}")), "{name}");
    }
}

#[test]
fn datagrams_sent_are_counted_in_the_guests_protocols() {
    let mut meter = Meter::open(scope(vec![])).expect("meter");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("socket");
    let before = meter.snapshot().expect("before");
    for _ in 0..20 {
        let here = socket.local_addr().expect("address");
        socket.send_to(b"counted", here).expect("sent");
    }
    let usage = delta(&before, &meter.snapshot().expect("after"));
    assert!(usage.guest.udp_out >= 20, "{:?}", usage.guest);
}

#[test]
fn a_core_that_is_not_online_is_named() {
    let mut meter = Meter::open(scope(vec![4095])).expect("meter");
    let error = meter.snapshot().expect_err("offline");
    assert!(matches!(error, MeterError::Offline { cpu: 4095, .. }));
    assert!(
        error
            .to_string()
            .starts_with("cpu4095 has no line in /proc/stat"),
        "{error}"
    );
}

#[test]
fn a_thread_that_is_gone_is_named_by_its_file() {
    let mut gone = scope(vec![]);
    gone.guest_tasks = vec![u32::MAX];
    let error = Meter::open(gone).expect_err("gone").to_string();
    assert!(error.contains("/task/4294967295/net/"), "{error}");
}
