//! A small experiment: two guest MTUs, two encapsulations, a constant offload.

use wirecost_model::cell::{Experiment, Network};
use wirecost_model::effect::Effect;
use wirecost_model::fixtures;
use wirecost_model::load::{Load, NamedLoad, Workload};
use wirecost_model::metric::Figure;
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Cores, Encapsulation, GuestMtu, Plan, Vxlan};
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::Sample;
use wirecost_stats::validity::Finding;
use wirecost_stats::{Contrast, Factorial, Observed, Stopping};

/// The load of every cell.
fn stream() -> NamedLoad {
    NamedLoad::alone(Load {
        congestion: Some("cubic".into()),
        ..Load::new(Workload::TcpStream)
    })
}

pub(crate) fn experiment(cores: Cores) -> Experiment {
    let encapsulations = [Encapsulation::None, Encapsulation::Vxlan(Vxlan::default())];
    let offload = Offload::profile(Profile::None);
    let mut cells = Vec::new();
    for mtu in [1500, 8900] {
        for encapsulation in &encapsulations {
            let network = Network {
                encapsulation: encapsulation.clone(),
                cores,
                ..fixtures::network()
            };
            let levels = [
                ("guest_mtu", &*mtu.to_string()),
                ("encapsulation", &encapsulation.to_string()),
                ("offload", &offload.to_string()),
            ];
            let index = cells.len() as u32;
            cells.push(fixtures::cell(
                index,
                &levels,
                network,
                mtu,
                offload.clone(),
                stream(),
            ));
        }
    }
    Experiment {
        twin: None,
        chosen: None,
        plan: Plan {
            cores,
            guest_mtu: vec![GuestMtu::Bytes(1500), GuestMtu::Bytes(8900)],
            encapsulation: encapsulations.into(),
            offload: vec![offload],
            seed: Some(1),
            ..fixtures::plan("small")
        },
        factors: vec![
            fixtures::factor("guest_mtu", &["1500", "8900"]),
            fixtures::factor("encapsulation", &["none", "vxlan"]),
            fixtures::factor("offload", &["none"]),
        ],
        cells,
    }
}

/// One second in which `gbps` arrived and each host was busy for `busy` seconds.
pub(crate) fn sample(round: u32, cell: u32, gbps: f64, busy: f64) -> Sample {
    let host = fixtures::usage(1.0, busy);
    Sample {
        position: 0,
        took_s: 1.4,
        loads: vec![fixtures::stream((gbps * 1e9 / 8.0) as u64)],
        sender: Some(host.clone()),
        receiver: Some(host),
        ..fixtures::sample(round, cell)
    }
}

/// Three rounds in which 8900 doubles the throughput at equal busy time and vxlan changes nothing.
pub(crate) fn samples() -> Vec<Sample> {
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

pub(crate) fn effects(experiment: &Experiment, samples: &[Sample]) -> Vec<Effect> {
    wirecost_stats::effects(experiment, &Observed::of(experiment, samples, None))
}

pub(crate) fn contrasts(
    experiment: &Experiment,
    samples: &[Sample],
    cost: Option<WakeupCost>,
) -> Vec<Contrast> {
    wirecost_stats::contrasts(experiment, &Observed::of(experiment, samples, cost))
}

pub(crate) fn factorial(
    experiment: &Experiment,
    samples: &[Sample],
    figure: &Figure,
    stopping: Stopping,
) -> Factorial {
    let observed = Observed::of(experiment, samples, None);
    wirecost_stats::factorial(experiment, &observed, figure, stopping)
}

pub(crate) fn findings(experiment: &Experiment, samples: &[Sample]) -> Vec<Finding> {
    wirecost_stats::validity::findings(&Observed::of(experiment, samples, None))
}
