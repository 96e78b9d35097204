use std::process::{Child, Command};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

/// Number, start tick, run times by task, inherited time.
type MadeUp<'a> = (u32, u64, &'a [(u32, u64)], u64);

/// A made-up scan, `at_s` seconds after `origin`.
fn scan(origin: Instant, at_s: u64, processes: &[MadeUp<'_>]) -> ForeignSnapshot {
    ForeignSnapshot {
        at: origin + Duration::from_secs(at_s),
        uptime: 1000 + at_s * 100,
        processes: processes
            .iter()
            .map(|&(pid, start, tasks, reaped_ns)| {
                let process = Process {
                    ours: false,
                    parent: 0,
                    tasks: tasks.iter().copied().collect(),
                    own_ns: 0,
                    reaped_ns,
                };
                (Identity { pid, start }, process)
            })
            .collect(),
    }
}

fn assert_cores(before: &ForeignSnapshot, after: &ForeignSnapshot, expected: f64) {
    let cores = foreign_cores(before, after);
    assert!((cores - expected).abs() < 1e-9, "{cores} is not {expected}");
}

#[test]
fn tasks_in_both_scans_count_what_they_gained() {
    let origin = Instant::now();
    let before = scan(origin, 0, &[(1, 5, &[(1, S), (2, 5 * S)], 0)]);
    let after = scan(origin, 2, &[(1, 5, &[(1, 2 * S), (2, 6 * S)], 0)]);
    assert_cores(&before, &after, 1.0);
    assert_cores(&after, &before, 0.0);
}

#[test]
fn a_process_counts_whole_only_if_it_began_after_the_first_scan() {
    let origin = Instant::now();
    let before = scan(origin, 0, &[]);
    let began = scan(origin, 1, &[(9, 1050, &[(9, S / 2)], 0)]);
    assert_cores(&before, &began, 0.5);
    let was_hidden = scan(origin, 1, &[(9, 900, &[(9, 70 * S)], 30 * S)]);
    assert_cores(&before, &was_hidden, 0.0);
}

#[test]
fn a_new_thread_of_a_known_process_counts_whole() {
    let origin = Instant::now();
    let before = scan(origin, 0, &[(1, 5, &[(1, S)], 0)]);
    let after = scan(origin, 1, &[(1, 5, &[(1, S), (7, S / 4)], 0)]);
    assert_cores(&before, &after, 0.25);
}

#[test]
fn a_number_given_to_another_process_is_another_process() {
    let origin = Instant::now();
    let before = scan(origin, 0, &[(9, 5, &[(9, 100 * S)], 0)]);
    let after = scan(origin, 1, &[(9, 1010, &[(9, S / 2)], 0)]);
    assert_cores(&before, &after, 0.5);
}

#[test]
fn what_ended_threads_had_done_before_the_first_scan_is_not_new() {
    let origin = Instant::now();
    // A compiler whose 50 s are mostly those of threads that ended long ago, then its end.
    let mut before = scan(
        origin,
        0,
        &[(1, 5, &[(1, S)], 0), (9, 50, &[(9, 2 * S)], 0)],
    );
    before
        .processes
        .values_mut()
        .filter(|process| process.tasks.contains_key(&9))
        .for_each(|process| process.own_ns = 50 * S);
    let after = scan(origin, 1, &[(1, 5, &[(1, S)], 50 * S + S / 4)]);
    assert_cores(&before, &after, 0.25);
}

#[test]
fn what_a_process_did_before_it_ended_is_seen_through_its_parent() {
    let origin = Instant::now();
    let child: MadeUp<'_> = (9, 50, &[(9, 100 * S)], 0);
    let before = scan(origin, 0, &[(1, 5, &[(1, S)], 0), child]);
    // The child went on for 0.3 s, and a short-lived one that no scan saw took 0.1 s.
    let after = scan(origin, 1, &[(1, 5, &[(1, S)], 100 * S + 4 * S / 10)]);
    assert_cores(&before, &after, 0.4);
    let unreaped = scan(origin, 1, &[(1, 5, &[(1, S)], 0)]);
    assert_cores(&before, &unreaped, 0.0);
}

#[test]
fn our_own_processes_are_not_foreign() {
    let origin = Instant::now();
    let mut before = scan(origin, 0, &[(1, 5, &[(1, S)], 0)]);
    let mut after = scan(origin, 1, &[(1, 5, &[(1, 2 * S)], S)]);
    for scan in [&mut before, &mut after] {
        for process in scan.processes.values_mut() {
            process.ours = true;
        }
    }
    assert_cores(&before, &after, 0.0);
}

#[test]
fn what_our_processes_have_started_is_ours_and_its_end_hides_nothing_foreign() {
    let origin = Instant::now();
    let hypervisor: MadeUp<'_> = (7, 60, &[(7, 50 * S)], 0);
    let mut before = scan(
        origin,
        0,
        &[(1, 5, &[(1, S)], 0), (4, 50, &[], 0), hypervisor],
    );
    for (identity, process) in &mut before.processes {
        process.ours = identity.pid == 4;
        process.parent = if identity.pid == 7 { 4 } else { 0 };
    }
    adopt(&mut before.processes);
    let ours = |pid| {
        before
            .processes
            .iter()
            .any(|(of, process)| of.pid == pid && process.ours)
    };
    assert!(ours(4) && ours(7) && !ours(1));
    // It has ended, and so has a foreign child that no scan saw.
    let after = scan(origin, 1, &[(1, 5, &[(1, S)], S / 4)]);
    assert_cores(&before, &after, 0.25);
}

#[test]
fn what_process_1_has_as_children_is_not_ours() {
    let init_and_daemon: [MadeUp<'_>; 2] = [(1, 5, &[], 0), (9, 50, &[], 0)];
    let mut scanned = scan(Instant::now(), 0, &init_and_daemon);
    for (identity, process) in &mut scanned.processes {
        process.ours = identity.pid == 1;
        process.parent = u32::from(identity.pid == 9);
    }
    adopt(&mut scanned.processes);
    let processes = scanned.processes.iter();
    let ours = processes.filter(|(_, process)| process.ours);
    assert_eq!(ours.map(|(of, _)| of.pid).collect::<Vec<_>>(), [1]);
}

#[test]
fn an_agent_in_a_container_is_ours_and_what_else_has_its_number_is_not() {
    let ours = Ours {
        numbers: &[17, 4000],
        program: "4000 (wirecost) S 1 4000 4000 0 -1".to_owned(),
    };
    let has = |pid, name: &str, numbers: &str| {
        let stat = format!("{pid} ({name}) S 1 1 1 0 -1");
        ours.has(pid, &stat, || Some(format!("NSpid:\t{numbers}\n")))
    };
    assert!(has(4000, "wirecost", "4000"));
    assert!(has(812, "wirecost", "812\t17"));
    assert!(!has(813, "wirecost", "813\t18") && !has(814, "wirecost", "814"));
    assert!(!has(815, "nginx", "815\t17"));
    assert!(
        !ours.has(816, "816 (wirecost) S 1", || None),
        "it has ended"
    );
}

proptest! {
    #[test]
    fn foreign_load_is_never_negative(
        before in prop::collection::vec((1u32..6, 900u64..1100, 0u64..S, 0u64..S), 0..6),
        after in prop::collection::vec((1u32..6, 900u64..1100, 0u64..S, 0u64..S), 0..6),
    ) {
        let origin = Instant::now();
        let of = |at_s, list: &[(u32, u64, u64, u64)]| {
            let tasks: Vec<_> = list.iter().map(|p| [(p.0, p.2)]).collect();
            let list: Vec<_> = list
                .iter()
                .zip(&tasks)
                .map(|(p, tasks)| (p.0, p.1, tasks.as_slice(), p.3))
                .collect();
            scan(origin, at_s, &list)
        };
        let cores = foreign_cores(&of(0, &before), &of(1, &after));
        prop_assert!((0.0..=12.0).contains(&cores));
    }
}

struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_spinning_program_is_seen_and_neither_our_own_spinning_nor_our_childs() {
    let child = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let spinner = Spinner(child.expect("sh"));
    let this = std::process::id();
    let nobody_and_this: [&[u32]; 2] = [&[], &[this]];
    let scans = || nobody_and_this.map(|ours| foreign_snapshot(ours).expect("a scan"));
    let before = scans();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        std::hint::spin_loop();
    }
    let after = scans();

    let gained =
        |scan: usize| -> HashMap<u32, u64> { run_time(&before[scan], &after[scan]).collect() };
    let (everything, foreign) = (gained(0), gained(1));
    assert!(everything[&spinner.0.id()] > 0, "{everything:?}");
    assert!(everything.contains_key(&this));
    assert!(!foreign.contains_key(&spinner.0.id()) && !foreign.contains_key(&this));
    assert!(foreign_cores(&before[0], &after[0]) > 0.0);
}

#[test]
fn kernel_threads_are_left_out() {
    let scan = foreign_snapshot(&[]).expect("scan");
    let is_kernel_thread = |identity: &Identity| {
        read_once(format!("/proc/{}/stat", identity.pid))
            .ok()
            .and_then(|text| parse_stat(&text).ok())
            .is_some_and(|stat| stat.kernel_thread)
    };
    assert!(!scan.processes.keys().any(is_kernel_thread));
    assert!(!scan.processes.is_empty());
}
