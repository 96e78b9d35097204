//! Curves: factors with many numeric levels.

use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::curve::LevelCurve;
use wirecost_model::metric::{Figure, Metric};
use wirecost_stats::Observed;
use wirecost_stats::curve::{MIN_LEVELS, Point, curve};

/// Every curve: for each factor with many numeric levels, in every combination of the other levels, of the load's first
/// figure where that is a speed.
pub(crate) fn of(experiment: &Experiment, observed: &Observed) -> Vec<LevelCurve> {
    let factors = experiment.compared();
    let curves = factors.filter_map(|factor| Some((factor, numbers(factor)?)));
    curves
        .flat_map(|(factor, numbers)| {
            let first = experiment
                .cells
                .iter()
                .filter(|cell| cell.levels.get(&factor.key) == factor.levels.first());
            first
                .filter_map(|cell| one(experiment, observed, (factor, &numbers), cell))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The levels as numbers, ascending from above 0; `None` where they are no such numbers, or too few.
fn numbers(factor: &Factor) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = factor
        .levels
        .iter()
        .map(|level| level.parse().ok())
        .collect();
    let numbers = numbers.filter(|all| all.len() >= MIN_LEVELS)?;
    let ascending = numbers.windows(2).all(|two| two[0] < two[1]);
    (ascending && numbers[0] > 0.0).then_some(numbers)
}

/// The curve that begins at cell `first`; `None` where a level has no cell with the same other levels.
fn one(
    experiment: &Experiment,
    observed: &Observed,
    (factor, numbers): (&Factor, &[f64]),
    first: &Cell,
) -> Option<LevelCurve> {
    let named = first.loads.first()?;
    let figure = Figure {
        load: named.name.clone(),
        metric: *Metric::of(named.load.workload, experiment.plan.cores).first()?,
    };
    if !figure.metric.is_speed() {
        return None;
    }
    let others = || {
        let levels = first.levels.iter();
        levels.filter(|(key, _)| **key != factor.key)
    };
    let points: Option<Vec<Point>> = factor
        .levels
        .iter()
        .zip(numbers)
        .map(|(level, at)| {
            let mut cells = experiment.cells.iter();
            let cell = cells.find(|cell| {
                cell.levels.get(&factor.key) == Some(level)
                    && cell.levels.len() == first.levels.len()
                    && others().all(|(key, level)| cell.levels.get(key) == Some(level))
            })?;
            Some(Point {
                at: *at,
                column: observed.column(cell.index, &figure),
            })
        })
        .collect();
    let varied = |key: &String| experiment.varied().any(|factor| factor.key == *key);
    Some(LevelCurve {
        factor: factor.key.clone(),
        where_: others()
            .filter(|(key, _)| varied(key))
            .map(|(key, level)| (key.clone(), level.clone()))
            .collect(),
        load: figure.load,
        metric: figure.metric,
        curve: curve(&points?, experiment.plan.repeat.worth),
    })
}
