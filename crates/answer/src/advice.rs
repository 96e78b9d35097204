//! What to do: the best cell, the cheapest change that comes near it, the single change that brings most.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::{Direction, Metric};
use wirecost_model::plan::Levels;

use crate::size::percent;
use crate::{Measured, Question, Told, figures, names};

/// Loads that advice is given for.
const LOADS: usize = 2;

/// What is asked of a network, and not a choice in it; a load that runs beside others, or not, is likewise.
const DEMANDS: [&str; 14] = [
    "load",
    "guests",
    "streams",
    "streams_per_guest",
    "message",
    "request",
    "response",
    "rate",
    "total_rate",
    "think_time",
    "reply_timeout",
    "outstanding",
    "seconds",
    "underlay.rate",
];

/// A figure that one wants to be good, over the cells that have it.
struct Goal<'a> {
    question: &'a Question,
    load: &'a str,
    metric: Metric,
}

pub(crate) fn sentences(question: &Question) -> Vec<String> {
    let mut loads: Vec<&str> = Vec::new();
    for told in &question.effects {
        if !loads.contains(&told.effect.load.as_str()) {
            loads.push(&told.effect.load);
        }
    }
    // A load that the others are measured with and without is there to disturb them.
    loads.retain(|load| question.factors.iter().all(|factor| factor.key != *load));
    loads.truncate(LOADS);
    let several = question.several_loads();
    let goals = loads.iter().filter_map(|load| Goal::of(question, load));
    goals
        .flat_map(|goal| {
            let prefix = if several {
                format!("{}: ", goal.load)
            } else {
                String::new()
            };
            let each = goal.sentences().into_iter();
            each.map(move |sentence| format!("{prefix}{sentence}"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// A situation that is given: the levels of what is demanded.
type Demand = Levels;

impl<'a> Goal<'a> {
    /// Throughput or transactions; where nothing is told of transactions (a paced load), the p99 latency.
    fn of(question: &'a Question, load: &'a str) -> Option<Self> {
        let has = |metric: &Metric| {
            question.effects.iter().any(|told| {
                let settled = !matches!(
                    told.verdict,
                    Verdict::NotComparable | Verdict::CannotTellYet
                );
                told.effect.load == load && told.effect.metric == *metric && settled
            })
        };
        let wanted = [Metric::Throughput, Metric::Transactions, Metric::LatencyP99];
        let metric = wanted.into_iter().find(has)?;
        Some(Self {
            question,
            load,
            metric,
        })
    }

    fn figure(&self, cell: &Measured) -> Option<f64> {
        Question::figure(cell, self.load, self.metric)
    }

    fn is_demand(&self, key: &str) -> bool {
        let option = key.rsplit_once('.').map_or(key, |(_, option)| option);
        DEMANDS.contains(&key)
            || DEMANDS.contains(&option) && !key.starts_with("underlay")
            || self.question.is_load(key)
    }

    /// What is demanded of a cell.
    fn demand(&self, cell: &Measured) -> Demand {
        let own = cell
            .levels
            .iter()
            .filter(|(key, _)| self.is_demand(key) && *key != "load");
        own.map(|(key, level)| (key.clone(), level.clone()))
            .collect()
    }

    /// The choices that differ from the plan's first levels.
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

    fn better(&self, a: f64, b: f64) -> bool {
        match self.metric.better() {
            Direction::Higher => a > b,
            Direction::Lower => a < b,
        }
    }

    /// Whether a figure is within the margin of the best.
    fn near(&self, figure: f64, best: f64) -> bool {
        let ratio = match self.metric.better() {
            Direction::Higher => best / figure,
            Direction::Lower => figure / best,
        };
        ratio <= 1.0 + self.question.worth
    }

    fn sentences(&self) -> Vec<String> {
        let cells: Vec<(&Measured, f64)> = self
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
        let Some(demand) = demands.first() else {
            return Vec::new();
        };
        let mine: Vec<(&Measured, f64)> = cells
            .into_iter()
            .filter(|(cell, _)| self.demand(cell) == *demand)
            .collect();
        if mine.len() < 2 {
            return Vec::new();
        }
        let given = match demands.len() {
            1 => String::new(),
            _ => format!("{}: ", names::capital(&self.question.place(demand))),
        };
        let mut said = self.advice(&mine);
        if let Some(first) = said.first_mut().filter(|_| !given.is_empty()) {
            *first = format!("{given}{}", lower(first));
        }
        said
    }

    /// The best of these cells, the cheapest near it, and the best single change.
    fn advice(&self, cells: &[(&Measured, f64)]) -> Vec<String> {
        let best = cells.iter().copied().reduce(|best, other| {
            if self.better(other.1, best.1) {
                other
            } else {
                best
            }
        });
        let Some(best) = best else { return Vec::new() };
        let near: Vec<(&Measured, f64)> = cells
            .iter()
            .copied()
            .filter(|(_, figure)| self.near(*figure, best.1))
            .collect();
        let cheapest = near.iter().copied().min_by(|a, b| {
            let cost = |cell: &Measured| self.changes(cell).len();
            let by_figure = match self.metric.better() {
                Direction::Higher => b.1.total_cmp(&a.1),
                Direction::Lower => a.1.total_cmp(&b.1),
            };
            cost(a.0).cmp(&cost(b.0)).then(by_figure)
        });
        let cheapest = cheapest.unwrap_or(best);
        let best_measured = self.best(best);
        let base = cells
            .iter()
            .copied()
            .find(|(cell, _)| self.changes(cell).is_empty());
        let single = self.single(&self.demand(best.0));
        let mut said = self.cheapest(base, cheapest, single);
        match said.first_mut() {
            Some(first) => *first = format!("{best_measured}; {}", lower(first)),
            None => said.push(format!("{best_measured}.")),
        }
        said
    }

    fn best(&self, (cell, figure): (&Measured, f64)) -> String {
        let what = if self.metric.is_latency() {
            format!("{} of ", self.metric.words())
        } else {
            String::new()
        };
        let place = self.question.place(&self.choices(cell));
        let number = figures::one(self.metric, figure);
        format!("Best measured: {what}{number} {place}")
    }

    /// The levels of a cell without what is demanded.
    fn choices(&self, cell: &Measured) -> Levels {
        let own = cell.levels.iter().filter(|(key, _)| !self.is_demand(key));
        own.map(|(key, level)| (key.clone(), level.clone()))
            .collect()
    }

    fn cheapest(
        &self,
        base: Option<(&Measured, f64)>,
        (cell, figure): (&Measured, f64),
        single: Single,
    ) -> Vec<String> {
        let changes = self.changes(cell);
        let named: Vec<String> = changes
            .iter()
            .map(|(key, from, to)| names::change(key, from, to))
            .collect();
        let Some((base, before)) = base else {
            return Vec::new();
        };
        let from = match self.question.place(&self.choices(base)) {
            place if place.is_empty() => "from there".into(),
            place => format!("starting {place}"),
        };
        if changes.is_empty() {
            let nothing = format!(
                "nothing has to be changed for that, {from}: {} is within {}.",
                figures::one(self.metric, before),
                percent(self.question.worth)
            );
            return vec![nothing];
        }
        let figures = figures::both(self.metric, before, figure, " -> ");
        let alone = if changes.len() == 1 { " alone" } else { "" };
        let mut text = format!(
            "cheapest change to within {} of it, {from}: {}{alone} ({figures})",
            percent(self.question.worth),
            names::list(&named)
        );
        match single {
            Single::Brings(told, all)
                if changes.len() == 1
                    && changes[0].0 == told.effect.factor
                    && changes[0].2 == told.effect.to =>
            {
                text.push_str("; no single change brings more");
                text.push_str(of_told(all));
                text.push('.');
                vec![text]
            }
            Single::Brings(told, all) => {
                text.push('.');
                let effect = &told.effect;
                let change = names::change(&effect.factor, &effect.from, &effect.to);
                let pair = self.question.figures_of(told);
                let pair = pair.map_or_else(String::new, |[from, to]| {
                    format!(" ({})", figures::both(self.metric, from, to, " -> "))
                });
                vec![
                    text,
                    format!(
                        "The single change that brings most{}: {change}{pair}.",
                        of_told(all)
                    ),
                ]
            }
            Single::Nothing => vec![text + ".", "No single change from there pays.".into()],
            Single::Untold => vec![
                text + ".",
                "Which single change from there brings most cannot be told.".into(),
            ],
        }
    }

    /// Which single change from the plan's first levels brings most, by its verdict.
    fn single(&self, demand: &Demand) -> Single<'a> {
        let first = |key: &String, level: &String| {
            let mut factors = self.question.factors.iter();
            let factor = factors.find(|factor| factor.key == *key);
            factor.is_none_or(|factor| factor.levels.first() == Some(level))
        };
        let singles = self.question.effects.iter().filter(|told| {
            let effect = &told.effect;
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
        let singles: Vec<&Told> = singles.collect();
        let size = |told: &Told| told.effect.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let pays = singles
            .iter()
            .copied()
            .filter(|told| told.verdict == Verdict::Pays);
        let most = pays.max_by(|a, b| size(a).total_cmp(&size(b)));
        let open = singles.iter().any(|told| {
            matches!(
                told.verdict,
                Verdict::CannotTellYet | Verdict::NotComparable
            )
        });
        match most {
            Some(told) => Single::Brings(told, !open),
            None if open => Single::Untold,
            None => Single::Nothing,
        }
    }
}

/// What a single change from the plan's first levels brings.
#[derive(Clone, Copy)]
enum Single<'a> {
    /// This one pays, and most; and whether all others can be told.
    Brings(&'a Told, bool),
    /// None pays.
    Nothing,
    /// Of none that it pays is known, and of some nothing is known.
    Untold,
}

/// Where something is not known of other changes.
const fn of_told(all: bool) -> &'static str {
    if all {
        ""
    } else {
        " (of those that can be told)"
    }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
