//! Schedules, lateness, the load's own threads, congestion control that paces.

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::end_window::End;
use wirecost_model::latency::{Latency, bucket_of};
use wirecost_model::load::{Load, Rate, Workload};
use wirecost_model::metric::Metric;
use wirecost_model::sample::{Flow, Mark, RequestResult, Sample, Socket};
use wirecost_stats::comparable::{BOTTLENECK_SAMPLES_SHARE, LATENESS_RATIO, MIN_NETWORK_RTT_US};

use super::{Planted, ROUNDS};

/// Requests at 10,000/s in windows of 1 s.
fn requests() -> Planted {
    let load = Load {
        rate: Some(Rate::RequestsPerSecond(10_000.0)),
        ..Load::new(Workload::TcpRr)
    };
    Planted::of("encapsulation", ["none", "vxlan"])
        .cells(|cell| {
            cell.loads[0].name = "tcp-rr".into();
            cell.loads[0].load = load.clone();
        })
        .sampled(0, |sample| answered(sample, 10_000, 100, 5))
        .sampled(1, |sample| answered(sample, 10_000, 150, 5))
}

/// So many transactions, each with one latency and lateness in microseconds.
fn answered(sample: &mut Sample, transactions: u64, us: u64, late_us: u64) {
    let all = |us: u64| Latency::from_buckets([(bucket_of(us * 1000) as u32, transactions)]);
    let load = &mut sample.loads[0];
    load.name = "tcp-rr".into();
    load.workload = Workload::TcpRr;
    load.stream = None;
    load.requests = Some(RequestResult {
        transactions,
        timeouts: 0,
        late: 0,
        duplicated: 0,
        flushes: Latency::default(),
        latency: all(us),
        lateness: all(late_us),
        intervals: Vec::new(),
    });
}

#[test]
fn a_schedule_that_was_kept_has_its_latency() {
    let kept = requests();
    assert_eq!(kept.effect(Metric::LatencyMedian).verdict, Verdict::Costs);
    assert_eq!(kept.remarks(Metric::LatencyMedian), []);
}

#[test]
fn a_load_that_fell_behind_has_no_latency_verdict() {
    for cell in [0, 1] {
        let behind = requests().sampled(cell, |sample| answered(sample, 3_000, 100, 5));
        for metric in [Metric::LatencyMedian, Metric::LatencyP99] {
            assert_eq!(behind.not_comparable(metric), Some(RemarkKind::Schedule));
        }
        // What it achieved is a figure all the same.
        assert_ne!(
            behind.not_comparable(Metric::Transactions),
            Some(RemarkKind::Schedule)
        );
    }
}

#[test]
fn one_window_behind_is_enough() {
    let mut one = requests();
    answered(&mut one.samples[3], 5_000, 100, 5);
    assert_eq!(
        one.not_comparable(Metric::LatencyMedian),
        Some(RemarkKind::Schedule)
    );
}

#[test]
fn lateness_beyond_a_fifth_of_the_latency_is_told_beside_it() {
    let late = |us: u64| requests().sampled(0, move |sample| answered(sample, 10_000, 100, us));
    let fifth = (100.0 * LATENESS_RATIO) as u64;
    let told = late(fifth + 2);
    assert_eq!(told.effect(Metric::LatencyMedian).verdict, Verdict::Costs);
    assert_eq!(told.remarks(Metric::LatencyMedian), [RemarkKind::Schedule]);
    assert_eq!(told.remarks(Metric::Transactions), []);
    assert_eq!(late(fifth - 2).remarks(Metric::LatencyMedian), []);
}

/// The load's threads were the limit in the first `samples` of a cell.
fn bound(planted: Planted, samples: u32) -> Planted {
    planted.sampled(1, |sample| {
        if sample.round < samples {
            sample.marks.push(Mark::GeneratorBound {
                load: sample.loads[0].name.clone(),
                host: "a".into(),
                end: End::Client,
            });
        }
    })
}

#[test]
fn a_generator_that_was_the_limit_in_most_samples_bars_speed_and_cpu() {
    let most = (f64::from(ROUNDS) * BOTTLENECK_SAMPLES_SHARE) as u32;
    let network = || Planted::of("encapsulation", ["none", "vxlan"]);
    for metric in [Metric::Throughput, Metric::SenderCpu] {
        assert_eq!(
            bound(network(), most).not_comparable(metric),
            Some(RemarkKind::Generator)
        );
        assert_eq!(bound(network(), most - 1).not_comparable(metric), None);
    }
    assert_eq!(
        bound(requests(), ROUNDS).not_comparable(Metric::LatencyMedian),
        None
    );
}

#[test]
fn options_of_a_load_are_about_its_threads_unless_it_is_paced() {
    let threads = || bound(Planted::of("threads", ["1", "2"]), ROUNDS);
    assert_eq!(threads().not_comparable(Metric::Throughput), None);
    assert_eq!(
        threads().remarks(Metric::Throughput),
        [RemarkKind::Generator]
    );
    let paced =
        threads().cells(|cell| cell.loads[0].load.rate = Some(Rate::BitsPerSecond(1 << 40)));
    assert_eq!(
        paced.not_comparable(Metric::SenderCpu),
        Some(RemarkKind::Generator)
    );
}

fn rtt(sample: &mut Sample, us: u32) {
    let socket = Socket {
        min_rtt_us: us,
        ..Socket::default()
    };
    sample.loads[0].flows = vec![Flow {
        bytes: 0,
        back_bytes: 0,
        sender: Some(socket),
        receiver: None,
    }];
}

#[test]
fn bbr_without_a_network_paces_by_microseconds() {
    let congestion = |us: u32| {
        Planted::of("congestion", ["cubic", "bbr"])
            .cell(1, |cell| cell.loads[0].load.congestion = Some("bbr".into()))
            .sampled(0, move |sample| rtt(sample, us))
            .sampled(1, move |sample| rtt(sample, us))
    };
    assert_eq!(
        congestion(MIN_NETWORK_RTT_US - 1).not_comparable(Metric::Throughput),
        Some(RemarkKind::Pacing)
    );
    assert_eq!(
        congestion(MIN_NETWORK_RTT_US).not_comparable(Metric::Throughput),
        None
    );
    let line = congestion(40).cells(|cell| cell.network.rate = Some(10_000_000_000));
    assert_eq!(line.not_comparable(Metric::Throughput), None);
    let both = congestion(40).cell(0, |cell| cell.loads[0].load.congestion = Some("bbr".into()));
    assert_eq!(both.not_comparable(Metric::Throughput), None);
    assert_eq!(both.remarks(Metric::Throughput), [RemarkKind::Pacing]);
}
