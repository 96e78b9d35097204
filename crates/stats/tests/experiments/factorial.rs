//! Main effects and interactions of the small experiment.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::plan::Cores;
use wirecost_model::sample::{Invalid, Sample};
use wirecost_stats::{Dependence, Factorial, Stopping};

use crate::small::{experiment, factorial, sample, samples};

/// Six rounds; the cells' figures are for 1500 without and with vxlan, then 8900.
fn rounds(gbps: [f64; 4]) -> Vec<Sample> {
    let jitter = [1.0, 1.004, 0.997, 1.002, 0.999, 1.003];
    (0..6u32)
        .flat_map(|round| {
            (0..4u32).map(move |cell| {
                let noise = jitter[(round + 2 * cell) as usize % 6];
                sample(round, cell, gbps[cell as usize] * noise, 0.5)
            })
        })
        .collect()
}

fn speed() -> Figure {
    Figure {
        load: "tcp-stream".into(),
        metric: Metric::Throughput,
    }
}

fn throughput(samples: &[Sample]) -> Factorial {
    factorial(
        &experiment(Cores::Split),
        samples,
        &speed(),
        Stopping::Fixed,
    )
}

#[track_caller]
fn assert_about(ratio: Option<f64>, expected: f64) {
    let ratio = ratio.expect("a ratio");
    assert!(
        (ratio / expected - 1.0).abs() < 0.01,
        "{ratio} is not {expected}"
    );
}

#[test]
fn a_main_effect_is_the_geometric_mean_over_the_other_factor() {
    let result = throughput(&rounds([1.0, 1.0, 2.0, 8.0]));
    let mtu = result
        .main
        .iter()
        .find(|main| main.factor == "guest_mtu")
        .expect("mtu");
    assert_about(mtu.ratio.ratio, 4.0);
    assert_eq!((mtu.combinations, mtu.verdict), (2, Verdict::Pays));
    let tunnel = result
        .main
        .iter()
        .find(|main| main.factor == "encapsulation")
        .expect("tunnel");
    assert_about(tunnel.ratio.ratio, 2.0);
    // The constant offload is no factor.
    assert_eq!((result.main.len(), result.interactions.len()), (2, 1));
}

#[test]
fn an_interaction_is_the_ratio_of_ratios_from_either_side() {
    let result = throughput(&rounds([1.0, 1.0, 2.0, 8.0]));
    let interaction = &result.interactions[0];
    assert_about(interaction.ratio.ratio, 4.0);
    assert!(interaction.matters);
    let [mtu, tunnel] = &interaction.views;
    assert_about(mtu.at_from.ratio, 2.0);
    assert_about(mtu.at_to.ratio, 8.0);
    assert_about(tunnel.at_from.ratio, 1.0);
    assert_about(tunnel.at_to.ratio, 4.0);
    assert_eq!(
        mtu.says,
        Some(Dependence::MoreWith {
            with: "vxlan".into()
        })
    );
    assert_eq!(
        tunnel.says,
        Some(Dependence::PaysOnlyWith {
            with: "8900".into()
        })
    );
}

#[test]
fn each_kind_of_dependence_has_its_sentence() {
    let with = |level: &str| level.to_owned();
    for (gbps, says) in [
        (
            [1.0, 1.0, 2.0, 1.0],
            Some(Dependence::PaysOnlyWith { with: with("none") }),
        ),
        (
            [1.0, 1.0, 1.0, 0.5],
            Some(Dependence::CostsOnlyWith {
                with: with("vxlan"),
            }),
        ),
        (
            [1.0, 1.0, 2.0, 0.5],
            Some(Dependence::Reverses {
                pays_with: with("none"),
            }),
        ),
        ([1.0, 1.0, 2.0, 2.0], None),
        ([1.0, 1.0, 1.0, 1.0], None),
    ] {
        let result = throughput(&rounds(gbps));
        let view = &result.interactions[0].views[0];
        assert_eq!(view.says, says, "{gbps:?}");
    }
}

#[test]
fn a_round_that_lacks_a_cell_counts_in_no_average() {
    let mut samples = rounds([1.0, 1.0, 2.0, 2.0]);
    samples[0].invalid = Some(Invalid::Load("reset".into()));
    let result = throughput(&samples);
    assert!(result.main.iter().all(|main| main.ratio.pairs == 5));
    assert_eq!(result.interactions[0].ratio.pairs, 5);
}

#[test]
fn an_excluded_cell_leaves_no_interaction_and_the_combinations_that_are_whole() {
    let mut experiment = experiment(Cores::Split);
    experiment.cells.remove(1);
    let result = factorial(&experiment, &samples(), &speed(), Stopping::Fixed);
    assert!(result.interactions.is_empty());
    assert!(result.main.iter().all(|main| main.combinations == 1));
}

#[test]
fn with_one_factor_there_is_nothing_to_average() {
    let mut experiment = experiment(Cores::Split);
    experiment.factors.remove(1);
    let result = factorial(&experiment, &samples(), &speed(), Stopping::Fixed);
    assert!(result.main.is_empty() && result.interactions.is_empty());
}
