use wirecost_model::fixtures;
use wirecost_model::sample::Invalid;

use super::*;
use crate::row::Row;

/// The first row, whose bound is 1 with CPU.
pub(crate) fn row() -> Row {
    Row::all().remove(0)
}

pub(crate) fn experiment(row: &Row) -> Experiment {
    let plan = row.plan(3, 4.0, 0.3);
    wirecost_plan::load("row.yaml", &plan).unwrap_or_else(|error| panic!("{error}"))
}

/// A second at so many Gbit/s, the sending host's core busy for this share of it, the receiving one's for half.
fn sample(round: u32, cell: u32, gbps: f64, busy: f64) -> Sample {
    Sample {
        position: 0,
        loads: vec![fixtures::stream((gbps * 1e9 / 8.0) as u64)],
        sender: Some(fixtures::usage(1.0, busy)),
        receiver: Some(fixtures::usage(1.0, 0.5)),
        ..fixtures::sample(round, cell)
    }
}

/// Rounds in which the other is at 10 Gbit/s with half a core, and ours at these multiples of both.
pub(crate) fn rounds(experiment: &Experiment, row: &Row, ours: &[(f64, f64)]) -> Vec<Sample> {
    let cell = |side: Side| {
        let is = |cell: &&wirecost_model::cell::Cell| {
            cell.levels["encapsulation"] == side.encapsulation
                && cell.levels["datapath"] == side.datapath
        };
        experiment.cells.iter().find(is).expect("a cell").index
    };
    let [first, second] = row.pairs[0].map(cell);
    (0..)
        .zip(ours)
        .flat_map(|(round, (speed, cpu))| {
            [
                sample(round, first, 10.0 * speed, 0.5 * speed * cpu),
                sample(round, second, 10.0, 0.5),
            ]
        })
        .collect()
}

pub(crate) fn compared(ours: &[(f64, f64)]) -> Comparison {
    let row = row();
    let experiment = experiment(&row);
    let samples = rounds(&experiment, &row, ours);
    let measured = Measured::new(&experiment, &samples);
    let comparison = measured.compare(row.pairs[0], row.bound, 3, 4.0);
    comparison.expect("positive figures")
}

fn holds(ours: &[(f64, f64)]) -> bool {
    compared(ours).judgement.expect("a bound").holds()
}

#[test]
fn faster_and_as_cheap_is_shown() {
    let faster = compared(&[(1.05, 1.0), (1.06, 0.99), (1.07, 1.01)]);
    assert!(faster.judgement.as_ref().expect("a bound").holds());
    let speed = &faster.figures[0];
    assert!((speed.ours - 10.6).abs() < 1e-6 && (speed.other - 10.0).abs() < 1e-6);
    assert!((speed.ratio.ratio.expect("pairs") - 1.06).abs() < 1e-3);
    assert_eq!(faster.missing, None);
}

#[test]
fn a_low_mean_a_wide_interval_and_more_cpu_are_not() {
    assert!(!holds(&[(0.98, 1.0), (0.98, 1.0), (0.981, 1.0)]));
    assert!(!holds(&[(0.9, 1.0), (1.1, 1.0), (1.2, 1.0)]));
    assert!(!holds(&[(1.05, 1.1), (1.06, 1.11), (1.07, 1.1)]));
    assert!(holds(&[(1.05, 0.9), (1.06, 1.2), (1.07, 1.1)]));
}

#[test]
fn a_pair_that_is_missing_shows_nothing_and_is_told() {
    let row = row();
    let experiment = experiment(&row);
    let mut samples = rounds(&experiment, &row, &[(1.05, 1.0), (1.06, 1.0), (1.07, 1.0)]);
    samples[2].invalid = Some(Invalid::Proof("lost".to_owned()));
    let measured = Measured::new(&experiment, &samples);
    let comparison = measured
        .compare(row.pairs[0], row.bound, 3, 4.0)
        .expect("positive figures");
    assert_eq!(comparison.pairs.len(), 2);
    assert_eq!(comparison.missing.as_deref(), Some("round 2: lost"));
    assert!(!comparison.judgement.expect("a bound").reached);
    // Of the second comparison's own side there is nothing at all.
    let [geneve, kernel] = row.pairs[1];
    assert!(measured.never(geneve).is_some());
    assert_eq!(measured.never(kernel), None);
}

#[test]
fn runs_are_slow_beside_the_fast_ones_of_the_whole_row() {
    // The other's ten run at 10 Gbit/s, which is slow where two of ours reach 20.
    let mut ours = vec![(1.0, 1.0); 8];
    ours.extend([(2.0, 1.0); 2]);
    let comparison = compared(&ours);
    assert_eq!(comparison.slow, Slow { ours: 8, other: 10 });
    assert_eq!(
        compared(&[(1.0, 1.0), (0.8, 1.0)]).slow,
        Slow { ours: 0, other: 0 }
    );
}
