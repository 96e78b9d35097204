//! Live migration through the whole program: machines that arrive, machines that do not, and what is beside them.

use wirecost_model::machine_move::{MachineMove, MoveOutcome};
use wirecost_model::metric::Metric;
use wirecost_model::sample::Sample;
use wirecost_sys::dirty_pages::DirtyPages;
use wirecost_sys::missing_pages::MissingPages;

use super::record_of;
use crate::common::{Record, TestDir, lab_can_be_built, lock_shared, run, skip, wirecost};

const PLAN: &str = "\
name: moves
underlay: { mtu: 9000, rate: 1gbit }
guests: 2
guest_mtu: 1500
offload: none
load:
  migration:
    machines_per_guest: 2
    memory: 4MiB
    channels: 2
    dirty_rate: [none, 20gbit]
    working_set: 100
    # However little of a core the machines have, they write more than this takes.
    max_downtime: 1ms
    fallback: [give-up, stop]
repeat: { rounds: 1, seconds: 0.2, warmup: 0 }
";

fn can_migrate() -> bool {
    if !lab_can_be_built() {
        return false;
    }
    match DirtyPages::check() {
        Ok(()) => true,
        Err(error) => {
            skip(format!("this kernel does not track writes: {error}"));
            false
        }
    }
}

fn samples<'a>(record: &'a Record, option: &str, level: &str) -> Vec<&'a Sample> {
    let cells = record.head.experiment.cells.iter();
    let cells: Vec<u32> = cells
        .filter(|cell| cell.levels.get(option).is_some_and(|found| found == level))
        .map(|cell| cell.index)
        .collect();
    let samples = record.samples.iter();
    samples
        .filter(|sample| cells.contains(&sample.cell))
        .collect()
}

#[test]
fn machines_move_or_stay_and_both_are_results() {
    if !can_migrate() {
        return;
    }
    let _lock = lock_shared();
    let record = record_of(&TestDir::new(), PLAN);
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        let load = &sample.loads[0];
        assert_eq!((load.moves.len(), load.flows.len()), (4, 8));
        let numbers: Vec<u32> = load.moves.iter().map(|one| one.machine).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        let sent: u64 = load.moves.iter().map(|one| one.sent_bytes).sum();
        assert_eq!(load.stream.as_ref().map(|stream| stream.bytes), Some(sent));
        for one in &load.moves {
            assert!(one.total_s <= load.client_seconds + 1e-3, "{load:#?}");
        }
    }
    let value = |sample: &Sample, metric: Metric| metric.value(sample, "migration");
    for still in samples(&record, "dirty_rate", "none") {
        let moves = &still.loads[0].moves;
        assert!(moves.iter().all(|one| one.outcome == MoveOutcome::Moved));
        assert!(moves.iter().all(|one| one.sent_bytes == one.memory_bytes));
        // 16 MiB through 1 Gbit/s.
        let time = value(still, Metric::MoveTime).expect("a time");
        assert!(time >= 0.13, "{time}");
    }
    let [stayed, forced] = ["give-up", "stop"].map(|fallback| {
        let such = samples(&record, "fallback", fallback);
        let hasty = samples(&record, "dirty_rate", "20gbit");
        let both = such
            .into_iter()
            .find(|one| hasty.iter().any(|other| other.cell == one.cell));
        both.expect("a sample").clone()
    });
    // A guest that had no core while its memory was sent has nothing left to send.
    let had_no_core = |one: &MachineMove| one.rounds.iter().any(|round| round.dirtied <= 16);
    let outcomes = |sample: &Sample, outcome: MoveOutcome| {
        let moves = &sample.loads[0].moves;
        let such = |one: &&MachineMove| one.outcome == outcome;
        assert!(moves.iter().any(|one| such(&one)), "{sample:#?}");
        moves.iter().all(|one| such(&one) || had_no_core(one))
    };
    assert!(outcomes(&stayed, MoveOutcome::NotConverged), "{stayed:#?}");
    assert_eq!(value(&stayed, Metric::MoveTime), None);
    assert_eq!(value(&stayed, Metric::Downtime), None);
    assert!(outcomes(&forced, MoveOutcome::Forced), "{forced:#?}");
    assert!(value(&forced, Metric::Downtime).is_some_and(|time| time > 0.001));
}

#[test]
fn machines_go_back_and_forth_and_an_observer_sees_how_long_they_are_gone() {
    if !can_migrate() {
        return;
    }
    let _lock = lock_shared();
    let plan = "name: watched\nunderlay: { rate: 1gbit }\nguest_mtu: 1500\nguests: 2\n\
                load: { migration: { machines_per_guest: 2, memory: 8MiB, dirty_rate: 10mbit, max_downtime: 20ms, watch: on, \
                back_and_forth: on, pause: 200ms } }\n\
                repeat: { rounds: 2, seconds: 0.5, warmup: 0 }\n";
    let place = TestDir::new();
    let record = record_of(&place, plan);
    let directions: Vec<&str> = record
        .samples
        .iter()
        .map(|sample| sample.loads[0].direction.key())
        .collect();
    assert_eq!(directions, ["a-to-b", "b-to-a"]);
    for sample in &record.samples {
        assert!(sample.took_s > 0.2, "the pause");
        for one in &sample.loads[0].moves {
            assert_eq!(one.outcome, MoveOutcome::Moved);
            let seen = one.seen.expect("an observer's view");
            // Of a machine that is gone for less than a millisecond no request need be lost.
            assert!(
                seen.to_machine_s >= 0.0 && seen.from_machine_s > 0.0,
                "{seen:?}"
            );
            assert!(
                seen.answered >= 2 && seen.answered <= 2 * seen.asked,
                "{seen:?}"
            );
            // It was asked before it was stopped, and after it had arrived.
            assert!(seen.from_machine_s < one.total_s + 3.0, "{one:?}");
        }
    }
    let report = run(wirecost(["report", "out", "--full"]).current_dir(place.path()));
    report.expect_code(0);
    assert!(report.stdout.contains("seen"), "{}", report.stdout);
    for (load, words) in [
        (
            "machines: 17, watch: on",
            "watch is for 16 machines at most",
        ),
        ("watch: on, find_limit: on", "watch sees one move"),
    ] {
        let plan = place.plan(&format!(
            "name: wrong\nguest_mtu: 1500\nload: {{ migration: {{ {load} }} }}\nrepeat: {{ rounds: 1, seconds: 0.1 }}\n"
        ));
        let ended = run(&mut place.run_command(&plan, "wrong"));
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{ended:#?}");
    }
}

#[test]
fn machines_go_on_before_all_of_them_is_there_and_nothing_of_it_is_lost() {
    if !can_migrate() {
        return;
    }
    if let Err(error) = MissingPages::check() {
        skip(format!("pages cannot be waited for here: {error}"));
        return;
    }
    let _lock = lock_shared();
    // 32 MiB through 200 Mbit/s take 1.4 s: by then it has written to nearly all of its pages, and on a busy machine to
    // more than 1 ms takes.
    let plan = "name: late\nunderlay: { rate: 200mbit }\nguest_mtu: 1500\nguests: 2\n\
                load: { migration: { machines_per_guest: 1, memory: 16MiB, channels: 2, dirty_rate: 2gbit, \
                working_set: 100, max_downtime: 1ms, watch: on, back_and_forth: on, max_rounds: 3, post_copy: [off, on] } }\n\
                repeat: { rounds: 2, seconds: 1, warmup: 0 }\n";
    let place = TestDir::new();
    let record = record_of(&place, plan);
    assert_eq!(record.samples.len(), 4);
    let of_level = |level: &str| -> Vec<MachineMove> {
        let samples = samples(&record, "post_copy", level).into_iter();
        samples
            .flat_map(|sample| sample.loads[0].moves.clone())
            .collect()
    };
    let stayed = of_level("off");
    assert_eq!(stayed.len(), 4);
    assert!(
        stayed
            .iter()
            .all(|one| one.outcome == MoveOutcome::NotConverged),
        "{stayed:?}"
    );
    let moved = of_level("on");
    assert_eq!(moved.len(), 4);
    for one in moved {
        assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
        assert_eq!(one.rounds.len(), 2, "{one:?}");
        assert!(one.fetched_pages > 0, "{one:?}");
        assert!(
            one.downtime_s > 0.0 && one.downtime_s < one.total_s,
            "{one:?}"
        );
        assert!(one.seen.is_some(), "{one:?}");
    }
    let report = run(wirecost(["report", "out", "--full"]).current_dir(place.path()));
    report.expect_code(0);
    assert!(report.stdout.contains("fetched"), "{}", report.stdout);
    for (load, words) in [
        ("post_copy: on, find_limit: on", "post_copy always ends"),
        ("post_copy: on, fallback: stop", "post_copy always ends"),
        (
            "post_copy: on, engine: qemu, channels: 2",
            "post_copy needs one channel",
        ),
    ] {
        let plan = place.plan(&format!(
            "name: wrong\nguest_mtu: 1500\nload: {{ migration: {{ {load} }} }}\nrepeat: {{ rounds: 1, seconds: 0.1 }}\n"
        ));
        let ended = run(&mut place.run_command(&plan, "wrong"));
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{ended:#?}");
    }
}

#[test]
fn what_is_beside_a_migration_goes_on_until_the_machines_have_moved() {
    if !can_migrate() {
        return;
    }
    let _lock = lock_shared();
    let plan = "name: neighbours\nunderlay: { rate: 1gbit }\nguest_mtu: 1500\n\
                load: { mix: { move: { migration: { memory: 128MiB } }, ping: { tcp-rr: { rate: 200 } } } }\n\
                repeat: { rounds: 1, seconds: 0.2, warmup: 0 }\n";
    let record = record_of(&TestDir::new(), plan);
    let [sample] = &record.samples[..] else {
        panic!("one sample: {:?}", record.samples);
    };
    assert_eq!(sample.invalid, None);
    let load = |name: &str| sample.load(name).expect("a load");
    let (moved, ping) = (load("move"), load("ping"));
    assert_eq!(moved.moves[0].outcome, MoveOutcome::Moved);
    assert!(
        ping.requests
            .as_ref()
            .is_some_and(|all| all.transactions > 0)
    );
    // The line needs 1.07 s for 128 MiB, and the window is 0.2 s. The two loads do not begin in the same moment.
    assert!(ping.client_seconds > 0.35, "{ping:?}");
}
