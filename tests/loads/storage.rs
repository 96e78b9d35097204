//! Storage through the whole program: the network's share, flushes, and servers that are not ours.

use wirecost_model::metric::{Metric, median_at_target};
use wirecost_model::sample::Invalid;

use super::{record_of, says};
use crate::common::{Record, TestDir, lab_can_be_built, lock_shared, run, wirecost};

const PLAN: &str = "\
name: share
guest_mtu: [1500, 8900]
underlay: { mtu: 9000 }
encapsulation: none
offload: none
load: { storage: { io_size: 4KiB, depth: 4, connections: 2, pattern: random-write, flush_every: 8, network_share: on } }
repeat: { rounds: 3, seconds: 4, warmup: 0.1 }
";

#[test]
fn the_network_s_share_is_measured_beside_and_told_with_its_interval() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, PLAN);
    for sample in &record.samples {
        let beside = sample.at_target.as_ref().expect("a window at the target");
        let (across, at_target) = (&sample.loads[0], &beside.loads[0]);
        // Both ends are on host b, and no TCP is between them.
        for flow in &across.flows {
            assert!(flow.sender.is_some() && flow.receiver.is_some());
        }
        for flow in &at_target.flows {
            assert_eq!((&flow.sender, &flow.receiver), (&None, &None));
        }
        assert_eq!(at_target.flows.len(), 2);
        for load in [across, at_target] {
            let requests = load.requests.as_ref().expect("I/O");
            let flushes = requests.flushes.count() as f64;
            let expected = requests.transactions as f64 / 8.0;
            // At either edge of a short window some I/O of each connection has no flush yet.
            assert!(
                flushes > 0.0 && (flushes - expected).abs() < expected * 0.5 + 4.0,
                "{flushes} of {expected}"
            );
        }
        assert!(median_at_target(sample, "storage").is_some_and(|median| median > 0.0));
        assert!(Metric::LatencyMedian.value(sample, "storage").is_some());
    }
    let report = |option: &str| {
        let ended = run(wirecost(["report", "out", option]).current_dir(place.path()));
        ended.expect_code(0);
        ended
    };
    let document = report("--json").document();
    let share = &document["cells"][0]["loads"][0]["network"];
    let across = share["latency_us"]["mean"].as_f64().expect("a figure");
    let at_target = share["at_target_us"]["mean"].as_f64().expect("a figure");
    let network = share["network_us"]["mean"].as_f64().expect("a figure");
    assert!((across - at_target - network).abs() < 1e-6, "{share}");
    let changes = document["network_changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["to"], "8900");
    let said = report("--full").stdout;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("The network's share: of ") && words.contains(" us are the network's"),
        "{said}"
    );
}

#[test]
fn what_does_not_fit_memory_is_named_before_it_is_taken() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    // 2 TiB, on either host.
    let plan = place.plan(
        "name: large\nguest_mtu: 1500\nload: { migration: { machines: 1024, memory: 2GiB } }\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0 }\n",
    );
    run(&mut place.run_command(&plan, "large"));
    let record = Record::read(&place.path().join("large")).expect("a record");
    match &record.samples[0].invalid {
        Some(Invalid::Load(reason)) => assert!(
            reason.contains("the load needs about") && reason.contains("fewer streams or machines"),
            "{reason}"
        ),
        other => panic!("not the load's own error: {other:?}"),
    }
}

#[test]
fn what_a_lab_does_not_reach_and_a_load_cannot_have_is_an_error_of_the_plan() {
    let _lock = lock_shared();
    let place = TestDir::new();
    for (load, words) in [
        (
            "target: \"nbd://db2/disk\"",
            "a server that the hosts of a lab do not reach",
        ),
        ("target: \"nbds://db2/disk\"", "TLS is not supported"),
        ("target: nowhere", "no URI"),
        (
            "destructive: on",
            "the built-in target has no content to lose",
        ),
        ("flush_every: 4", "random-read has no writes to flush"),
        ("network_share: on, limit: 1000", "has no second window"),
    ] {
        let plan = place.plan(&format!(
            "name: wrong\nguest_mtu: 1500\nload: {{ storage: {{ {load} }} }}\nrepeat: {{ rounds: 1, seconds: 0.1 }}\n"
        ));
        let ended = run(&mut place.run_command(&plan, "out"));
        ended.expect_code(2);
        says(&ended, words);
    }
}
