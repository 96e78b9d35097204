//! Whole experiments through the whole rule, and what came of them.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;
use wirecost_stats::sequential::{StoppingCriterion, look};
use wirecost_stats::verdict;

use crate::noise::{Noise, Numbers, log_ratios};

pub(crate) const CRITERION: StoppingCriterion = StoppingCriterion {
    precision: 0.02,
    worth: 0.05,
    min_rounds: 6,
    max_rounds: 60,
};

/// Counts over many experiments.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) experiments: u32,
    /// The reported interval holds the truth.
    pub(crate) covered: u32,
    /// The lasting interval held the truth at every look.
    pub(crate) lasted: u32,
    /// Verdict pays or costs.
    pub(crate) beyond: u32,
    /// Verdict gains or loses.
    pub(crate) leaning: u32,
    /// Verdict makes no difference.
    pub(crate) same: u32,
    /// Rounds of all.
    pub(crate) rounds: u32,
}

impl Tally {
    pub(crate) fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.experiments)
    }

    pub(crate) fn mean_rounds(&self) -> f64 {
        f64::from(self.rounds) / f64::from(self.experiments)
    }

    fn add(&mut self, other: &Self) {
        self.experiments += other.experiments;
        self.covered += other.covered;
        self.lasted += other.lasted;
        self.beyond += other.beyond;
        self.leaning += other.leaning;
        self.same += other.same;
        self.rounds += other.rounds;
    }
}

/// Runs `experiments` of them to the end that the rule finds, on all cores.
pub(crate) fn run(
    noise: Noise,
    ratio: f64,
    criterion: &StoppingCriterion,
    experiments: u32,
    seed: u64,
) -> Tally {
    let one = |experiment: u32| {
        let mut numbers = Numbers::new(seed, experiment.into());
        let order_seed = seed ^ u64::from(experiment);
        let logs = log_ratios(noise, ratio, criterion.max_rounds, order_seed, &mut numbers);
        sequential(&logs, ratio, criterion)
    };
    in_parallel(experiments, one)
}

/// Sums over `experiments`, the same whatever the number of threads.
pub(crate) fn in_parallel(experiments: u32, one: impl Fn(u32) -> Tally + Sync) -> Tally {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|thread| {
                let one = &one;
                scope.spawn(move || {
                    let mut part = Tally::default();
                    for experiment in (thread..experiments).step_by(threads as usize) {
                        part.add(&one(experiment));
                    }
                    part
                })
            })
            .collect();
        for part in parts {
            tally.add(&part.join().expect("a thread of the soak"));
        }
    });
    tally
}

fn sequential(logs: &[f64], ratio: f64, criterion: &StoppingCriterion) -> Tally {
    let mut lasted = true;
    let mut seen = look(&logs[..2], criterion, criterion.max_rounds);
    let mut rounds = 2;
    for n in 2..=logs.len() {
        seen = look(&logs[..n], criterion, criterion.max_rounds);
        lasted &= seen.lasting.is_some_and(|interval| interval.holds(ratio));
        rounds = n;
        if seen.settled {
            break;
        }
    }
    let interval = seen.interval();
    let found = verdict(interval, Direction::Higher, criterion.worth);
    Tally {
        experiments: 1,
        covered: interval
            .is_some_and(|interval| interval.holds(ratio))
            .into(),
        lasted: lasted.into(),
        beyond: matches!(found, Verdict::Pays | Verdict::Costs).into(),
        leaning: matches!(found, Verdict::Gains | Verdict::Loses).into(),
        same: (found == Verdict::MakesNoDifference).into(),
        rounds: rounds as u32,
    }
}

/// 5 % and two and a half standard errors of it.
pub(crate) fn allowed(experiments: u32) -> f64 {
    0.05 + 2.5 * (0.05 * 0.95 / f64::from(experiments)).sqrt()
}

/// What must hold where there is no effect, and does not.
pub(crate) fn null_bounds(noise: Noise, tally: &Tally) -> Vec<String> {
    // At 4000 experiments the bounds are those of the issue; with fewer, chance gets its room.
    let slack =
        (0.95 * 0.05 / f64::from(tally.experiments)).sqrt() - (0.95 * 0.05 / 4000f64).sqrt();
    let slack = 2.5 * slack.max(0.0);
    let (low, high) = match noise {
        Noise::Normal(_) => (0.94 - slack, 0.965 + slack),
        _ => (0.935 - slack, 1.0),
    };
    let coverage = tally.share(tally.covered);
    let (most, beyond) = (allowed(tally.experiments), tally.share(tally.beyond));
    let different = tally.share(tally.beyond + tally.leaning);
    let lasting = tally.share(tally.lasted);
    let mut broken = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            broken.push(format!("{}: {what}", noise.name()));
        }
    };
    check(beyond <= most, format!("pays or costs in {beyond}"));
    check(different <= most, format!("some difference in {different}"));
    check(
        (low..=high).contains(&coverage),
        format!("coverage {coverage}"),
    );
    check(
        1.0 - lasting <= most + 0.01,
        format!("the lasting interval lasted in {lasting}"),
    );
    broken
}

/// Share of experiments that are settled by `rounds`.
pub(crate) fn settled_by(
    noise: Noise,
    ratio: f64,
    criterion: &StoppingCriterion,
    rounds: u32,
    experiments: u32,
) -> f64 {
    let tally = in_parallel(experiments, |experiment| {
        let mut numbers = Numbers::new(8, experiment.into());
        let logs = log_ratios(noise, ratio, rounds, experiment.into(), &mut numbers);
        let settled =
            (2..=logs.len()).any(|n| look(&logs[..n], criterion, criterion.max_rounds).settled);
        Tally {
            experiments: 1,
            covered: settled.into(),
            ..Tally::default()
        }
    });
    tally.share(tally.covered)
}
