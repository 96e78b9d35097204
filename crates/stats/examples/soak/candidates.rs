//! The rules that might have been chosen, on the same experiments.

use statrs::distribution::{ContinuousCDF, StudentsT};
use wirecost_stats::sequential::{StoppingCriterion, look};

use crate::experiment::{Tally, in_parallel};
use crate::noise::{Noise, Numbers, log_ratios};

/// Half-widths on the log scale: of the interval by which a verdict stops the run, and of the one
/// reported.
type HalfWidths = fn(&[f64], &StoppingCriterion) -> (f64, f64);

pub(crate) const CANDIDATES: &[(&str, HalfWidths)] = &[
    ("95 % t interval at every round", |logs, _| {
        both(t_half(logs, 0.05))
    }),
    ("constant level 0.8 % (Pocock 1977)", |logs, _| {
        both(t_half(logs, 0.008))
    }),
    ("anytime-valid t (Lindon et al. 2022)", |logs, _| {
        both(mixture(logs))
    }),
    ("O'Brien-Fleming, reported as it is", |logs, criterion| {
        both(lasting(logs, criterion))
    }),
    ("O'Brien-Fleming, 95 % t reported", |logs, criterion| {
        (lasting(logs, criterion), t_half(logs, 0.05))
    }),
    ("the same at level 4.3 %", |logs, criterion| {
        (lasting(logs, criterion), t_half(logs, 0.043))
    }),
];

fn both(half: f64) -> (f64, f64) {
    (half, half)
}

fn error(logs: &[f64]) -> f64 {
    let n = logs.len() as f64;
    let mean = mean(logs);
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt()
}

fn mean(logs: &[f64]) -> f64 {
    logs.iter().sum::<f64>() / logs.len() as f64
}

fn t_half(logs: &[f64], alpha: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, logs.len() as f64 - 1.0).expect("pairs");
    -t.inverse_cdf(alpha / 2.0) * error(logs)
}

fn lasting(logs: &[f64], criterion: &StoppingCriterion) -> f64 {
    let look = look(logs, criterion, criterion.max_rounds);
    look.lasting
        .map_or(f64::INFINITY, |interval| interval.high.ln() - mean(logs))
}

/// Lindon, Ham, Tingley and Bojinov, "Anytime-valid linear models and regression adjusted causal
/// inference in randomized experiments", 2022: the Gaussian mixture over the effect, right Haar over
/// the scale (as in Wang and Ramdas 2023); the mixture is narrowest about round 12.
fn mixture(logs: &[f64]) -> f64 {
    const WEIGHT: f64 = 2.0;
    let n = logs.len() as f64;
    let r = WEIGHT / (WEIGHT + n);
    let k = (0.05 * r.sqrt()).powf(-2.0 / n);
    if k * r >= 1.0 {
        return f64::INFINITY;
    }
    ((k - 1.0) / (1.0 - k * r) * (n - 1.0)).sqrt() * error(logs)
}

/// Like [`crate::experiment::run`], stopping at the first round at which the candidate is content.
pub(crate) fn run(
    halves: HalfWidths,
    noise: Noise,
    ratio: f64,
    criterion: &StoppingCriterion,
    experiments: u32,
) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(2, experiment.into());
        let logs = log_ratios(
            noise,
            ratio,
            criterion.max_rounds,
            experiment.into(),
            &mut numbers,
        );
        let (truth, margin, wanted) = (
            ratio.ln(),
            criterion.worth.ln_1p(),
            criterion.precision.ln_1p(),
        );
        let mut tally = Tally {
            experiments: 1,
            lasted: 1,
            ..Tally::default()
        };
        for n in criterion.min_rounds as usize..=logs.len() {
            let mean = mean(&logs[..n]);
            let (stop, report) = halves(&logs[..n], criterion);
            tally.lasted &= u32::from((mean - truth).abs() <= report);
            let decided = mean.abs() + stop <= margin || mean.abs() - stop > margin;
            if tally.rounds == 0 && (report <= wanted || decided || n == logs.len()) {
                tally.rounds = n as u32;
                tally.covered = u32::from((mean - truth).abs() <= report);
                tally.beyond = u32::from(mean.abs() - report > margin);
            }
        }
        tally
    })
}
