//! Every effect of an experiment.

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::effect::Effect;
use wirecost_model::metric::Metric;
use wirecost_model::sample::Sample;

use crate::ratio::{PairedRatio, has_log};
use crate::sequential::Stopping;
use crate::{TCP_STREAM, verdict};

/// Compares every level of every varied factor with the factor's first, the other factors equal.
///
/// Pairs are valid samples of one round; a sample without a positive figure (its CPU counter did
/// not move in a short window) pairs for no ratio of that metric, and [`Effect::rounds`] shows it.
/// A combination of which a cell was excluded has no effect; one without a valid pair has an
/// effect without a ratio. `where_` holds the other *varied* factors.
///
/// Ordered by factor (as in the plan), then by where (as the cells are), level, and metric.
pub fn effects(experiment: &Experiment, samples: &[Sample]) -> Vec<Effect> {
    let rounds = ByCell::of(samples);
    let metrics = Metric::of(experiment.plan.cores);
    let mut effects = Vec::new();
    for factor in experiment.varied() {
        for (from, to) in contrasts(experiment, factor) {
            effects.extend(metrics.iter().map(|&metric| {
                let ratio = rounds.ratio(metric, from, to);
                Effect {
                    factor: factor.key.clone(),
                    from: from.levels[&factor.key].clone(),
                    to: to.levels[&factor.key].clone(),
                    where_: experiment
                        .varied()
                        .filter(|other| other.key != factor.key)
                        .filter_map(|other| from.levels.get_key_value(&other.key))
                        .map(|(key, level)| (key.clone(), level.clone()))
                        .collect(),
                    load: TCP_STREAM.into(),
                    metric,
                    ratio: ratio.ratio,
                    low: ratio.low,
                    high: ratio.high,
                    verdict: verdict(
                        ratio.interval(),
                        metric.better(),
                        experiment.plan.repeat.worth,
                    ),
                    rounds: ratio.pairs,
                }
            }));
        }
    }
    effects
}

/// The pairs of cells that differ in `factor` alone, the first of each at the factor's first level.
fn contrasts<'a>(
    experiment: &'a Experiment,
    factor: &'a Factor,
) -> impl Iterator<Item = (&'a Cell, &'a Cell)> {
    let cells = &experiment.cells;
    let (first, others) = match factor.levels.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, &[][..]),
    };
    cells
        .iter()
        .filter(move |cell| first.is_some() && cell.levels.get(&factor.key) == first)
        .flat_map(move |from| {
            others.iter().filter_map(move |level| {
                let mut wanted = from.levels.clone();
                wanted.insert(factor.key.clone(), level.clone());
                let to = cells.iter().find(|cell| cell.levels == wanted)?;
                Some((from, to))
            })
        })
}

/// Valid samples by cell and round.
struct ByCell<'a>(BTreeMap<u32, BTreeMap<u32, &'a Sample>>);

impl<'a> ByCell<'a> {
    fn of(samples: &'a [Sample]) -> Self {
        let mut cells: BTreeMap<u32, BTreeMap<u32, &Sample>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.invalid.is_none()) {
            cells
                .entry(sample.cell)
                .or_default()
                .insert(sample.round, sample);
        }
        Self(cells)
    }

    fn ratio(&self, metric: Metric, from: &Cell, to: &Cell) -> PairedRatio {
        let none = BTreeMap::new();
        let of = |cell: &Cell| self.0.get(&cell.index).unwrap_or(&none);
        let figure = |sample: &Sample| metric.value(sample).filter(|&value| has_log(value));
        let logs: Vec<f64> = of(from)
            .iter()
            .filter_map(|(round, sample)| {
                let partner = of(to).get(round)?;
                Some(figure(partner)?.ln() - figure(sample)?.ln())
            })
            .collect();
        PairedRatio::of_logs(&logs, Stopping::Fixed)
    }
}
