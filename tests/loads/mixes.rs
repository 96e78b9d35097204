//! What a load does to another one beside it: with and without, as a factor.

use wirecost_model::metric::Metric;

use super::{measured, record_of};
use crate::common::{
    self, TestDir, lab_can_be_built, lock_exclusive, lock_shared, measured_in, run,
};

const ALONE_AND_BESIDE: &str = "\
name: beside
underlay: { rate: 1gbit }
guest_mtu: 1500
load:
  mix:
    bulk: [none, { tcp-stream: { streams: [1, 4] } }]
    ping: { tcp-rr: { request: 128, response: 128 } }
repeat: { rounds: 3, seconds: 1, warmup: 0.15 }
";

#[test]
fn latency_alone_is_compared_with_latency_beside_a_bulk_stream() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    // A full queue is waited in. Programs that keep the requests from their cores hide that, in few runs.
    let mut runs = (0..3).map(|_| beside_bulk());
    assert!(runs.any(|is_longer| is_longer), "three runs");
}

/// Checks a run of the plan, and returns whether requests took longer beside the bulk stream in each sample and in each
/// effect.
fn beside_bulk() -> bool {
    let place = TestDir::new();
    let (ended, record) = measured_in(&place, ALONE_AND_BESIDE);
    ended.expect_code(0);
    assert_eq!(record.samples.len(), 3 * 3);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "cell {}", sample.cell);
    }
    let mut is_longer = true;
    let median = |one: &super::Measured<'_>| one.value(Metric::LatencyMedian);
    let pings = measured(&record, "ping");
    let has_median =
        |one: &super::Measured<'_>| Metric::LatencyMedian.value(one.sample, "ping").is_some();
    if !pings.iter().all(has_median) {
        println!("a window with too few requests for a median");
        return false;
    }
    let (without, with): (Vec<_>, Vec<_>) = pings
        .iter()
        .partition(|one| one.cell.levels["bulk"] == "none");
    assert_eq!((without.len(), with.len()), (3, 6));
    // What does not run has no options, and is not in the record.
    for one in &without {
        assert_eq!(one.sample.loads.len(), 1);
        assert!(!one.cell.levels.contains_key("bulk.streams"));
    }
    let least = without
        .iter()
        .map(|one| median(one))
        .fold(f64::MAX, f64::min);
    for one in &with {
        assert!(one.sample.load("bulk").is_some());
        is_longer &= median(one) > least;
    }

    let result = ended.document();
    let effects = result["effects"].as_array().expect("effects");
    let of_bulk: Vec<_> = effects
        .iter()
        .filter(|effect| effect["factor"] == "bulk")
        .collect();
    assert!(!of_bulk.is_empty());
    for effect in &of_bulk {
        assert_eq!(
            (&effect["from"], &effect["to"]),
            (&"none".into(), &"tcp-stream".into())
        );
        // Of the other load alone, and not of its CPU, which nobody can tell from the bulk's.
        assert_eq!(effect["load"], "ping", "{effect}");
        let metric = effect["metric"].as_str().expect("a metric");
        assert!(!metric.ends_with("_cpu"), "{effect}");
    }
    let latency: Vec<_> = of_bulk
        .iter()
        .filter(|effect| effect["metric"] == "latency_median")
        .collect();
    // Against the idle path, once for each number of bulk streams.
    assert_eq!(latency.len(), 2, "{latency:?}");
    for effect in latency {
        is_longer &= effect["ratio"].as_f64().is_some_and(|ratio| ratio > 1.0);
        assert_eq!(effect["rounds"], 3);
    }

    let told = run(common::wirecost(["report", "out"]).current_dir(place.path()));
    told.expect_code(0);
    assert!(
        told.stdout.contains("bulk tcp-stream instead of none"),
        "{}",
        told.stdout
    );
    // Requests and bulk have charts of their own.
    let html = common::wirecost(["report", "out", "--html", "--out", "page.html"])
        .current_dir(place.path())
        .output()
        .expect("a report");
    assert!(html.status.success());
    let page = std::fs::read_to_string(place.path().join("page.html")).expect("a page");
    for chart in [
        "samples-ping",
        "latency-ping",
        "windows-ping",
        "samples-bulk",
    ] {
        assert!(page.contains(&format!("id=\"{chart}\"")), "{chart}");
    }
    assert!(!page.contains("id=\"latency-bulk\""));
    println!("longer beside bulk: {is_longer}: {of_bulk:#?}");
    is_longer
}

const LIMITED: &str = "\
name: limited
load: { mix: { bulk: { tcp-stream: { limit: 2GiB } }, ping: { tcp-rr: { limit: 10 } }, pong: { udp-stream: { limit: 30 } } } }
repeat: { rounds: 2, seconds: 0.3, warmup: 0.1 }
";

#[test]
fn of_a_mix_whose_loads_end_by_themselves_each_has_its_own_window() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, LIMITED);
    for one in measured(&record, "ping") {
        let load = |name| one.sample.load(name).expect("a load");
        let (bulk, pong) = (load("bulk"), load("pong"));
        let requests = one.load.requests.as_ref().expect("requests");
        assert_eq!(requests.transactions, 10);
        assert!(one.load.client_seconds > 0.0);
        assert!(one.load.client_seconds < bulk.client_seconds);
        assert!(one.load.seconds < bulk.seconds);
        assert!(pong.seconds > 0.0 && pong.seconds < bulk.seconds);
        let least = requests.latency.percentile(50.0).expect("latencies") * 5;
        assert!(one.load.client_seconds >= least.as_secs_f64() * 0.999);
    }
}
