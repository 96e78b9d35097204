//! What to do: the best cell, the cheapest change that comes near it, the single change that brings most.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::{Direction, Metric};
use wirecost_model::plan::Levels;

use crate::size::percent;
use crate::{Measured, Question, Reading, Told, figures, names};

/// Loads that advice is given for.
const LOADS: usize = 2;

/// What is asked of a network, and not a choice in it; a load that runs beside others, or not, is likewise.
const DEMANDS: [&str; 19] = [
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
    "io_size",
    "pattern",
    "reads",
    "connections",
    "connections_per_guest",
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

/// A cell and its figure.
type Candidate<'a> = (&'a Measured, Reading);

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

    fn figure(&self, cell: &Measured) -> Option<Reading> {
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

    /// The figure's worse and better end: of its interval, or the median twice.
    fn ends(&self, figure: Reading) -> [f64; 2] {
        let [low, high] = figure.interval.unwrap_or([figure.median; 2]);
        match self.metric.better() {
            Direction::Higher => [low, high],
            Direction::Lower => [high, low],
        }
    }

    /// How much better one figure is than another, as a ratio.
    fn lead(&self, a: f64, b: f64) -> f64 {
        match self.metric.better() {
            Direction::Higher => a / b,
            Direction::Lower => b / a,
        }
    }

    /// Whether a figure is surely within the margin of the best median.
    fn near(&self, figure: Reading, best: Reading) -> bool {
        self.lead(best.median, self.ends(figure)[0]) <= 1.0 + self.question.worth
    }

    fn sentences(&self) -> Vec<String> {
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
        let Some(demand) = demands.first() else {
            return Vec::new();
        };
        let mine: Vec<Candidate> = cells
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
    fn advice(&self, cells: &[Candidate]) -> Vec<String> {
        let best = cells.iter().copied().reduce(|best, other| {
            let ahead = self.lead(other.1.median, best.1.median) > 1.0;
            if ahead { other } else { best }
        });
        let Some(best) = best else { return Vec::new() };
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
        let measured = self.best(best);
        if self.changes(best.0).is_empty() {
            return vec![format!("{measured}: nothing has to be changed.")];
        }
        let measured = measured + &self.alike(best, cells);
        let Some(base) = base else {
            return vec![format!("{measured}.")];
        };
        if self.changes(cheapest.0).is_empty() {
            return vec![format!(
                "{measured}; {} it is within {} of that: nothing has to be changed.",
                self.question.place(&self.choices(base.0)),
                percent(self.question.worth)
            )];
        }
        if self.may_be_as_good(base.1, best.1) {
            let place = self.question.place(&self.choices(base.0));
            return vec![format!(
                "{measured}. Starting {place}, no change is known to pay."
            )];
        }
        let single = self.single(&self.demand(best.0));
        let mut said = self.cheapest(base, cheapest, single);
        said[0] = format!("{measured}. {}", said[0]);
        said
    }

    fn best(&self, (cell, figure): Candidate) -> String {
        let what = if self.metric.is_latency() {
            format!("{} of ", self.metric.words())
        } else {
            String::new()
        };
        let place = self.question.place(&self.choices(cell));
        let number = figures::one(self.metric, figure.median);
        format!("Best: {what}{number} {place}")
    }

    /// Whether the interval of a figure reaches that of the best.
    fn may_be_as_good(&self, figure: Reading, best: Reading) -> bool {
        let both = figure.interval.is_some() && best.interval.is_some();
        both && self.lead(self.ends(figure)[1], self.ends(best)[0]) >= 1.0
    }

    /// How many other cells may be as good as the best.
    fn alike(&self, best: Candidate, cells: &[Candidate]) -> String {
        let alike = cells.iter().filter(|(cell, figure)| {
            !std::ptr::eq(*cell, best.0) && self.may_be_as_good(*figure, best.1)
        });
        match alike.count() {
            0 => String::new(),
            1 => " (another cell may be as good)".into(),
            n => format!(" ({n} other cells may be as good)"),
        }
    }

    /// The levels of a cell without what is demanded.
    fn choices(&self, cell: &Measured) -> Levels {
        let own = cell.levels.iter().filter(|(key, _)| !self.is_demand(key));
        own.map(|(key, level)| (key.clone(), level.clone()))
            .collect()
    }

    fn cheapest(
        &self,
        (base, before): Candidate,
        (cell, figure): Candidate,
        single: Single,
    ) -> Vec<String> {
        let changes = self.changes(cell);
        let named: Vec<String> = changes
            .iter()
            .map(|(key, from, to)| names::change(key, from, to))
            .collect();
        let figures = figures::both(self.metric, before.median, figure.median, " -> ");
        let alone = if changes.len() == 1 { " alone" } else { "" };
        let mut text = format!(
            "Cheapest change to within {} of it, starting {}: {}{alone} ({figures})",
            percent(self.question.worth),
            self.question.place(&self.choices(base)),
            names::list(&named)
        );
        match single {
            Single::Brings(told, all)
                if changes.len() == 1
                    && changes[0].0 == told.effect.factor
                    && changes[0].2 == told.effect.to =>
            {
                text.push_str(", the best single change");
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
                    format!("The best single change{}: {change}{pair}.", of_told(all)),
                ]
            }
            Single::Nothing => vec![text + ".", "No single change from there pays.".into()],
            Single::Untold => vec![
                text + ".",
                "Which single change brings most is not known.".into(),
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
    if all { "" } else { " of those known" }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
