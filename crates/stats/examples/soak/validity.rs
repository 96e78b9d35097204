//! How often the checks of a run cry wolf, and how often they see what is there.

use wirecost_stats::validity::{FINDING_ALPHA, dip, outliers, trend, two_modes};

use crate::experiment::{Tally, in_parallel};
use crate::noise::Numbers;

/// One cell's logarithms: normal with deviation 1, or what is planted.
type Values = fn(&mut Numbers, usize) -> Vec<f64>;

pub(crate) const PLANTED: &[(&str, Values)] = &[
    ("normal", |numbers, n| {
        (0..n).map(|_| numbers.normal()).collect()
    }),
    ("uniform", |numbers, n| {
        (0..n).map(|_| numbers.uniform()).collect()
    }),
    ("drift of 2 sd from first to last", |numbers, n| {
        (0..n)
            .map(|i| numbers.normal() + 2.0 * i as f64 / n as f64)
            .collect()
    }),
    ("half of the runs 5 sd off", |numbers, n| {
        (0..n)
            .map(|_| numbers.normal() + if numbers.uniform() < 0.5 { 5.0 } else { 0.0 })
            .collect()
    }),
    ("one in ten runs 8 sd off", |numbers, n| {
        (0..n)
            .map(|_| numbers.normal() + if numbers.uniform() < 0.1 { 8.0 } else { 0.0 })
            .collect()
    }),
];

/// `beyond`: drift; `same`: two modes; `leaning`: outliers.
pub(crate) fn checks(values: Values, n: usize, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(6, experiment.into());
        let values = values(&mut numbers, n);
        let points: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(i, v)| (i as f64, *v))
            .collect();
        Tally {
            experiments: 1,
            beyond: trend(&points)
                .is_some_and(|trend| trend.p <= FINDING_ALPHA)
                .into(),
            same: two_modes(&values).is_some().into(),
            leaning: (!outliers(&values).is_empty()).into(),
            ..Tally::default()
        }
    })
}

/// The table of `crates/stats/src/validity/dip_table.rs`: quantiles of `dip * sqrt(n)` of uniform
/// values.
pub(crate) fn dip_table() {
    const EXPERIMENTS: usize = 100_000;
    const TAILS: [f64; 6] = [0.5, 0.1, 0.05, 0.01, 0.005, 0.001];
    println!(
        "/// Quantiles of `dip * sqrt(n)` of uniform values, by `n` and upper tail ([`TAILS`]): {EXPERIMENTS}\n\
         /// simulations each. `cargo run --release -p wirecost-stats --example soak -- dip` writes this file.\n\
         const TABLE: &[(usize, [f64; 6])] = &["
    );
    for n in [10usize, 12, 15, 20, 25, 30, 40, 60, 100, 200, 500] {
        let mut dips: Vec<f64> = (0..EXPERIMENTS)
            .map(|experiment| {
                let mut numbers = Numbers::new(7 + n as u64, experiment as u64);
                let values: Vec<f64> = (0..n).map(|_| numbers.uniform()).collect();
                dip(&values).expect("values") * (n as f64).sqrt()
            })
            .collect();
        dips.sort_unstable_by(f64::total_cmp);
        let row: Vec<String> = TAILS
            .iter()
            .map(|tail| format!("{:.4}", dips[((1.0 - tail) * EXPERIMENTS as f64) as usize]))
            .collect();
        println!("    ({n}, [{}]),", row.join(", "));
    }
    println!("];");
}
