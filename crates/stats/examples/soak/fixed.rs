//! What a number of rounds that was fixed beforehand gives: power, and the methods' coverage.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;
use wirecost_stats::{
    Interval, PairedRatio, Stopping, bootstrap_mean, correct, hodges_lehmann, verdict,
};

use crate::experiment::{CRITERION, Tally, in_parallel};
use crate::noise::{Noise, Numbers, log_ratios};

/// `covered`: the interval excludes 1; `beyond`: the verdict is pays.
pub(crate) fn power(noise: Noise, ratio: f64, rounds: u32, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(3, experiment.into());
        let logs = log_ratios(noise, ratio, rounds, experiment.into(), &mut numbers);
        let interval = PairedRatio::of_logs(&logs, Stopping::Fixed).interval();
        let found = verdict(interval, Direction::Higher, CRITERION.worth);
        Tally {
            experiments: 1,
            covered: interval.is_some_and(|interval| !interval.holds(1.0)).into(),
            beyond: (found == Verdict::Pays).into(),
            ..Tally::default()
        }
    })
}

/// Coverage of the truth: t in `covered`, the signed-rank interval in `lasted`, the bootstrap in `same`.
pub(crate) fn methods(noise: Noise, rounds: u32, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(4, experiment.into());
        let logs = log_ratios(noise, 1.0, rounds, experiment.into(), &mut numbers);
        let holds = |interval: Option<Interval>, truth: f64| -> u32 {
            interval
                .is_some_and(|interval| interval.holds(truth))
                .into()
        };
        Tally {
            experiments: 1,
            covered: holds(PairedRatio::of_logs(&logs, Stopping::Fixed).interval(), 1.0),
            lasted: holds(hodges_lehmann(&logs, 0.05).and_then(|c| c.interval), 0.0),
            same: holds(bootstrap_mean(&logs, 0.05, experiment.into()), 0.0),
            ..Tally::default()
        }
    })
}

/// A family of effects, none of which there is: `beyond` counts runs with any false claim of a
/// difference by the raw intervals, `same` those left after correction.
pub(crate) fn family(noise: Noise, effects: u32, rounds: u32, experiments: u32) -> Tally {
    in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(5, experiment.into());
        let logs: Vec<Vec<f64>> = (0..effects)
            .map(|effect| {
                let order = u64::from(experiment * effects + effect);
                log_ratios(noise, 1.0, rounds, order, &mut numbers)
            })
            .collect();
        let family: Vec<_> = logs
            .iter()
            .map(|logs| (&logs[..], Direction::Higher))
            .collect();
        let differs =
            |found: Verdict| !matches!(found, Verdict::MakesNoDifference | Verdict::CannotTellYet);
        let raw = |logs: &Vec<f64>| {
            let interval = PairedRatio::of_logs(logs, Stopping::Fixed).interval();
            differs(verdict(interval, Direction::Higher, CRITERION.worth))
        };
        let corrected = correct(&family, CRITERION.worth, Stopping::Fixed);
        Tally {
            experiments: 1,
            beyond: logs.iter().any(raw).into(),
            same: corrected
                .iter()
                .any(|effect| differs(effect.verdict))
                .into(),
            ..Tally::default()
        }
    })
}
