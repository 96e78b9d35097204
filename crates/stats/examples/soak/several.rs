//! A run with several effects, and figures that are not ratios.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;
use wirecost_stats::sequential::{Look, StoppingCriterion, standing};
use wirecost_stats::{Histogram, Stopping, correct, percentiles, rate, verdict};

use crate::experiment::{Tally, in_parallel};
use crate::noise::{Noise, Numbers};

/// The whole rule with seven effects of one reference: `covered` counts effects (of seven), `beyond`
/// runs with a false difference by the reported intervals, `same` those left after correction.
pub(crate) fn seven(noise: Noise, criterion: &StoppingCriterion, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(9, experiment.into());
        let logs = seven_effects(noise, criterion.max_rounds, &mut numbers);
        let at = |n: usize| {
            standing(
                logs.iter().map(|logs| &logs[..n]),
                criterion,
                criterion.max_rounds,
            )
        };
        let end = (criterion.min_rounds as usize..logs[0].len())
            .find(|&n| at(n).known)
            .unwrap_or(logs[0].len());
        let intervals: Vec<_> = at(end).looks.iter().map(Look::interval).collect();
        let differs = |found| !matches!(found, Verdict::MakesNoDifference | Verdict::CannotTellYet);
        let family: Vec<_> = logs
            .iter()
            .map(|logs| (&logs[..end], Direction::Higher))
            .collect();
        let corrected = correct(&family, criterion.worth, Stopping::Sequential);
        Tally {
            experiments: 1,
            covered: intervals
                .iter()
                .filter(|interval| interval.is_some_and(|interval| interval.holds(1.0)))
                .count() as u32,
            beyond: intervals
                .iter()
                .any(|interval| differs(verdict(*interval, Direction::Higher, criterion.worth)))
                .into(),
            same: corrected
                .iter()
                .any(|effect| differs(effect.verdict))
                .into(),
            rounds: end as u32,
            ..Tally::default()
        }
    })
}

/// Coverage of the percentile `p` of log-normal values whose scale varies from round to round by a
/// quarter of its spread within them: 400 values a round, in buckets of 1 %.
pub(crate) fn percentile(p: f64, z: f64, rounds: usize, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(10, experiment.into());
        let bucket = |log: f64| (1000.0 + 100.0 * log).round().max(1.0) as u64;
        let rounds: Vec<Histogram> = (0..rounds)
            .map(|_| {
                let level = 0.25 * numbers.normal();
                (0..400)
                    .map(|_| (bucket(level + numbers.normal()), 1))
                    .collect()
            })
            .collect();
        let truth = 1000.0 + 100.0 * z * 1.0625f64.sqrt();
        let interval = percentiles(&rounds, &[p], experiment.into())[0].interval;
        let interval = interval.map(|i| (i.low - 0.5, i.high + 0.5));
        Tally {
            experiments: 1,
            covered: interval
                .is_some_and(|(low, high)| low <= truth && truth <= high)
                .into(),
            ..Tally::default()
        }
    })
}

/// Coverage of a rate of `mean` events a round that come in bursts of `burst`.
pub(crate) fn rates(mean: f64, burst: u64, rounds: usize, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(11, experiment.into());
        let counts: Vec<(u64, f64)> = (0..rounds)
            .map(|_| (burst * poisson(mean / burst as f64, &mut numbers), 1.0))
            .collect();
        Tally {
            experiments: 1,
            covered: rate(&counts)
                .is_some_and(|rate| rate.interval.holds(mean))
                .into(),
            ..Tally::default()
        }
    })
}

/// The log ratios of seven cells to the eighth, which is in all of them: a run with one factor of
/// eight levels. None of them differs.
fn seven_effects(noise: Noise, rounds: u32, numbers: &mut Numbers) -> Vec<Vec<f64>> {
    let mut effects = vec![Vec::new(); 7];
    for _ in 0..rounds {
        let reference = noise.sample(numbers);
        for effect in &mut effects {
            effect.push(noise.sample(numbers) - reference);
        }
    }
    effects
}

/// By counting exponential gaps.
fn poisson(mean: f64, numbers: &mut Numbers) -> u64 {
    let (mut events, mut gone) = (0, -numbers.uniform().ln());
    while gone < mean {
        events += 1;
        gone -= numbers.uniform().ln();
    }
    events
}
