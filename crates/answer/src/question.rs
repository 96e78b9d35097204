//! Input of the answer: effects with their verdicts, and the cells' figures.

use std::collections::BTreeMap;

use wirecost_model::cell::{Factor, LOAD};
use wirecost_model::curve::LevelCurve;
use wirecost_model::effect::{Effect, Verdict};
use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::plan::Levels;

use crate::dimension::Dimension;
use crate::names;

/// What a run measured, as far as the answer needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The varied factors in the plan's order; the first level of each is the reference.
    pub factors: Vec<Factor>,
    /// The smallest change worth having, as a fraction: 0.05 is 5 %.
    pub worth: f64,
    /// The cells that have a valid sample, in the plan's order.
    pub cells: Vec<Measured>,
    /// Every effect of the run.
    pub effects: Vec<JudgedEffect>,
    /// The workload of each load, by the load's name.
    pub workloads: BTreeMap<String, Workload>,
    /// The curves of factors that have many numeric levels.
    pub curves: Vec<LevelCurve>,
}

/// A cell with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The cell's levels of the varied factors that apply to it.
    pub levels: Levels,
    /// Each figure over the valid samples, in the units of [`Metric::unit`](wirecost_model::metric::Metric::unit).
    pub figures: Vec<(Figure, FigureValue)>,
    /// Throughput divided by what the line carries in frames of this cell's size; `None` without a line rate.
    pub line_share: Option<f64>,
}

/// The value of a figure in a cell, over the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureValue {
    /// Median over the valid samples.
    pub median: f64,
    /// The 95 % confidence interval of the mean, where there is one.
    pub interval: Option<[f64; 2]>,
}

/// An effect and the verdict that the answer tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedEffect {
    /// The effect.
    pub effect: Effect,
    /// The verdict after correction for all comparisons of the run; the effect's own verdict where there is no
    /// correction.
    pub verdict: Verdict,
    /// Why more rounds would not help an effect without a ratio: `no valid pair`.
    pub no_ratio: Option<&'static str>,
}

impl Question {
    /// Whether effects are of more than one load, so that figures have to name theirs.
    pub(crate) fn several_loads(&self) -> bool {
        let mut loads = self.effects.iter().map(|judged| &judged.effect.load);
        let first = loads.next();
        loads.any(|load| Some(load) != first)
    }

    /// Whether the factor of this key is a load that runs next to others or not at all.
    pub(crate) fn is_load(&self, key: &str) -> bool {
        let mut figures = self.cells.iter().flat_map(|cell| &cell.figures);
        figures.any(|(figure, _)| figure.load == key)
    }

    /// The workload of a load; a TCP stream where it is not known.
    pub(crate) fn workload(&self, load: &str) -> Workload {
        let known = self.workloads.get(load);
        known.copied().unwrap_or(Workload::TcpStream)
    }

    /// Conditions of a figure of `load` (or of the load that the conditions name) as one phrase:
    /// `through VXLAN at 1500 without offloads`.
    pub(crate) fn conditions(
        &self,
        load: &str,
        dimensions: &[Dimension],
        bound: &[(usize, Vec<usize>)],
    ) -> String {
        let named = bound.iter().find_map(|(at, levels)| match &levels[..] {
            &[only] if dimensions[*at].key == LOAD => Some(dimensions[*at].levels[only].as_str()),
            _ => None,
        });
        let load = named.unwrap_or(load);
        let each = bound.iter().map(|(at, levels)| {
            let dimension = &dimensions[*at];
            let levels: Vec<&str> = levels
                .iter()
                .map(|&level| dimension.levels[level].as_str())
                .collect();
            self.condition(load, &dimension.key, &levels)
        });
        together(each)
    }

    /// One condition, without the name of `load` in the key: `with 8 streams` for `tcp-stream.streams`.
    fn condition(&self, load: &str, key: &str, levels: &[&str]) -> String {
        let option = key
            .strip_prefix(load)
            .and_then(|rest| rest.strip_prefix('.'));
        match levels {
            [level] if self.is_load(key) => names::with_or_without(key, level),
            _ => names::condition(option.unwrap_or(key), levels),
        }
    }

    /// A cell's levels as one phrase, in the plan's order.
    pub(crate) fn place(&self, levels: &Levels) -> String {
        let load = levels.get(LOAD).map_or("", String::as_str);
        self.place_for(load, levels)
    }

    /// A cell's levels as one phrase, where the sentence has named `load` already.
    pub(crate) fn place_for(&self, load: &str, levels: &Levels) -> String {
        let each = self.factors.iter().filter_map(|factor| {
            let level = levels.get(&factor.key)?;
            Some(self.condition(load, &factor.key, &[level]))
        });
        together(each)
    }

    /// The value of a metric of a load in a cell.
    pub(crate) fn figure(cell: &Measured, load: &str, metric: Metric) -> Option<FigureValue> {
        let mut figures = cell.figures.iter();
        let found = figures.find(|(figure, _)| figure.load == load && figure.metric == metric)?;
        Some(found.1)
    }

    /// The medians of an effect's figure in its two cells: at the level `from`, at the level `to`.
    pub(crate) fn figures_of(&self, judged: &JudgedEffect) -> Option<[f64; 2]> {
        let effect = &judged.effect;
        let of = |level: &String| {
            let mut cells = self.cells.iter().filter(|cell| {
                let others = effect.where_.iter().all(|(key, level)| {
                    // A factor that does not apply to a cell is no difference.
                    cell.levels.get(key).is_none_or(|own| own == level)
                });
                others && cell.levels.get(&effect.factor) == Some(level)
            });
            cells.find_map(|cell| Some(Self::figure(cell, &effect.load, effect.metric)?.median))
        };
        Some([of(&effect.from)?, of(&effect.to)?])
    }
}

/// Joins conditions to one phrase: `with 2 queues` and `with offloads` become `with 2 queues and offloads`, `without A`
/// and `without B` become `without A or B`.
fn together(conditions: impl Iterator<Item = String>) -> String {
    let (mut others, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for one in conditions {
        if let Some(what) = one.strip_prefix("with ") {
            with.push(what.to_owned());
        } else if let Some(what) = one.strip_prefix("without ") {
            without.push(what.to_owned());
        } else {
            others.push(one);
        }
    }
    let both = !with.is_empty() && !without.is_empty();
    if !with.is_empty() {
        others.push(format!("with {}", names::list(&with)));
    }
    if both {
        others.push("and".into());
    }
    if !without.is_empty() {
        others.push(format!("without {}", without.join(" or ")));
    }
    others.join(" ")
}
