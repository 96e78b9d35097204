//! The effects of an experiment: contrasts of cells, judged.

mod partners;

use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::effect::{Effect, Remark, RemarkKind, Verdict};
use wirecost_model::metric::{CpuParts, Figure, Metric};
use wirecost_model::plan::{AwaitedEffects, Levels};

use crate::blocks::{ENOUGH_STEPS, blocks};
use crate::comparable::{Comparability, Guard};
use crate::observed::{Observed, Series, join};
use crate::ratio::{PairedRatio, has_log};
use crate::sequential::{Stopping, StoppingCriterion, lasting_ratio};
use crate::verdict;

use self::partners::Partners;

/// Compares every level of every varied factor with the factor's first, the other factors equal,
/// as a run with a fixed number of rounds does (see [`Contrast::effect`]).
///
/// Pairs are valid samples of one round; a sample without a positive figure (its CPU counter did
/// not advance in a short window) is no pair for that metric, and [`Effect::rounds`] does not count
/// it. A combination of which a cell was excluded has no effect; one without a valid pair has an
/// effect without a ratio. `where_` holds the levels of the other *varied* factors.
///
/// A cell lacks a level of a factor that means nothing to it, as the IP version of the underlay
/// does where nothing tunnels: such a cell is compared with the cells of every level.
///
/// Cells with different loads are not compared: the factor `load` has no effects of its own.
///
/// Ordered by factor (as in the plan), then by where (as the cells are), level, load and metric.
pub fn effects(experiment: &Experiment, observed: &Observed) -> Vec<Effect> {
    contrasts(experiment, observed)
        .iter()
        .map(|contrast| contrast.effect(experiment.plan.repeat.worth, Stopping::Fixed))
        .collect()
}

/// Two cells that differ in one factor, and their log ratios of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// The factor's key.
    pub factor: String,
    /// The factor's first level, which is compared with.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The levels of the other varied factors.
    pub where_: Levels,
    /// The load whose figure is compared.
    pub load: String,
    /// The metric that is compared.
    pub metric: Metric,
    /// The numbers of the two cells.
    pub cells: [u32; 2],
    /// Logarithms of `to / from`, one per round in which both cells are valid, in the order of
    /// rounds. For CPU metrics whose counter needs several rounds to resolve the figure, one per
    /// [block](crate::blocks::blocks) of rounds.
    pub logs: Vec<f64>,
    /// Rounds in which both cells are valid.
    pub rounds: u32,
    /// Whether a sample of one of the cells has too few transactions for the percentile: there is then no pair.
    pub is_sparse: bool,
    /// Whether the two cells are comparable, and what differs between them besides the factor.
    pub found: Comparability,
}

impl Contrast {
    /// The effect with its interval and verdict. `worth` is the margin, a fraction.
    pub fn effect(&self, worth: f64, stopping: Stopping) -> Effect {
        self.judged(PairedRatio::of_logs(&self.logs, stopping), worth)
    }

    /// The effect of an adaptive run that something other than its rule has stopped, with the
    /// lasting interval, which holds at any stopping time. The effect has no interval while the
    /// lasting one is infinite, or below [`StoppingCriterion::MIN_ROUNDS`].
    pub fn lasting_effect(&self, criterion: &StoppingCriterion, ends_at: u32) -> Effect {
        self.judged(
            lasting_ratio(&self.logs, criterion, ends_at),
            criterion.worth,
        )
    }

    /// Whether no verdict can be given of these samples.
    pub const fn is_incomparable(&self) -> bool {
        self.found.not_comparable.is_some()
    }

    fn judged(&self, ratio: PairedRatio, worth: f64) -> Effect {
        let spoken = verdict(ratio.interval(), self.metric.better(), worth);
        let unchanged = self.found.unchanged.as_ref();
        let unchanged = unchanged.filter(|_| spoken == Verdict::MakesNoDifference);
        let barred = self.found.not_comparable.as_ref().or(unchanged).cloned();
        Effect {
            factor: self.factor.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            where_: self.where_.clone(),
            load: self.load.clone(),
            metric: self.metric,
            ratio: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
            verdict: if barred.is_some() {
                Verdict::NotComparable
            } else {
                spoken
            },
            rounds: self.rounds,
            not_comparable: barred,
            remarks: self.found.remarks.clone(),
        }
    }
}

/// Every contrast of an experiment: what [`effects`] judges and [`crate::sequential::standing`]
/// looks at, in the same order.
pub fn contrasts(experiment: &Experiment, observed: &Observed) -> Vec<Contrast> {
    let guard = Guard::of(experiment, observed);
    let figures: Vec<Figures> = experiment
        .figures()
        .into_iter()
        .map(|figure| Figures::of(figure, observed))
        .collect();
    let mut contrasts = Vec::new();
    for factor in experiment.compared() {
        for (from, to) in pairs(experiment, factor) {
            let shared = |figures: &&Figures| {
                figures.is_of(from) && figures.is_of(to) && figures.is_listed(from, to)
            };
            contrasts.extend(
                figures
                    .iter()
                    .filter(shared)
                    .map(|figures| contrast(experiment, &guard, figures, &factor.key, [from, to])),
            );
        }
    }
    contrasts
}

/// The contrast of two cells in one figure. The level of a factor that a cell lacks is the empty string.
fn contrast(
    experiment: &Experiment,
    guard: &Guard<'_>,
    figures: &Figures<'_>,
    key: &str,
    [from, to]: [&Cell; 2],
) -> Contrast {
    let Figure { load, metric } = &figures.figure;
    let mut found = guard.comparability(key, [from, to], load, *metric);
    let paired = figures.paired(from, to);
    if paired.is_coarse && found.not_comparable.is_none() {
        found.not_comparable = Some(too_few_steps());
    }
    let level = |cell: &Cell| cell.levels.get(key).cloned().unwrap_or_default();
    Contrast {
        factor: key.to_owned(),
        from: level(from),
        to: level(to),
        where_: experiment
            .varied()
            .filter(|other| other.key != key)
            .filter_map(|other| {
                let of = |cell: &'_ Cell| cell.levels.get(&other.key).cloned();
                Some((other.key.clone(), of(from).or_else(|| of(to))?))
            })
            .collect(),
        load: load.clone(),
        metric: *metric,
        cells: [from.index, to.index],
        logs: paired.logs,
        rounds: paired.rounds,
        is_sparse: figures.is_sparse(from) || figures.is_sparse(to),
        found,
    }
}

/// Contrasts of any two cells, whatever they differ in: the guard takes the first factor whose
/// levels differ as the subject, and `where_` has the first cell's level of every other one.
pub fn contrasts_of(
    experiment: &Experiment,
    observed: &Observed,
    wanted: &[(Figure, [&Cell; 2])],
) -> Vec<Contrast> {
    let guard = Guard::of(experiment, observed);
    let one = |(figure, cells): &(Figure, [&Cell; 2])| {
        let [from, to] = *cells;
        let differs = |factor: &&Factor| from.levels.get(&factor.key) != to.levels.get(&factor.key);
        let key = experiment.varied().find(differs);
        let key = key.map_or("", |factor| factor.key.as_str());
        let figures = Figures::of(figure.clone(), observed);
        contrast(experiment, &guard, &figures, key, [from, to])
    };
    wanted.iter().map(one).collect()
}

fn too_few_steps() -> Remark {
    Remark {
        kind: RemarkKind::Resolution,
        text: format!(
            "the cores were busy for too few steps of their counter: not two blocks of rounds hold {ENOUGH_STEPS} in each cell"
        ),
        advice: "measure longer windows or more rounds".into(),
    }
}

/// The contrasts that an adaptive run waits for: of the metrics asked for, those that have a pair
/// and are comparable. A contrast of which a cell cannot be measured, or whose cells differ in
/// something else, would never settle.
pub fn awaited_contrasts(
    contrasts: &[Contrast],
    ask: AwaitedEffects,
) -> impl Iterator<Item = &Contrast> {
    contrasts.iter().filter(move |contrast| {
        ask.includes(contrast.metric) && !contrast.logs.is_empty() && !contrast.is_incomparable()
    })
}

/// Whether rounds settle none of the contrasts asked for, where none has a pair: the cells of some differ in something
/// else, or all have a sample with too few transactions for the percentile. Further rounds may make an invalid cell
/// valid, and add up to enough steps of the CPU counter.
pub fn none_can_settle(contrasts: &[Contrast], ask: AwaitedEffects) -> bool {
    let asked: Vec<&Contrast> = contrasts
        .iter()
        .filter(|contrast| ask.includes(contrast.metric))
        .collect();
    let differ = |contrast: &&Contrast| {
        let remark = contrast.found.not_comparable.as_ref();
        remark.is_some_and(|remark| remark.kind != RemarkKind::Resolution)
    };
    let are_sparse = !asked.is_empty() && asked.iter().all(|contrast| contrast.is_sparse);
    are_sparse || asked.iter().any(differ)
}

/// Logarithms of the twin's figures over those of the cell that it repeats, one per round in which
/// both are valid, for [`crate::validity::self_test`]; empty where the run has no twin.
pub fn self_test_logs(experiment: &Experiment, observed: &Observed, figure: &Figure) -> Vec<f64> {
    let Some((first, twin)) = experiment.repeated().zip(experiment.twin.as_ref()) else {
        return Vec::new();
    };
    Figures::of(figure.clone(), observed)
        .paired(first, twin)
        .logs
}

/// The pairs of cells that differ in `factor` alone; the first cell of each is at the factor's
/// first level. A factor of which one of the two has no level is no difference.
pub(crate) fn pairs<'a>(
    experiment: &'a Experiment,
    factor: &'a Factor,
) -> impl Iterator<Item = (&'a Cell, &'a Cell)> {
    let partners = Partners::of(experiment, factor);
    let firsts = experiment.cells.iter().filter(|cell| {
        let level = cell.levels.get(&factor.key);
        level.is_some() && level == factor.levels.first()
    });
    firsts.flat_map(move |from| partners.of_cell(from).into_iter().map(move |to| (from, to)))
}

/// One figure in every cell.
pub(crate) struct Figures<'a> {
    figure: Figure,
    observed: &'a Observed,
    /// Series by the cell's number; `None` for cells without this figure, or with too few transactions for it.
    cells: Vec<Option<&'a Series>>,
}

/// One figure of two cells, paired within rounds.
pub(crate) struct Paired {
    pub(crate) logs: Vec<f64>,
    pub(crate) rounds: u32,
    /// Whether the rounds hold too few steps of the CPU counter for an interval.
    pub(crate) is_coarse: bool,
}

/// Logarithms of one figure: a column of rounds for each cell, NaN where a round has no figure.
pub(crate) struct Logs {
    rounds: usize,
    cells: Vec<Option<Vec<f64>>>,
}

impl<'a> Figures<'a> {
    pub(crate) fn of(figure: Figure, observed: &'a Observed) -> Self {
        let mut cells = Vec::new();
        for (index, _) in observed.cells() {
            let index = index as usize;
            if cells.len() <= index {
                cells.resize(index + 1, None);
            }
            // A percentile that only rounds with many transactions have would be compared over these
            // rounds, which are not like the others.
            let series = observed.series(index as u32, &figure);
            cells[index] = series.filter(|series| !series.is_sparse);
        }
        Self {
            figure,
            observed,
            cells,
        }
    }

    fn series(&self, cell: &Cell) -> Option<&'a Series> {
        *self.cells.get(cell.index as usize)?
    }

    /// Whether a sample of a cell has too few transactions for the figure.
    fn is_sparse(&self, cell: &Cell) -> bool {
        self.observed.is_sparse(cell.index, &self.figure)
    }

    /// Logarithms of `to / from` by round; for CPU metrics by block, of the sums over its rounds.
    pub(crate) fn paired(&self, from: &Cell, to: &Cell) -> Paired {
        let (Some(from), Some(to)) = (self.series(from), self.series(to)) else {
            return Paired {
                logs: Vec::new(),
                rounds: 0,
                is_coarse: false,
            };
        };
        if !self.figure.metric.is_cpu() {
            let has_log = |(_, value): &(u32, f64)| has_log(*value);
            let both = join(from.values().filter(has_log), to.values().filter(has_log));
            let logs: Vec<f64> = both.map(|(from, to)| to.ln() - from.ln()).collect();
            return Paired {
                rounds: logs.len() as u32,
                logs,
                is_coarse: false,
            };
        }
        let rounds: Vec<[CpuParts; 2]> = join(from.parts(), to.parts())
            .map(|(from, to)| [from, to])
            .collect();
        let blocks = blocks(&rounds);
        Paired {
            rounds: rounds.len() as u32,
            is_coarse: rounds.len() > 1 && blocks.len() < 2,
            logs: blocks
                .iter()
                .map(|[from, to]| to.figure().ln() - from.figure().ln())
                .collect(),
        }
    }

    /// Whether every sample of a cell has enough CPU counter steps for a ratio of its own.
    pub(crate) fn is_fine(&self, cell: &Cell) -> bool {
        let mut parts = self.series(cell).into_iter().flat_map(Series::parts);
        parts.all(|(_, parts)| parts.steps() >= ENOUGH_STEPS)
    }

    /// Whether the figure is listed for two cells: p99.9 only where every sample of both has it.
    fn is_listed(&self, from: &Cell, to: &Cell) -> bool {
        let has = |cell| self.series(cell).is_some();
        self.figure.metric != Metric::LatencyP999 || has(from) && has(to)
    }

    /// Whether a cell can have the figure: it runs the load, and for CPU metrics runs no other load.
    fn is_of(&self, cell: &Cell) -> bool {
        let shares = cell.loads.len() > 1 && self.figure.metric.is_cpu();
        !shares && cell.load(&self.figure.load).is_some()
    }

    /// Logarithms of all cells by round.
    pub(crate) fn logs(&self) -> Logs {
        let of = |series: &'a Series| series.values().filter(|(_, value)| has_log(*value));
        let all = self.cells.iter().copied().flatten();
        let mut rounds: Vec<u32> = Vec::new();
        for series in all {
            rounds.extend(of(series).map(|(round, _)| round));
            rounds.sort_unstable();
            rounds.dedup();
        }
        let column = |series: &'a Series| {
            let mut column = vec![f64::NAN; rounds.len()];
            let mut at = 0;
            for (round, value) in of(series) {
                while rounds[at] < round {
                    at += 1;
                }
                column[at] = value.ln();
            }
            column
        };
        let cells = self.cells.iter().map(|series| series.map(column));
        Logs {
            cells: cells.collect(),
            rounds: rounds.len(),
        }
    }
}

impl Logs {
    /// `combine` applied to each round's logarithms; rounds for which it returns `None` are left out.
    pub(crate) fn each_round(
        &self,
        combine: impl Fn(&dyn Fn(&Cell) -> Option<f64>) -> Option<f64>,
    ) -> Vec<f64> {
        let of = |round: usize| {
            combine(&|cell: &Cell| {
                let column = self.cells.get(cell.index as usize)?.as_ref()?;
                Some(column[round]).filter(|log| !log.is_nan())
            })
        };
        (0..self.rounds).filter_map(of).collect()
    }
}
