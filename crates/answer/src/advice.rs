//! What to do: the best cell, the cheapest change that comes near it, the single change that brings most.

use wirecost_model::cell::LOAD;
use wirecost_model::effect::Verdict;
use wirecost_model::load::Workload;
use wirecost_model::metric::{Direction, Metric};
use wirecost_model::plan::Levels;

use crate::size::percent;
use crate::{FigureValue, JudgedEffect, Measured, Question, demand, figures, names};

/// Most loads that advice is given for.
const LOADS: usize = 2;

/// A metric of a load that advice optimises, over the cells that have a value for it.
struct Goal<'a> {
    question: &'a Question,
    load: &'a str,
    metric: Metric,
}

/// What is advised for one goal.
enum Advice {
    /// The plan's first levels are the best: the cell's levels in words, the demand in words (may be empty), the
    /// figure.
    Stay([String; 3]),
    /// Anything else: the sentences behind `Best for LOAD`.
    Change(String),
}

pub(crate) fn sentences(question: &Question) -> Vec<String> {
    let mut loads: Vec<&str> = Vec::new();
    for judged in &question.effects {
        if !loads.contains(&judged.effect.load.as_str()) {
            loads.push(&judged.effect.load);
        }
    }
    // A load whose key is a factor (with it and without it) only disturbs the other loads: no advice for it.
    loads.retain(|load| question.factors.iter().all(|factor| factor.key != *load));
    loads.truncate(LOADS);
    let goals = loads
        .into_iter()
        .filter_map(|load| Goal::of(question, load));
    let advice: Vec<(&str, Advice)> = goals
        .filter_map(|goal| Some((goal.load, goal.sentences()?)))
        .collect();
    // Advice that is the same for both loads is one sentence.
    if let [
        (_, Advice::Stay([place, given, one])),
        (_, Advice::Stay([same, also, other])),
    ] = &advice[..]
        && (place, given) == (same, also)
    {
        return vec![format!(
            "Best for both loads{given}: {place} ({one}, {other}); nothing has to change."
        )];
    }
    let said = advice.into_iter().map(|(load, advice)| {
        let load = if question.several_loads() {
            format!(" for {load}")
        } else {
            String::new()
        };
        match advice {
            Advice::Stay([place, given, figure]) => {
                format!("Best{load}{given}: {figure} {place}; nothing has to change.")
            }
            Advice::Change(text) => format!("Best{load}{text}"),
        }
    });
    said.collect()
}

/// The levels of the factors that are demanded of the network, not chosen ([`demand::is_demand`]).
type Demand = Levels;

/// A cell and its figure.
type Candidate<'a> = (&'a Measured, FigureValue);

impl<'a> Goal<'a> {
    /// The load's metric to optimise: throughput or transactions; where no choice changes transactions (a paced load
    /// that keeps its rate), the p99 latency if one changes that. `None` without any settled verdict.
    fn of(question: &'a Question, load: &'a str) -> Option<Self> {
        let settled = move |metric: Metric| {
            question.effects.iter().filter(move |judged| {
                let is_open = matches!(
                    judged.verdict,
                    Verdict::NotComparable | Verdict::CannotTellYet
                );
                judged.effect.load == load && judged.effect.metric == metric && !is_open
            })
        };
        let is_changed = |metric: &Metric| {
            settled(*metric).any(|judged| {
                let key = &judged.effect.factor;
                let is_choice = !demand::is_demand(key) && !question.is_load(key);
                is_choice && judged.verdict != Verdict::MakesNoDifference
            })
        };
        let has = |metric: &Metric| settled(*metric).next().is_some();
        let wanted = [Metric::Throughput, Metric::Transactions, Metric::LatencyP99];
        let changed = wanted.into_iter().find(is_changed);
        let metric = changed.or_else(|| wanted.into_iter().find(has))?;
        Some(Self {
            question,
            load,
            metric,
        })
    }

    fn figure(&self, cell: &Measured) -> Option<FigureValue> {
        Question::figure(cell, self.load, self.metric)
    }

    fn is_demand(&self, key: &str) -> bool {
        demand::is_demand(key) || self.question.is_load(key)
    }

    /// The cell's levels of the factors that are demanded, without [`LOAD`].
    fn demand(&self, cell: &Measured) -> Demand {
        let own = cell
            .levels
            .iter()
            .filter(|(key, _)| self.is_demand(key) && *key != LOAD);
        own.map(|(key, level)| (key.clone(), level.clone()))
            .collect()
    }

    /// The chosen factors whose level differs from the plan's first: key, first level, the cell's level.
    fn changes<'b>(&self, cell: &'b Measured) -> Vec<(&'b str, &'b str, &'b str)>
    where
        'a: 'b,
    {
        let factors = self
            .question
            .factors
            .iter()
            .filter(|factor| !self.is_demand(&factor.key));
        factors
            .filter_map(|factor| {
                let (level, first) = (cell.levels.get(&factor.key)?, &factor.levels[0]);
                (level != first).then_some((factor.key.as_str(), first.as_str(), level.as_str()))
            })
            .collect()
    }

    /// The worse and the better end of the figure's interval; the median twice where there is no interval.
    fn ends(&self, figure: FigureValue) -> [f64; 2] {
        let [low, high] = figure.interval.unwrap_or([figure.median; 2]);
        match self.metric.better() {
            Direction::Higher => [low, high],
            Direction::Lower => [high, low],
        }
    }

    /// How much better `a` is than `b`, as a ratio: above 1 where `a` is better.
    fn lead(&self, a: f64, b: f64) -> f64 {
        match self.metric.better() {
            Direction::Higher => a / b,
            Direction::Lower => b / a,
        }
    }

    /// Whether the worse end of the figure's interval is still within the margin of the best median.
    fn near(&self, figure: FigureValue, best: FigureValue) -> bool {
        self.lead(best.median, self.ends(figure)[0]) <= 1.0 + self.question.worth
    }

    fn sentences(&self) -> Option<Advice> {
        let cells: Vec<Candidate> = self
            .question
            .cells
            .iter()
            .filter_map(|cell| Some((cell, self.figure(cell)?)))
            .collect();
        let mut demands: Vec<Demand> = Vec::new();
        for (cell, _) in &cells {
            let demand = self.demand(cell);
            if !demands.contains(&demand) {
                demands.push(demand);
            }
        }
        let demand = demands.first()?;
        let mine: Vec<Candidate> = cells
            .into_iter()
            .filter(|(cell, _)| self.demand(cell) == *demand)
            .collect();
        if mine.len() < 2 {
            return None;
        }
        let given = match demands.len() {
            1 => String::new(),
            _ => format!(" {}", self.question.place_for(self.load, demand)),
        };
        self.advice(&mine, &given)
    }

    /// Names the best of these cells, the cheapest cell near it, and the best single change.
    fn advice(&self, cells: &[Candidate], given: &str) -> Option<Advice> {
        let best = cells.iter().copied().reduce(|best, other| {
            let ahead = self.lead(other.1.median, best.1.median) > 1.0;
            if ahead { other } else { best }
        })?;
        let near = cells
            .iter()
            .copied()
            .filter(|one| std::ptr::eq(one.0, best.0) || self.near(one.1, best.1));
        let cheapest = near.min_by(|a, b| {
            let cost = |cell: &Measured| self.changes(cell).len();
            let by_figure = self.lead(b.1.median, a.1.median).total_cmp(&1.0);
            cost(a.0).cmp(&cost(b.0)).then(by_figure)
        });
        let cheapest = cheapest.unwrap_or(best);
        let base = cells
            .iter()
            .copied()
            .find(|(cell, _)| self.changes(cell).is_empty());
        let (place, figure) = self.best(best);
        if self.changes(best.0).is_empty() {
            return Some(Advice::Stay([place, given.to_owned(), figure]));
        }
        let measured = format!("{given}: {figure} {place}{}", self.alike(best, cells));
        Some(Advice::Change(match base {
            None => format!("{measured}."),
            Some(_) if self.changes(cheapest.0).is_empty() => format!(
                "{measured}. The first cell is within {} of it: nothing has to change.",
                percent(self.question.worth)
            ),
            Some(base) if self.may_be_as_good(base.1, best.1) => {
                format!("{measured}. From the first cell no change is known to pay.")
            }
            Some(base) => {
                let single = self.single(&self.demand(best.0));
                format!("{measured}. {}", self.cheapest(base, cheapest, single))
            }
        }))
    }

    /// The cell's choices and its figure, both in words.
    fn best(&self, (cell, figure): Candidate) -> (String, String) {
        let what = if self.metric.is_latency() {
            format!("{} of ", self.metric.words())
        } else {
            String::new()
        };
        let number = figures::one(self.metric, self.workload(), figure.median);
        (
            self.question.place(&self.choices(cell)),
            format!("{what}{number}"),
        )
    }

    fn workload(&self) -> Workload {
        self.question.workload(self.load)
    }

    /// Whether the better end of the figure's interval reaches the worse end of the best one's; false where one has no
    /// interval.
    fn may_be_as_good(&self, figure: FigureValue, best: FigureValue) -> bool {
        let both = figure.interval.is_some() && best.interval.is_some();
        both && self.lead(self.ends(figure)[1], self.ends(best)[0]) >= 1.0
    }

    /// How many other cells may be as good as the best, in words; empty for none.
    fn alike(&self, best: Candidate, cells: &[Candidate]) -> String {
        let alike = cells.iter().filter(|(cell, figure)| {
            !std::ptr::eq(*cell, best.0) && self.may_be_as_good(*figure, best.1)
        });
        match alike.count() {
            0 => String::new(),
            1 => " (another may be as good)".into(),
            n => format!(" ({n} others may be as good)"),
        }
    }

    /// The cell's levels without those that are demanded.
    fn choices(&self, cell: &Measured) -> Levels {
        let own = cell.levels.iter().filter(|(key, _)| !self.is_demand(key));
        own.map(|(key, level)| (key.clone(), level.clone()))
            .collect()
    }

    fn cheapest(
        &self,
        (_, before): Candidate,
        (cell, figure): Candidate,
        single: SingleChange,
    ) -> String {
        let changes = self.changes(cell);
        let named: Vec<String> = changes
            .iter()
            .map(|(key, from, to)| names::change(key, from, to))
            .collect();
        let figures = figures::change(self.metric, self.workload(), before.median, figure.median);
        let alone = if changes.len() == 1 { " alone" } else { "" };
        let text = format!(
            "Cheapest change to within {} of it: {}{alone} ({figures})",
            percent(self.question.worth),
            names::list(&named)
        );
        match single {
            SingleChange::Brings(judged, all)
                if changes.len() == 1
                    && changes[0].0 == judged.effect.factor
                    && changes[0].2 == judged.effect.to =>
            {
                format!("{text}, the best single change{}.", of_known(all))
            }
            SingleChange::Brings(judged, all) => {
                let effect = &judged.effect;
                let change = names::change(&effect.factor, &effect.from, &effect.to);
                let pair = self.question.figures_of(judged);
                let pair = pair.map_or_else(String::new, |[from, to]| {
                    let figures = figures::change(self.metric, self.workload(), from, to);
                    format!(" ({figures})")
                });
                format!(
                    "{text}. The best single change{}: {change}{pair}.",
                    of_known(all)
                )
            }
            SingleChange::Nothing => format!("{text}. No single change from there pays."),
            SingleChange::Unknown => {
                format!("{text}. Which single change brings most is not known.")
            }
        }
    }

    /// The single change from the plan's first levels that brings most, by its verdict.
    fn single(&self, demand: &Demand) -> SingleChange<'a> {
        let first = |key: &String, level: &String| {
            let mut factors = self.question.factors.iter();
            let factor = factors.find(|factor| factor.key == *key);
            factor.is_none_or(|factor| factor.levels.first() == Some(level))
        };
        let singles = self.question.effects.iter().filter(|judged| {
            let effect = &judged.effect;
            let others = effect.where_.iter().all(|(key, level)| {
                if self.is_demand(key) {
                    demand.get(key).is_none_or(|own| own == level)
                } else {
                    first(key, level)
                }
            });
            let asked = effect.load == self.load && effect.metric == self.metric;
            asked && others && !self.is_demand(&effect.factor)
        });
        let singles: Vec<&JudgedEffect> = singles.collect();
        let size =
            |judged: &JudgedEffect| judged.effect.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let pays = singles
            .iter()
            .copied()
            .filter(|judged| judged.verdict == Verdict::Pays);
        let most = pays.max_by(|a, b| size(a).total_cmp(&size(b)));
        let open = singles.iter().any(|judged| {
            matches!(
                judged.verdict,
                Verdict::CannotTellYet | Verdict::NotComparable
            )
        });
        match most {
            Some(judged) => SingleChange::Brings(judged, !open),
            None if open => SingleChange::Unknown,
            None => SingleChange::Nothing,
        }
    }
}

/// What a single change from the plan's first levels brings.
#[derive(Clone, Copy)]
enum SingleChange<'a> {
    /// The change that pays and brings most, and whether the verdicts of all other single changes are known.
    Brings(&'a JudgedEffect, bool),
    /// No single change pays.
    Nothing,
    /// No single change is known to pay, and the verdicts of some are not known.
    Unknown,
}

/// The restriction of a superlative where the verdicts of some other changes are not known.
const fn of_known(all: bool) -> &'static str {
    if all { "" } else { " of those known" }
}
