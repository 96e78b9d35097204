//! Wake-ups, the distance of the cores, what hops cost, and how finely core time is counted.

use std::slice::from_ref;

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::plan::AwaitedEffects;
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::{CoreDistance, Sample, Saturated};
use wirecost_model::transit::{Hop, HopKind};
use wirecost_model::usage::{HostUsage, Wakeups};
use wirecost_stats::comparable::{DISTANCE_RATIO, FOREIGN_CORES_DIFFERENCE};
use wirecost_stats::{ENOUGH_STEPS, Stopping, awaited_contrasts, none_can_settle};

use super::Planted;
use crate::small::contrasts;

const COST: WakeupCost = WakeupCost {
    timer_ns: 10_000,
    other_core_ns: 20_000,
};

const fn timers(timer: u64) -> Wakeups {
    Wakeups {
        timer,
        function_call: 0,
        reschedule: 0,
        device: 0,
        context_switches: 0,
    }
}

fn woken(usage: &mut Option<HostUsage>, timer: u64) {
    usage.as_mut().expect("a host").wakeups = Some(timers(timer));
}

/// 0.5 s of core time for 5 and for 10 Gbit, with so many timers at the sender.
fn planted(key: &str, timer: [u64; 2]) -> Planted {
    let mut planted = Planted::of(key, ["one", "two"])
        .sampled(0, |sample| woken(&mut sample.sender, timer[0]))
        .sampled(1, |sample| woken(&mut sample.sender, timer[1]));
    planted.cost = Some(COST);
    planted
}

#[test]
fn wake_ups_that_explain_the_difference_bar_cpu_and_nothing_else() {
    // 0.3 of 0.5 s are timers, and 0.1: of 0.05 s for each Gbit less they explain all.
    let explained = planted("guest_mtu", [30_000, 10_000]);
    assert_eq!(
        explained.not_comparable(Metric::SenderCpu),
        Some(RemarkKind::Wakeups)
    );
    assert_eq!(explained.not_comparable(Metric::ReceiverCpu), None);
    assert_eq!(explained.not_comparable(Metric::Throughput), None);
    let line = planted("guest_mtu", [30_000, 10_000])
        .cells(|cell| cell.network.rate = Some(40_000_000_000));
    assert_eq!(
        line.not_comparable(Metric::SenderCpu),
        Some(RemarkKind::LineCost)
    );
}

#[test]
fn wake_ups_that_agree_or_hardly_count_bar_nothing() {
    // As many for each Gbit.
    assert_eq!(
        planted("guest_mtu", [20_000, 40_000]).not_comparable(Metric::SenderCpu),
        None
    );
    // A fifth of the time, at most.
    assert_eq!(
        planted("guest_mtu", [10_000, 1_000]).not_comparable(Metric::SenderCpu),
        None
    );
    assert_eq!(
        planted("guest_mtu", [10_100, 1_000])
            .effect(Metric::SenderCpu)
            .verdict,
        Verdict::Pays
    );
}

#[test]
fn a_factor_that_saves_wake_ups_is_told_of_them() {
    for key in ["streams", "depth", "message", "steering.rps"] {
        let about = planted(key, [30_000, 10_000]);
        assert_eq!(about.not_comparable(Metric::SenderCpu), None, "{key}");
        assert_eq!(
            about.remarks(Metric::SenderCpu),
            [RemarkKind::Wakeups],
            "{key}"
        );
    }
}

#[test]
fn without_a_cost_or_a_count_nothing_is_said() {
    let mut costless = planted("guest_mtu", [30_000, 10_000]);
    costless.cost = None;
    assert_eq!(costless.not_comparable(Metric::SenderCpu), None);
    let unknown = planted("guest_mtu", [30_000, 10_000]).sampled(1, |sample| {
        sample.sender.as_mut().expect("a").wakeups = None;
    });
    assert_eq!(unknown.not_comparable(Metric::SenderCpu), None);
}

/// A window without the line, in which nobody waited: its wake-ups are what counts.
#[test]
fn a_saturated_window_speaks_where_the_line_does_not() {
    let saturate = |sample: &mut Sample| {
        let mut host = sample.sender.clone().expect("a host");
        host.wakeups = Some(timers(100));
        sample.saturated = Some(Saturated {
            loads: sample.loads.clone(),
            sender: host.clone(),
            receiver: host,
            marks: Vec::new(),
        });
    };
    let both = planted("guest_mtu", [30_000, 10_000])
        .cells(|cell| cell.network.rate = Some(40_000_000_000))
        .sampled(0, saturate)
        .sampled(1, saturate);
    assert_eq!(both.not_comparable(Metric::SenderCpu), None);
}

#[test]
fn cores_that_were_farther_apart_in_one_cell() {
    let apart = |ns: f64| {
        let look = |sample: &mut Sample, ns: f64| {
            sample.cores_apart = vec![CoreDistance {
                cpus: [0, 1],
                before_ns: Some(ns),
                after_ns: Some(ns),
            }];
        };
        Planted::of("encapsulation", ["none", "vxlan"])
            .sampled(0, move |sample| look(sample, 60.0))
            .sampled(1, move |sample| look(sample, ns))
    };
    for ns in [60.0 * DISTANCE_RATIO * 1.01, 60.0 / DISTANCE_RATIO / 1.01] {
        for metric in [Metric::Throughput, Metric::SenderCpu] {
            assert_eq!(
                apart(ns).not_comparable(metric),
                Some(RemarkKind::CoreDistance)
            );
        }
    }
    assert_eq!(
        apart(60.0 * DISTANCE_RATIO * 0.99).not_comparable(Metric::Throughput),
        None
    );
    // Cores that are elsewhere in two of four rounds make the interval wider, and no more.
    for (far, barred) in [(2, None), (3, Some(RemarkKind::CoreDistance))] {
        let moved = apart(600.0).sampled(1, move |sample| {
            if sample.round >= far {
                for look in &mut sample.cores_apart {
                    (look.before_ns, look.after_ns) = (Some(60.0), Some(60.0));
                }
            }
        });
        assert_eq!(moved.not_comparable(Metric::Throughput), barred);
    }
    // Where only one cell knows there is nothing to compare.
    let unknown = apart(600.0).sampled(0, |sample| sample.cores_apart.clear());
    assert_eq!(unknown.not_comparable(Metric::Throughput), None);
}

#[test]
fn other_programs_beside_one_cell_only() {
    let beside = |one: f64, other: f64| {
        let foreign = |sample: &mut Sample, cores| {
            sample.sender.as_mut().expect("a").foreign_cores = Some(cores);
        };
        Planted::of("encapsulation", ["none", "vxlan"])
            .sampled(0, move |sample| foreign(sample, one))
            .sampled(1, move |sample| foreign(sample, other))
    };
    for metric in [Metric::Throughput, Metric::ReceiverCpu] {
        let barred = beside(0.0, FOREIGN_CORES_DIFFERENCE * 1.01).not_comparable(metric);
        assert_eq!(barred, Some(RemarkKind::Disturbed));
        let barred = beside(0.9, 0.9 - FOREIGN_CORES_DIFFERENCE * 1.01).not_comparable(metric);
        assert_eq!(barred, Some(RemarkKind::Disturbed));
        assert_eq!(
            beside(0.0, FOREIGN_CORES_DIFFERENCE * 0.99).not_comparable(metric),
            None
        );
        assert_eq!(beside(0.9, 0.9).not_comparable(metric), None);
    }
}

#[test]
fn other_programs_on_the_machine_of_host_b_only() {
    let on_b = |sample: &mut Sample, cores| {
        sample.sender.as_mut().expect("a").foreign_cores = Some(0.0);
        sample.receiver.as_mut().expect("b").foreign_cores = Some(cores);
    };
    let beside = Planted::of("encapsulation", ["none", "vxlan"])
        .sampled(0, move |sample| on_b(sample, 0.0))
        .sampled(1, move |sample| on_b(sample, 0.9));
    let barred = beside.not_comparable(Metric::Throughput);
    assert_eq!(barred, Some(RemarkKind::Disturbed));
}

#[test]
fn what_is_offered_decides_how_often_cores_sleep() {
    for key in ["rate", "ping.rate", "think_time"] {
        let offers = planted(key, [20_000, 20_000]);
        let barred = offers.not_comparable(Metric::SenderCpu);
        assert_eq!(barred, Some(RemarkKind::FactorIsFigure), "{key}");
    }
}

#[test]
fn what_hops_cost_is_told_unless_it_was_measured() {
    let hops = || {
        Planted::of("encapsulation", ["none", "vxlan"])
            .cells(|cell| cell.network.transit.hops = vec![Hop::new(HopKind::Switch, 9000)])
    };
    assert_eq!(hops().effect(Metric::SenderCpu).verdict, Verdict::Pays);
    assert_eq!(hops().remarks(Metric::SenderCpu), [RemarkKind::TransitCpu]);
    assert_eq!(hops().remarks(Metric::Throughput), []);
    let known = |sample: &mut Sample| {
        sample.sender.as_mut().expect("a").transit_cores = Some(0.1);
    };
    let measured = hops().sampled(0, known).sampled(1, known);
    assert_eq!(measured.remarks(Metric::SenderCpu), []);
}

/// Host a's core was busy for so long in every sample.
fn busy(planted: Planted, seconds: f64) -> Planted {
    let set =
        move |sample: &mut Sample| sample.sender.as_mut().expect("a").cores[0].busy_s = seconds;
    planted.sampled(0, set).sampled(1, set)
}

#[test]
fn core_time_of_too_few_steps_has_no_verdict() {
    let network = || Planted::of("encapsulation", ["none", "vxlan"]);
    let step = 0.01;
    // Four rounds: each is enough for itself, two blocks of two, one block, none.
    for (steps, blocks, bars) in [
        (ENOUGH_STEPS, 4, None),
        (ENOUGH_STEPS / 2.0, 2, None),
        (ENOUGH_STEPS / 3.0, 1, Some(RemarkKind::Resolution)),
        (0.0, 0, Some(RemarkKind::Resolution)),
    ] {
        let planted = busy(network(), steps * step * 1.0001);
        assert_eq!(
            planted.not_comparable(Metric::SenderCpu),
            bars,
            "{steps} steps"
        );
        assert_eq!(planted.effect(Metric::SenderCpu).rounds, 4);
        assert_eq!(planted.not_comparable(Metric::Throughput), None);
        let contrasts = contrasts(&planted.experiment, &planted.samples, None);
        let sender = contrasts.iter().find(|one| one.metric == Metric::SenderCpu);
        let sender = sender.expect("sender CPU");
        assert_eq!(sender.logs.len(), blocks, "{steps} steps");
        // More rounds have more steps.
        assert!(!none_can_settle(from_ref(sender), AwaitedEffects::Cpu));
    }
}

#[test]
fn microseconds_tell_what_steps_do_not() {
    let fine = |sample: &mut Sample| sample.sender.as_mut().expect("a").idle_step_s = 1e-6;
    let planted = busy(Planted::of("encapsulation", ["none", "vxlan"]), 0.01);
    let planted = planted.sampled(0, fine).sampled(1, fine);
    assert_eq!(planted.effect(Metric::SenderCpu).verdict, Verdict::Pays);
}

#[test]
fn an_adaptive_run_does_not_wait_for_what_cannot_be_compared() {
    let planted = planted("guest_mtu", [30_000, 10_000]);
    let contrasts = contrasts(&planted.experiment, &planted.samples, planted.cost);
    let waited: Vec<Metric> = awaited_contrasts(&contrasts, AwaitedEffects::All)
        .map(|one| one.metric)
        .collect();
    assert_eq!(waited, [Metric::Throughput, Metric::ReceiverCpu]);
    for one in &contrasts {
        let spoken = one.effect(0.05, Stopping::Fixed).verdict != Verdict::NotComparable;
        assert_eq!(spoken, waited.contains(&one.metric));
        let barred = none_can_settle(from_ref(one), AwaitedEffects::All);
        assert_eq!(barred, !spoken);
    }
}
