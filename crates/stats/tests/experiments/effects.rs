//! Effects of the small experiment.

use wirecost_model::cell::{Cell, Factor};
use wirecost_model::effect::{Effect, Verdict};
use wirecost_model::fixtures;
use wirecost_model::latency::{Latency, bucket_of};
use wirecost_model::load::{Load, NamedLoad, Workload};
use wirecost_model::metric::Metric;
use wirecost_model::plan::{Cores, Levels};
use wirecost_model::sample::{Invalid, LoadResult, RequestResult};
use wirecost_stats::Stopping;
use wirecost_stats::sequential::{StoppingCriterion, standing};

use crate::small::{contrasts, effects, experiment, sample, samples};

fn find<'a>(effects: &'a [Effect], factor: &str, where_: &str, metric: Metric) -> &'a Effect {
    effects
        .iter()
        .find(|effect| {
            effect.factor == factor
                && effect.metric == metric
                && effect.where_.values().any(|level| level == where_)
        })
        .expect("that effect")
}

#[test]
fn every_varied_factor_is_compared_at_every_level_of_the_others_for_every_metric() {
    let effects = effects(&experiment(Cores::Split), &samples());
    let listed: Vec<_> = effects
        .iter()
        .map(|e| (e.factor.as_str(), e.where_.clone(), e.metric))
        .collect();
    let at = |key: &str, level: &str| Levels::from([(key.into(), level.into())]);
    let mut expected = Vec::new();
    for (factor, other, levels) in [
        ("guest_mtu", "encapsulation", ["none", "vxlan"]),
        ("encapsulation", "guest_mtu", ["1500", "8900"]),
    ] {
        for level in levels {
            for metric in [Metric::Throughput, Metric::SenderCpu, Metric::ReceiverCpu] {
                expected.push((factor, at(other, level), metric));
            }
        }
    }
    assert_eq!(listed, expected);
}

#[test]
fn a_doubled_throughput_pays_and_halves_the_cpu_per_gbit() {
    let effects = effects(&experiment(Cores::Split), &samples());
    let throughput = find(&effects, "guest_mtu", "vxlan", Metric::Throughput);
    assert!((throughput.ratio.expect("ratio") - 2.0).abs() < 0.02);
    assert_eq!((throughput.verdict, throughput.rounds), (Verdict::Pays, 3));
    let cpu = find(&effects, "guest_mtu", "vxlan", Metric::SenderCpu);
    assert!((cpu.ratio.expect("ratio") - 0.5).abs() < 0.01);
    assert_eq!(cpu.verdict, Verdict::Pays);
    let tunnel = find(&effects, "encapsulation", "1500", Metric::Throughput);
    assert_eq!(tunnel.verdict, Verdict::MakesNoDifference);
}

#[test]
fn an_invalid_sample_takes_its_partner_out_of_the_pairs() {
    let mut samples = samples();
    samples[0].invalid = Some(Invalid::Proof("lost".into()));
    let effects = effects(&experiment(Cores::Split), &samples);
    assert_eq!(
        find(&effects, "guest_mtu", "none", Metric::Throughput).rounds,
        2
    );
    assert_eq!(
        find(&effects, "guest_mtu", "vxlan", Metric::Throughput).rounds,
        3
    );
}

/// So many requests, of which a hundred took longer.
fn asked(count: u64) -> LoadResult {
    let bucket = |ns: u64, count: u64| (bucket_of(ns) as u32, count);
    LoadResult {
        requests: Some(RequestResult {
            transactions: count,
            timeouts: 0,
            late: 0,
            duplicated: 0,
            flushes: Latency::default(),
            latency: Latency::from_buckets([bucket(50_000, count - 100), bucket(90_000, 100)]),
            intervals: Vec::new(),
            lateness: Latency::default(),
        }),
        ..fixtures::load(Workload::TcpRr.name(), Workload::TcpRr)
    }
}

#[test]
fn a_percentile_that_one_round_lacks_is_not_compared_over_the_others() {
    let mut experiment = experiment(Cores::Split);
    for cell in &mut experiment.cells {
        cell.loads = vec![NamedLoad::alone(Load::new(Workload::TcpRr))];
    }
    let mut samples = samples();
    for sample in &mut samples {
        let few = sample.cell == 0 && sample.round == 1;
        sample.loads = vec![asked(if few { 900 } else { 2000 })];
    }
    let effects = effects(&experiment, &samples);
    let of = |encapsulation, metric| find(&effects, "guest_mtu", encapsulation, metric);
    let lacks = of("none", Metric::LatencyP99);
    assert_eq!((lacks.ratio, lacks.rounds), (None, 0));
    assert_eq!(of("none", Metric::LatencyMedian).rounds, 3);
    assert_eq!(of("vxlan", Metric::LatencyP99).rounds, 3);
    // No sample has a p99.9, which is then not listed.
    let listed = |effect: &Effect| effect.metric == Metric::LatencyP999;
    assert!(!effects.iter().any(listed));
}

#[test]
fn a_round_in_which_the_cpu_counter_did_not_move_is_part_of_the_next() {
    let mut samples = samples();
    samples[0] = sample(0, 0, 2.0, 0.0);
    let effects = effects(&experiment(Cores::Split), &samples);
    let cpu = find(&effects, "guest_mtu", "none", Metric::SenderCpu);
    assert_eq!(cpu.rounds, 3);
    // Two blocks: 1 s of core time against 0.5 s for twice the Gbit, and then half.
    let ratio = cpu.ratio.expect("a ratio");
    assert!((ratio - 0.5f64.sqrt()).abs() < 0.02, "{ratio}");
    assert_eq!(
        find(&effects, "guest_mtu", "none", Metric::Throughput).rounds,
        3
    );
}

#[test]
fn one_round_has_a_ratio_and_cannot_tell_yet() {
    let one: Vec<_> = samples().into_iter().filter(|s| s.round == 0).collect();
    let effects = effects(&experiment(Cores::Split), &one);
    assert!(
        effects
            .iter()
            .all(|e| e.ratio.is_some() && e.low.is_none() && e.verdict == Verdict::CannotTellYet)
    );
}

#[test]
fn without_samples_every_effect_is_there_and_cannot_be_told() {
    let effects = effects(&experiment(Cores::Split), &[]);
    assert_eq!(effects.len(), 12);
    assert!(
        effects
            .iter()
            .all(|e| e.ratio.is_none() && e.rounds == 0 && e.verdict == Verdict::CannotTellYet)
    );
}

#[test]
fn a_combination_of_which_a_cell_is_excluded_has_no_effect() {
    let mut experiment = experiment(Cores::Split);
    experiment.cells.remove(1);
    let effects = effects(&experiment, &samples());
    assert!(effects.iter().all(|e| {
        e.where_
            .values()
            .all(|level| level == "none" || level == "8900")
    }));
    assert_eq!(effects.len(), 6);
}

#[test]
fn shared_cores_have_one_cpu_metric() {
    let effects = effects(&experiment(Cores::Shared), &samples());
    assert!(effects.iter().any(|e| e.metric == Metric::Cpu));
    assert!(
        effects
            .iter()
            .all(|e| !matches!(e.metric, Metric::SenderCpu | Metric::ReceiverCpu))
    );
}

#[test]
fn the_order_in_which_samples_were_taken_does_not_matter() {
    let mut reversed = samples();
    reversed.reverse();
    let experiment = experiment(Cores::Split);
    assert_eq!(
        effects(&experiment, &samples()),
        effects(&experiment, &reversed)
    );
}

#[test]
fn contrasts_are_the_effects_in_the_same_order_and_can_be_looked_at() {
    let experiment = experiment(Cores::Split);
    let contrasts = contrasts(&experiment, &samples(), None);
    let again: Vec<Effect> = contrasts
        .iter()
        .map(|contrast| contrast.effect(0.05, Stopping::Fixed))
        .collect();
    assert_eq!(again, effects(&experiment, &samples()));
    let criterion = StoppingCriterion {
        precision: 0.02,
        worth: 0.05,
        min_rounds: 4,
        max_rounds: 60,
    };
    let standing = standing(contrasts.iter().map(|c| &c.logs[..]), &criterion, 60);
    assert_eq!(standing.looks.len(), 12);
    assert!(!standing.known, "three rounds are fewer than the least");
}

#[test]
fn the_interval_after_a_sequential_run_is_a_little_wider() {
    let contrasts = contrasts(&experiment(Cores::Split), &samples(), None);
    for contrast in contrasts {
        let fixed = contrast.effect(0.05, Stopping::Fixed);
        let sequential = contrast.effect(0.05, Stopping::Sequential);
        assert!(sequential.low < fixed.low && sequential.high > fixed.high);
        assert_eq!(sequential.ratio, fixed.ratio);
    }
}

/// The tunnels over either IP; without a tunnel there is no level of `underlay.ip`.
#[test]
fn a_cell_to_which_a_factor_means_nothing_is_compared_with_every_level_of_it() {
    let mut experiment = experiment(Cores::Split);
    let at_1500: Vec<Cell> = experiment.cells.drain(..2).collect();
    let over = |ip: &str, index| {
        let mut cell = at_1500[1].clone();
        cell.levels.insert("underlay.ip".into(), ip.into());
        cell.index = index;
        cell
    };
    experiment.cells = vec![at_1500[0].clone(), over("ipv4", 1), over("ipv6", 2)];
    experiment.factors[0].levels = vec!["1500".into()];
    experiment.factors.push(Factor {
        key: "underlay.ip".into(),
        levels: vec!["ipv4".into(), "ipv6".into()],
    });
    let gbps = [8.0, 4.0, 2.0];
    let samples: Vec<_> = (0..3)
        .flat_map(|round| (0..3).map(move |cell| sample(round, cell, gbps[cell as usize], 0.5)))
        .collect();

    let effects = effects(&experiment, &samples);

    let throughput: Vec<_> = effects
        .iter()
        .filter(|effect| effect.metric == Metric::Throughput)
        .map(|effect| {
            let (from, to) = (effect.from.as_str(), effect.to.as_str());
            (from, to, effect.where_.clone(), effect.ratio)
        })
        .collect();
    let at = |key: &str, level: &str| Levels::from([(key.into(), level.into())]);
    let close = |ratio: Option<f64>, to: f64| (ratio.expect("a ratio") - to).abs() < 1e-6;
    let [(.., first), (.., second), (.., third)] = throughput[..] else {
        panic!("{throughput:?}");
    };
    let shown: Vec<_> = throughput
        .iter()
        .map(|(a, b, at, _)| (*a, *b, at.clone()))
        .collect();
    assert_eq!(
        shown,
        [
            ("none", "vxlan", at("underlay.ip", "ipv4")),
            ("none", "vxlan", at("underlay.ip", "ipv6")),
            ("ipv4", "ipv6", at("encapsulation", "vxlan")),
        ]
    );
    assert!(close(first, 0.5) && close(second, 0.25) && close(third, 0.5));
}
