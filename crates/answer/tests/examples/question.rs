//! Questions made of figures: every combination of the levels is a cell, every pair of cells that differ in one factor
//! an effect whose verdict follows from its ratio and the width of its interval.

use std::collections::BTreeMap;

use wirecost_answer::{FigureValue, JudgedEffect, Measured, Question};
use wirecost_model::cell::{Factor, LOAD};
use wirecost_model::curve::{Curve, LevelCurve};
use wirecost_model::effect::{Effect, Remark, RemarkKind, Verdict};
use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::plan::Levels;
use wirecost_stats::{Interval, verdict};

/// Levels of one place, looked up without ado.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a>(&'a Levels);

impl At<'_> {
    /// The level of a factor; empty where it means nothing there.
    pub(crate) fn of(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// Whether a factor has this level.
    pub(crate) fn is(self, key: &str, level: &str) -> bool {
        self.of(key) == level
    }
}

/// A question in the making.
pub(crate) struct Case {
    question: Question,
    width: f64,
}

impl Case {
    /// Every combination of these levels.
    pub(crate) fn of(factors: &[(&str, &[&str])]) -> Self {
        let mut cells = vec![Levels::new()];
        for (key, levels) in factors {
            let with = |cell: &Levels| -> Vec<Levels> {
                let level = |level: &&str| {
                    let mut cell = cell.clone();
                    cell.insert((*key).to_owned(), (*level).to_owned());
                    cell
                };
                levels.iter().map(level).collect()
            };
            cells = cells.iter().flat_map(with).collect();
        }
        let factor = |(key, levels): &(&str, &[&str])| Factor {
            key: (*key).to_owned(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        };
        let cell = |levels| Measured {
            levels,
            figures: Vec::new(),
            line_share: None,
        };
        Self {
            question: Question {
                factors: factors.iter().map(factor).collect(),
                worth: 0.05,
                cells: cells.into_iter().map(cell).collect(),
                effects: Vec::new(),
                workloads: BTreeMap::new(),
                curves: Vec::new(),
            },
            width: 0.01,
        }
    }

    /// A factor as a curve, in one place.
    pub(crate) fn curve(mut self, factor: &str, place: (&str, &str), curve: Curve) -> Self {
        self.question.curves.push(LevelCurve {
            factor: factor.to_owned(),
            where_: [(place.0.to_owned(), place.1.to_owned())].into(),
            load: "tcp-stream".to_owned(),
            metric: Metric::Throughput,
            curve,
        });
        self
    }

    /// What is worth a change.
    pub(crate) fn worth(mut self, worth: f64) -> Self {
        self.question.worth = worth;
        self
    }

    /// Half of an interval's width, of what follows.
    pub(crate) fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// A factor that means nothing to some cells: they have no level of it, and are one.
    pub(crate) fn without(mut self, key: &str, cells: impl Fn(At) -> bool) -> Self {
        let first = self
            .question
            .factors
            .iter()
            .find(|factor| factor.key == key);
        let first = first
            .map(|factor| factor.levels[0].clone())
            .unwrap_or_default();
        self.question
            .cells
            .retain(|cell| !cells(At(&cell.levels)) || cell.levels.get(key) == Some(&first));
        for cell in &mut self.question.cells {
            if cells(At(&cell.levels)) {
                cell.levels.remove(key);
            }
        }
        self
    }

    /// What a load runs.
    pub(crate) fn runs(mut self, load: &str, workload: Workload) -> Self {
        self.question.workloads.insert(load.to_owned(), workload);
        self
    }

    /// What share of the line a cell fills.
    pub(crate) fn line(mut self, share: impl Fn(At) -> f64) -> Self {
        for cell in &mut self.question.cells {
            cell.line_share = Some(share(At(&cell.levels)));
        }
        self
    }

    /// A figure of the only load.
    pub(crate) fn figure(self, metric: Metric, value: impl Fn(At) -> f64) -> Self {
        self.load("tcp-stream", metric, |at| Some(value(at)))
    }

    /// A figure of a load, in the cells that run it.
    pub(crate) fn load(
        mut self,
        load: &str,
        metric: Metric,
        value: impl Fn(At) -> Option<f64>,
    ) -> Self {
        let figure = Figure {
            load: load.into(),
            metric,
        };
        let value = |levels: &Levels| value(At(levels));
        let of = |cells: &[Measured]| -> Vec<(Levels, f64)> {
            let figures = cells.iter();
            figures
                .filter_map(|cell| Some((cell.levels.clone(), value(&cell.levels)?)))
                .collect()
        };
        let figures = of(&self.question.cells);
        let factors = self.question.factors.clone();
        for factor in factors.iter().filter(|factor| factor.key != LOAD) {
            for (levels, from) in &figures {
                if levels
                    .get(&factor.key)
                    .is_some_and(|level| *level != factor.levels[0])
                {
                    continue;
                }
                for to in &factor.levels[1..] {
                    for (others, value) in &figures {
                        if let Some(judged) =
                            self.effect(factor, &figure, to, (levels, *from), (others, *value))
                        {
                            self.question.effects.push(judged);
                        }
                    }
                }
            }
        }
        for cell in &mut self.question.cells {
            if let Some(value) = value(&cell.levels) {
                let interval = [value / (1.0 + self.width), value * (1.0 + self.width)];
                let reading = FigureValue {
                    median: value,
                    interval: (!figure.metric.is_latency()).then_some(interval),
                };
                cell.figures.push((figure.clone(), reading));
            }
        }
        self
    }

    fn effect(
        &self,
        factor: &Factor,
        figure: &Figure,
        to: &str,
        (before, from): (&Levels, f64),
        (after, value): (&Levels, f64),
    ) -> Option<JudgedEffect> {
        if after.get(&factor.key).map(String::as_str) != Some(to)
            || !before.contains_key(&factor.key)
        {
            return None;
        }
        let mut where_ = after.clone();
        where_.remove(&factor.key);
        let equal = where_
            .iter()
            .all(|(key, level)| before.get(key).is_none_or(|own| own == level));
        let ratio = value / from;
        let (low, high) = (ratio / (1.0 + self.width), ratio * (1.0 + self.width));
        let verdict = verdict(
            Some(Interval { low, high }),
            figure.metric.better(),
            self.question.worth,
        );
        equal.then(|| JudgedEffect {
            effect: Effect {
                factor: factor.key.clone(),
                from: factor.levels[0].clone(),
                to: to.to_owned(),
                where_,
                load: figure.load.clone(),
                metric: figure.metric,
                ratio: Some(ratio),
                low: Some(low),
                high: Some(high),
                verdict,
                rounds: 10,
                not_comparable: None,
                remarks: Vec::new(),
            },
            verdict,
            no_ratio: None,
        })
    }

    /// Effects that are not comparable.
    pub(crate) fn not_comparable(
        mut self,
        kind: RemarkKind,
        these: impl Fn(&Effect) -> bool,
    ) -> Self {
        for judged in self
            .question
            .effects
            .iter_mut()
            .filter(|judged| these(&judged.effect))
        {
            judged.verdict = Verdict::NotComparable;
            judged.effect.verdict = judged.verdict;
            judged.effect.not_comparable = Some(Remark {
                kind,
                text: String::new(),
                advice: String::new(),
            });
        }
        self
    }

    /// Effects that cannot be determined, and whether that is because they have no ratio.
    pub(crate) fn undecided(
        mut self,
        why: Option<&'static str>,
        these: impl Fn(&Effect) -> bool,
    ) -> Self {
        for judged in self
            .question
            .effects
            .iter_mut()
            .filter(|judged| these(&judged.effect))
        {
            judged.verdict = Verdict::CannotTellYet;
            judged.effect.verdict = judged.verdict;
            judged.no_ratio = why;
            if why.is_some() {
                (judged.effect.ratio, judged.effect.low, judged.effect.high) = (None, None, None);
            } else {
                judged.effect.low = judged.effect.ratio.map(|ratio| ratio * 0.8);
                judged.effect.high = judged.effect.ratio.map(|ratio| ratio * 1.25);
            }
        }
        self
    }

    /// The question.
    pub(crate) fn ask(self) -> Question {
        self.question
    }
}
