//! Effects of a small experiment: two guest MTUs, two encapsulations, a constant offload.

use wirecost_model::cell::{Cell, Experiment, Factor, Network, TcpStream};
use wirecost_model::effect::{Effect, Verdict};
use wirecost_model::ip::IpVersion;
use wirecost_model::metric::Metric;
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{
    Cores, Encapsulation, GuestMtu, Hosts, Levels, Plan, Repeat, TcpStreamPlan, Underlay, Vxlan,
};
use wirecost_model::sample::{Invalid, Sample, StreamResult};
use wirecost_model::usage::{ClassShares, CoreUsage, HostUsage, ProtocolDelta};
use wirecost_stats::effects;

fn experiment(cores: Cores) -> Experiment {
    let encapsulations = [Encapsulation::None, Encapsulation::Vxlan(Vxlan::default())];
    let offload = Offload::profile(Profile::None);
    let mut cells = Vec::new();
    for mtu in [1500, 8900] {
        for encapsulation in &encapsulations {
            cells.push(Cell {
                index: cells.len() as u32,
                levels: [
                    ("guest_mtu".into(), mtu.to_string()),
                    ("encapsulation".into(), encapsulation.to_string()),
                    ("offload".into(), offload.to_string()),
                ]
                .into(),
                network: Network {
                    underlay_mtu: 9000,
                    rate: None,
                    underlay_ip: IpVersion::Ipv4,
                    encapsulation: encapsulation.clone(),
                    guest_ip: IpVersion::Ipv4,
                    cores,
                },
                guest_mtu: mtu,
                offload: offload.clone(),
                load: TcpStream {
                    streams: 1,
                    message: 131_072,
                    congestion: "cubic".into(),
                    socket_buffer: None,
                },
            });
        }
    }
    let factor = |key: &str, levels: &[&str]| Factor {
        key: key.into(),
        levels: levels.iter().map(ToString::to_string).collect(),
    };
    Experiment {
        plan: Plan {
            name: "small".into(),
            description: None,
            hosts: Hosts::Lab,
            cores,
            underlay: Underlay {
                mtu: vec![9000],
                rate: vec![None],
                ip: vec![IpVersion::Ipv4],
            },
            guest_mtu: vec![GuestMtu::Bytes(1500), GuestMtu::Bytes(8900)],
            guest_ip: vec![IpVersion::Ipv4],
            encapsulation: encapsulations.into(),
            offload: vec![offload],
            load: TcpStreamPlan {
                streams: vec![1],
                message: vec![131_072],
                congestion: vec!["cubic".into()],
                socket_buffer: vec![None],
            },
            repeat: Repeat {
                rounds: 3,
                seconds: 1.0,
                warmup: 0.2,
                worth: 0.05,
            },
            exclude: Vec::new(),
            published: None,
            seed: Some(1),
        },
        factors: vec![
            factor("guest_mtu", &["1500", "8900"]),
            factor("encapsulation", &["none", "vxlan"]),
            factor("offload", &["none"]),
        ],
        cells,
    }
}

/// One second in which `gbps` arrived and each host was busy for `busy` seconds.
fn sample(round: u32, cell: u32, gbps: f64, busy: f64) -> Sample {
    let host = HostUsage {
        window_s: 1.0,
        cores: vec![CoreUsage {
            cpu: 0,
            busy_s: busy,
            idle_s: 1.0 - busy,
            iowait_s: 0.0,
            steal_s: 0.0,
            shares: ClassShares::default(),
        }],
        foreign_cores: None,
        backlog_drops: 0,
        budget_exhausted: 0,
        links: [].into(),
        guest: ProtocolDelta::default(),
    };
    Sample {
        round,
        position: 0,
        cell,
        started_s: 0.0,
        took_s: 1.4,
        invalid: None,
        marks: Vec::new(),
        proofs: Vec::new(),
        devices: Vec::new(),
        stream: Some(StreamResult {
            bytes: (gbps * 1e9 / 8.0) as u64,
            seconds: 1.0,
            sender_seconds: 1.0,
            intervals: Vec::new(),
            flows: Vec::new(),
        }),
        sender: Some(host.clone()),
        receiver: Some(host),
    }
}

/// Three rounds in which 8900 doubles the throughput at equal busy time and vxlan changes nothing.
fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for round in 0..3 {
        let drift = 1.0 + f64::from(round) * 0.1;
        for cell in 0..4 {
            let mtu_gain = if cell >= 2 { 2.0 } else { 1.0 };
            let jitter = 1.0 + f64::from((round + cell) % 3) * 0.002;
            samples.push(sample(round, cell, 2.0 * drift * mtu_gain * jitter, 0.5));
        }
    }
    samples
}

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

#[test]
fn a_cpu_counter_that_did_not_move_pairs_for_no_cpu_ratio_and_for_the_throughput() {
    let mut samples = samples();
    samples[0] = sample(0, 0, 2.0, 0.0);
    let effects = effects(&experiment(Cores::Split), &samples);
    assert_eq!(
        find(&effects, "guest_mtu", "none", Metric::SenderCpu).rounds,
        2
    );
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
