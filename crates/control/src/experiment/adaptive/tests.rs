use wirecost_model::fixtures;
use wirecost_model::latency::{Latency, bucket_of};
use wirecost_model::load::Workload;
use wirecost_model::sample::{Invalid, LoadResult, RequestResult};

use super::*;

fn experiment(repeat: &str) -> Experiment {
    let text = format!("name: x\nguest_mtu: [1400, 1500]\nrepeat: {{ {repeat} }}\n");
    wirecost_plan::load("plan.yaml", &text).expect("a plan")
}

fn sample(round: u32, cell: u32, gbps: f64) -> Sample {
    Sample {
        loads: vec![fixtures::stream((gbps * 1e9 / 8.0) as u64)],
        ..fixtures::sample(round, cell)
    }
}

/// Looks after every round of a run whose second cell has the first's throughput, give or take
/// `noise`, until it ends.
fn analyses(experiment: &Experiment, noise: f64, round_s: f64) -> Vec<InterimAnalysis> {
    let mut monitor = AdaptiveMonitor::of(experiment, None).expect("until");
    let mut analyses = Vec::new();
    for round in 0..experiment.plan.repeat.rounds {
        let sign = if round % 2 == 0 { 1.0 } else { -1.0 };
        monitor.taken(&sample(round, 0, 1.0));
        monitor.taken(&sample(round, 1, 1.0 + sign * noise));
        analyses.push(monitor.interim_analysis(round + 1, f64::from(round + 1) * round_s));
        if analyses.last().expect("one").end.is_some() {
            break;
        }
    }
    analyses
}

fn end(analyses: &[InterimAnalysis]) -> (StopReason, u32) {
    let end = analyses
        .last()
        .and_then(|analysis| analysis.end)
        .expect("an end");
    (end.why, analyses.len() as u32)
}

#[test]
fn a_fixed_number_of_rounds_is_not_watched() {
    assert!(AdaptiveMonitor::of(&experiment("rounds: 5"), None).is_none());
}

#[test]
fn steady_cells_are_known_at_the_least_rounds() {
    let all = analyses(&experiment("min_rounds: 6, ask: throughput"), 0.001, 1.0);
    assert_eq!(end(&all), (StopReason::Known, 6));
    let last = all.last().expect("one");
    assert_eq!((last.known, last.asked, last.rounds), (1, 1, 6));
    assert!(
        all[1..5].iter().all(|analysis| analysis.rounds == 6),
        "{all:?}"
    );
}

#[test]
fn wild_cells_end_by_their_most_rounds() {
    let all = analyses(&experiment("max_rounds: 12, ask: throughput"), 0.3, 1.0);
    assert_eq!(end(&all), (StopReason::MaxRounds, 12));
    assert_eq!(all[11].end.map(|end| end.ends_at), Some(12));
    assert!(
        all[4..].iter().all(|analysis| analysis.rounds == 12),
        "{all:?}"
    );
}

#[test]
fn no_round_is_begun_that_the_budget_has_no_room_for() {
    let plan = experiment("budget: 10s, ask: throughput");
    // Nine rounds take 9.9 s.
    assert_eq!(end(&analyses(&plan, 0.3, 1.1)), (StopReason::Budget, 9));
    // Ten take all of it.
    assert_eq!(end(&analyses(&plan, 0.3, 1.0)), (StopReason::Budget, 10));
}

#[test]
fn the_least_rounds_are_measured_beyond_the_budget() {
    let plan = experiment("budget: 3s, min_rounds: 6, ask: throughput");
    assert_eq!(end(&analyses(&plan, 0.3, 1.0)), (StopReason::Budget, 6));
}

#[test]
fn an_effect_that_cannot_be_measured_is_not_waited_for() {
    // Throughput alone has figures here: CPU is asked for and not waited for.
    let all = analyses(&experiment("min_rounds: 6"), 0.001, 1.0);
    assert_eq!((end(&all).0, all[5].asked), (StopReason::Known, 1));

    let experiment = experiment("max_rounds: 8");
    let mut monitor = AdaptiveMonitor::of(&experiment, None).expect("until");
    for round in 0..8 {
        monitor.taken(&sample(round, 0, 1.0));
        monitor.taken(&Sample {
            invalid: Some(Invalid::Build("no".into())),
            ..sample(round, 1, 1.0)
        });
    }
    let analysis = monitor.interim_analysis(8, 8.0);
    assert_eq!(
        (analysis.asked, analysis.end.map(|end| end.why)),
        (0, Some(StopReason::MaxRounds))
    );
}

#[test]
fn percentiles_that_samples_have_too_few_requests_for_are_not_waited_for() {
    let answered = |count: u64| LoadResult {
        requests: Some(RequestResult {
            transactions: count,
            timeouts: 0,
            late: 0,
            duplicated: 0,
            latency: Latency::from_buckets([(bucket_of(50_000) as u32, count)]),
            lateness: Latency::default(),
            flushes: Latency::default(),
            intervals: Vec::new(),
        }),
        ..fixtures::load("tcp-rr", Workload::TcpRr)
    };
    let analysis = |asked: &str, count: u64, second: Option<Invalid>| {
        let text = format!(
            "name: x\nguest_mtu: [1400, 1500]\nload: tcp-rr\nrepeat: {{ max_rounds: 20, ask: {asked} }}\n"
        );
        let experiment = wirecost_plan::load("plan.yaml", &text).expect("a plan");
        let mut monitor = AdaptiveMonitor::of(&experiment, None).expect("until");
        for round in 0..6 {
            for cell in 0..2 {
                monitor.taken(&Sample {
                    loads: vec![answered(count)],
                    invalid: second.clone().filter(|_| cell == 1),
                    ..fixtures::sample(round, cell)
                });
            }
        }
        assert_eq!(monitor.interim_analysis(5, 5.0).end, None);
        let analysis = monitor.interim_analysis(6, 6.0);
        (analysis.asked, analysis.end.map(|end| end.why))
    };
    let known = Some(StopReason::Known);
    assert_eq!(analysis("latency", 19, None), (0, known));
    // The median of 100 requests can be told, the percentiles beyond cannot.
    assert_eq!(analysis("latency", 100, None), (1, known));
    // Transactions per second have pairs as soon as both cells have valid samples.
    let invalid = Some(Invalid::Build("no".into()));
    assert_eq!(analysis("all", 19, invalid), (0, None));
}
