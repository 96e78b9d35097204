//! What speaks against a result.

use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;
use wirecost_model::sample::{CoreDistance, Sample};
use wirecost_stats::Stopping;
use wirecost_stats::validity::{Finding, self_test};

use crate::small::{experiment, findings, sample};

/// A number from -1 to 1 that only the arguments decide.
fn noise(round: u32, cell: u32) -> f64 {
    let mixed =
        (u64::from(round) * 977 + u64::from(cell) * 131 + 17).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as f64 / f64::from(1 << 23) - 1.0
}

fn samples(rounds: u32, gbps: impl Fn(u32, u32) -> f64) -> Vec<Sample> {
    (0..rounds)
        .flat_map(|round| (0..4).map(move |cell| (round, cell)))
        .map(|(round, cell)| {
            sample(
                round,
                cell,
                gbps(round, cell) * (1.0 + 0.02 * noise(round, cell)),
                0.5,
            )
        })
        .collect()
}

fn of_throughput(samples: &[Sample]) -> Vec<Finding> {
    let all = findings(&experiment(Cores::Split), samples);
    all.into_iter()
        .filter(|finding| {
            let (Finding::Drift { metric, .. }
            | Finding::ForeignLoad { metric, .. }
            | Finding::CoreDistance { metric, .. }
            | Finding::TwoModes { metric, .. }
            | Finding::Outliers { metric, .. }) = finding;
            *metric == Metric::Throughput
        })
        .collect()
}

#[test]
fn a_sound_run_has_no_findings() {
    assert_eq!(
        of_throughput(&samples(20, |_, cell| f64::from(cell + 1))),
        []
    );
    assert_eq!(findings(&experiment(Cores::Split), &[]), []);
}

#[test]
fn a_machine_that_slows_down_drifts() {
    let slower = samples(20, |round, _| 0.99f64.powi(round as i32));
    let found = of_throughput(&slower);
    let [Finding::Drift { change, trend, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert!((change - 0.99f64.powi(19)).abs() < 0.03, "{change}");
    assert!(trend.tau < -0.8 && trend.n == 20);
}

#[test]
fn the_load_of_others_is_seen_where_the_figures_go_with_it() {
    let mut disturbed = samples(16, |round, _| if round % 3 == 0 { 0.8 } else { 1.0 });
    for sample in &mut disturbed {
        let foreign = if sample.round % 3 == 0 { 0.5 } else { 0.0 };
        sample.sender.as_mut().expect("host").foreign_cores = Some(foreign);
    }
    let found = of_throughput(&disturbed);
    let Some(Finding::ForeignLoad {
        least,
        most,
        change,
        trend,
        ..
    }) = found.first()
    else {
        panic!("{found:?}");
    };
    assert_eq!((*least, *most), (0.0, 0.5));
    assert!((change - 0.8).abs() < 0.03 && trend.tau < 0.0, "{change}");
}

/// The lab's cores `ns` apart, before and after each sample.
fn cores_apart(samples: &mut [Sample], ns: impl Fn(&Sample) -> f64) {
    for sample in samples {
        let apart = ns(sample);
        sample.cores_apart = vec![CoreDistance {
            cpus: [0, 1],
            before_ns: Some(apart),
            after_ns: Some(apart),
        }];
    }
}

#[test]
fn cores_that_move_are_seen_where_the_figures_go_with_them() {
    let far = |sample: &Sample| sample.round.is_multiple_of(3);
    let mut moved = samples(16, |round, _| if round % 3 == 0 { 0.6 } else { 1.0 });
    cores_apart(&mut moved, |sample| if far(sample) { 300.0 } else { 64.0 });
    let found = of_throughput(&moved);
    let Some(Finding::CoreDistance {
        nearest_ns,
        farthest_ns,
        change,
        trend,
        ..
    }) = found.first()
    else {
        panic!("{found:?}");
    };
    assert!((nearest_ns - 64.0).abs() < 1e-9 && (farthest_ns - 300.0).abs() < 1e-9);
    assert!((change - 0.6).abs() < 0.03 && trend.tau < 0.0, "{change}");
}

#[test]
fn cores_that_stay_are_no_finding_whatever_a_figure_goes_with() {
    let mut stay = samples(16, |round, _| if round % 3 == 0 { 0.6 } else { 1.0 });
    cores_apart(&mut stay, |sample| {
        if sample.round.is_multiple_of(3) {
            66.0
        } else {
            64.0
        }
    });
    let found = of_throughput(&stay);
    let apart = |finding: &&Finding| matches!(finding, Finding::CoreDistance { .. });
    assert_eq!(found.iter().find(apart), None);
}

#[test]
fn good_and_bad_runs_of_one_cell_are_two_modes() {
    let bistable = samples(30, |round, cell| {
        if cell == 2 && round % 2 == 0 {
            0.4
        } else {
            1.0
        }
    });
    let found = of_throughput(&bistable);
    let [
        Finding::TwoModes {
            cell, ratio, modes, ..
        },
    ] = &found[..]
    else {
        panic!("{found:?}");
    };
    assert!(*cell == 2 && (ratio - 2.5).abs() < 0.1 && (modes.low_share - 0.5).abs() < 1e-12);
}

#[test]
fn a_single_bad_run_is_an_outlier_with_its_round() {
    let one_bad = samples(
        12,
        |round, cell| if (round, cell) == (7, 1) { 0.5 } else { 1.0 },
    );
    let found = of_throughput(&one_bad);
    let [Finding::Outliers { cell, samples, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((*cell, samples[0].round), (1, 7));
    assert!((samples[0].of_median - 0.5).abs() < 0.02);
}

#[test]
fn a_duplicate_that_differs_is_flagged_and_one_that_does_not_is_not() {
    let same: Vec<f64> = (0..10).map(|round| 0.02 * noise(round, 1)).collect();
    let good = self_test(&same, 0.05, Stopping::Fixed);
    assert!(!good.shows_effect && !good.beyond_worth && good.p > Some(0.05));
    assert!(good.resolution < Some(0.03));
    let off: Vec<f64> = same.iter().map(|log| log + 0.03).collect();
    let small = self_test(&off, 0.05, Stopping::Fixed);
    assert!(small.shows_effect && !small.beyond_worth);
    let far: Vec<f64> = same.iter().map(|log| log - 0.2).collect();
    assert!(self_test(&far, 0.05, Stopping::Fixed).beyond_worth);
    assert_eq!(self_test(&[0.1], 0.05, Stopping::Fixed).p, None);
}
