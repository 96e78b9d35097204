//! Main effects and two-factor interactions of a factorial experiment.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::effect::Verdict;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::plan::Levels;

use crate::comparable::Guard;
use crate::effects::{Figures, Logs, pairs};
use crate::interval::Interval;
use crate::observed::Observed;
use crate::ratio::PairedRatio;
use crate::sequential::Stopping;
use crate::verdict::verdict;

/// Main effects and two-factor interactions of one metric of one load. Empty where fewer than two
/// factors are varied among the cells with that load: the effects of a single factor say
/// everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factorial {
    /// The load's name.
    pub load: String,
    /// The metric that is compared.
    pub metric: Metric,
    /// One per factor and level other than the first.
    pub main: Vec<MainEffect>,
    /// One per pair of factors and of their levels other than the first.
    pub interactions: Vec<Interaction>,
}

/// A level against the factor's first, averaged over the other factors' combinations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainEffect {
    /// The factor's key.
    pub factor: String,
    /// The factor's first level, which is compared with.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// Geometric mean of the ratios over the combinations, within rounds. Only rounds in which all
    /// combinations are valid count, so that every round averages the same.
    pub ratio: PairedRatio,
    /// The verdict on the average. The interactions say whether it holds for every combination.
    pub verdict: Verdict,
    /// Combinations averaged over.
    pub combinations: u32,
}

/// How much one factor's effect depends on another's level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interaction {
    /// The ratio of ratios: the effect of the first view's factor at the other's level `to`,
    /// divided by its effect at `from`. It is the same with the factors exchanged; 1 is no
    /// interaction.
    pub ratio: PairedRatio,
    /// Whether the interval excludes 1: the factors' effects depend on each other.
    pub matters: bool,
    /// Combinations of the remaining factors averaged over.
    pub combinations: u32,
    /// The effect of each factor at both levels of the other.
    pub views: [SimpleEffect; 2],
}

/// The simple effects of one factor at two levels of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimpleEffect {
    /// The factor whose effect it is.
    pub factor: String,
    /// The factor's first level, which is compared with.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The factor on which the effect may depend.
    pub other: String,
    /// First level of `other`.
    pub other_from: String,
    /// Level of `other` that is compared with its first.
    pub other_to: String,
    /// The effect at `other_from`.
    pub at_from: PairedRatio,
    /// The verdict on `at_from`.
    pub verdict_at_from: Verdict,
    /// The effect at `other_to`.
    pub at_to: PairedRatio,
    /// The verdict on `at_to`.
    pub verdict_at_to: Verdict,
    /// The dependence, where the interaction matters and the verdicts tell which.
    pub says: Option<Dependence>,
}

/// How an effect depends on another factor; `with` is the level of that other factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "says")]
pub enum Dependence {
    /// The level pays only with `with`: with the other level it makes no difference, or the verdict is open.
    PaysOnlyWith {
        /// The other factor's level.
        with: String,
    },
    /// The level costs only with `with`.
    CostsOnlyWith {
        /// The other factor's level.
        with: String,
    },
    /// The level pays with one level of the other factor and costs with the other.
    Reverses {
        /// The other factor's level with which it pays.
        pays_with: String,
    },
    /// The level pays, or costs, with both, and more so with `with`.
    MoreWith {
        /// The other factor's level.
        with: String,
    },
}

/// Computes main effects and interactions of one metric from valid samples. Where two of the cells
/// are [not comparable](crate::comparable), the verdict says so and the interaction does not
/// matter.
pub fn factorial(
    experiment: &Experiment,
    observed: &Observed,
    figure: &Figure,
    stopping: Stopping,
) -> Factorial {
    let experiment = &running(experiment, figure);
    let metric = figure.metric;
    let figures = Figures::of(figure.clone(), observed);
    let judge = Judge {
        logs: figures.logs(),
        figures,
        guard: Guard::of(experiment, observed),
        load: &figure.load,
        by_levels: experiment
            .cells
            .iter()
            .rev()
            .map(|cell| (&cell.levels, cell))
            .collect(),
        metric,
        worth: experiment.plan.repeat.worth,
        stopping,
    };
    let varied: Vec<&Factor> = experiment.compared().collect();
    let mut result = Factorial {
        load: figure.load.clone(),
        metric,
        main: Vec::new(),
        interactions: Vec::new(),
    };
    if varied.len() < 2 {
        return result;
    }
    for (i, a) in varied.iter().enumerate() {
        for to in &a.levels[1..] {
            result.main.extend(main(experiment, &judge, a, to));
            for b in &varied[i + 1..] {
                let interactions = b.levels[1..]
                    .iter()
                    .filter_map(|b_to| interaction(experiment, &judge, (a, to), (b, b_to)));
                result.interactions.extend(interactions);
            }
        }
    }
    result
}

/// The experiment reduced to the cells that can have the figure, and to the levels of these cells.
fn running(experiment: &Experiment, figure: &Figure) -> Experiment {
    let alone = |cell: &Cell| cell.loads.len() == 1 || !figure.metric.is_cpu();
    let mut part = experiment.clone();
    part.cells
        .retain(|cell| cell.load(&figure.load).is_some() && alone(cell));
    for factor in &mut part.factors {
        let had: BTreeSet<&String> = part
            .cells
            .iter()
            .filter_map(|cell| cell.levels.get(&factor.key))
            .collect();
        factor.levels.retain(|level| had.contains(level));
    }
    part
}

fn main(
    experiment: &Experiment,
    judge: &Judge<'_>,
    factor: &Factor,
    to: &String,
) -> Option<MainEffect> {
    let combinations: Vec<(&Cell, &Cell)> = pairs(experiment, factor)
        .filter(|(_, cell)| cell.levels.get(&factor.key) == Some(to))
        .collect();
    let (ratio, mut verdict) =
        judge.mean(&combinations, |log, (from, to)| Some(log(to)? - log(from)?));
    if combinations
        .iter()
        .any(|(from, to)| judge.bars(factor, [from, to]))
    {
        verdict = Verdict::NotComparable;
    }
    (!combinations.is_empty()).then(|| MainEffect {
        factor: factor.key.clone(),
        from: factor.levels[0].clone(),
        to: to.clone(),
        ratio,
        verdict,
        combinations: combinations.len() as u32,
    })
}

/// The four cells of an interaction: both factors at their first level, only the first factor
/// changed, only the second, both.
type Square<'a> = [&'a Cell; 4];

fn interaction(
    experiment: &Experiment,
    judge: &Judge<'_>,
    (a, a_to): (&Factor, &String),
    (b, b_to): (&Factor, &String),
) -> Option<Interaction> {
    let squares: Vec<Square> = experiment
        .cells
        .iter()
        .filter(|cell| {
            cell.levels.get(&a.key) == a.levels.first()
                && cell.levels.get(&b.key) == b.levels.first()
        })
        .filter_map(|cell| {
            let with = |changes: &[(&Factor, &String)]| {
                let mut wanted = cell.levels.clone();
                for (factor, level) in changes {
                    wanted.insert(factor.key.clone(), (*level).clone());
                }
                judge.by_levels.get(&wanted).copied()
            };
            let (only_a, only_b) = (with(&[(a, a_to)])?, with(&[(b, b_to)])?);
            Some([cell, only_a, only_b, with(&[(a, a_to), (b, b_to)])?])
        })
        .collect();
    if squares.is_empty() {
        return None;
    }
    // Every mean is over rounds in which all four cells are valid: the views and the ratio of
    // ratios are of the same rounds, and agree exactly.
    let of = |signs: [f64; 4]| {
        judge.mean(&squares, move |log, square| {
            let mut sum = 0.0;
            for (cell, sign) in square.iter().zip(signs) {
                sum += sign * log(cell)?;
            }
            Some(sum)
        })
    };
    let (ratio, _) = of([1.0, -1.0, -1.0, 1.0]);
    let barred = squares.iter().any(|[neither, only_a, only_b, both]| {
        judge.bars(a, [neither, only_a])
            || judge.bars(a, [only_b, both])
            || judge.bars(b, [neither, only_b])
            || judge.bars(b, [only_a, both])
    });
    let excludes_1 = |interval: Interval| !interval.holds(1.0);
    let matters = !barred && ratio.interval().is_some_and(excludes_1);
    let verdict = |verdict| {
        if barred {
            Verdict::NotComparable
        } else {
            verdict
        }
    };
    let view = |(factor, to): (&Factor, &String),
                (other, other_to): (&Factor, &String),
                at_from,
                at_to| {
        let (first, second) = (of(at_from), of(at_to));
        let mut view = SimpleEffect {
            factor: factor.key.clone(),
            from: factor.levels[0].clone(),
            to: to.clone(),
            other: other.key.clone(),
            other_from: other.levels[0].clone(),
            other_to: other_to.clone(),
            at_from: first.0,
            verdict_at_from: verdict(first.1),
            at_to: second.0,
            verdict_at_to: verdict(second.1),
            says: None,
        };
        view.says = if matters { says(&view) } else { None };
        view
    };
    Some(Interaction {
        ratio,
        matters,
        combinations: squares.len() as u32,
        views: [
            view(
                (a, a_to),
                (b, b_to),
                [-1.0, 1.0, 0.0, 0.0],
                [0.0, 0.0, -1.0, 1.0],
            ),
            view(
                (b, b_to),
                (a, a_to),
                [-1.0, 0.0, 1.0, 0.0],
                [0.0, -1.0, 0.0, 1.0],
            ),
        ],
    })
}

fn says(view: &SimpleEffect) -> Option<Dependence> {
    use Verdict::{Costs, Pays};
    let (from, to) = (view.other_from.clone(), view.other_to.clone());
    let size = |ratio: PairedRatio| ratio.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    Some(match (view.verdict_at_from, view.verdict_at_to) {
        (Pays, Pays) | (Costs, Costs) => Dependence::MoreWith {
            with: if size(view.at_from) > size(view.at_to) {
                from
            } else {
                to
            },
        },
        (Pays, Costs) => Dependence::Reverses { pays_with: from },
        (Costs, Pays) => Dependence::Reverses { pays_with: to },
        (Pays, _) => Dependence::PaysOnlyWith { with: from },
        (_, Pays) => Dependence::PaysOnlyWith { with: to },
        (Costs, _) => Dependence::CostsOnlyWith { with: from },
        (_, Costs) => Dependence::CostsOnlyWith { with: to },
        _ => return None,
    })
}

/// The figures of a metric, with everything needed to judge what is computed from them.
struct Judge<'a> {
    figures: Figures<'a>,
    logs: Logs,
    guard: Guard<'a>,
    load: &'a str,
    by_levels: BTreeMap<&'a Levels, &'a Cell>,
    metric: Metric,
    worth: f64,
    stopping: Stopping,
}

impl Judge<'_> {
    /// Whether two cells that differ in `factor` are not comparable.
    fn bars(&self, factor: &Factor, cells: [&Cell; 2]) -> bool {
        let coarse = self.metric.is_cpu() && !cells.iter().all(|cell| self.figures.is_fine(cell));
        let found = self
            .guard
            .comparability(&factor.key, cells, self.load, self.metric);
        coarse || found.not_comparable.is_some()
    }

    /// The mean of `term` over `items` within each round; a round that lacks an item is left out.
    fn mean<T>(
        &self,
        items: &[T],
        term: impl Fn(&dyn Fn(&Cell) -> Option<f64>, &T) -> Option<f64>,
    ) -> (PairedRatio, Verdict) {
        let logs = self.logs.each_round(|log| {
            let mut sum = 0.0;
            for item in items {
                sum += term(log, item)?;
            }
            (!items.is_empty()).then(|| sum / items.len() as f64)
        });
        let ratio = PairedRatio::of_logs(&logs, self.stopping);
        let verdict = verdict(ratio.interval(), self.metric.better(), self.worth);
        (ratio, verdict)
    }
}
