//! Compares two runs: matches their cells by their levels, lists other differences, judges every figure,
//! and concludes whether there is a regression.

mod caveats;
mod cells;
mod differences;
mod guard;
mod load_documents;
mod matching;

use serde::Serialize;
use wirecost_model::cell::{Experiment, Factor};
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::load::Workload;
use wirecost_model::metric::{Direction, Metric};
use wirecost_model::plan::Levels;
use wirecost_model::record::Run;
use wirecost_stats::{FigureVerdict, Summary};

use self::caveats::caveats;
use crate::result::document::{Document, Ending, Trust};
use crate::result::run::RunResult;
use crate::result::trust;

pub(crate) use differences::TRANSIT;
pub use differences::{Area, Difference};
pub use load_documents::{LoadDocument, compare_load_documents};

/// A run with the result that `document` computes from it.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The run's record.
    pub run: &'a Run,
    /// The result of that run.
    pub document: &'a Document,
}

impl<'a> From<&'a RunResult> for Compared<'a> {
    fn from(result: &'a RunResult) -> Self {
        Self {
            run: &result.reading.run,
            document: &result.document,
        }
    }
}

/// Which verdicts make a comparison fail. Each level also includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailOn {
    /// No verdict.
    Never,
    /// The verdict `costs`, and a cell that was measured before and of which every sample is invalid now.
    Costs,
    /// Also the verdict `loses`: certainly worse, perhaps within the margin.
    Loses,
    /// Also the verdicts `cannot tell yet` and `not comparable`, and cells of the run before that were not
    /// compared.
    CannotTell,
}

/// How the verdicts of a comparison become success or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strictness {
    /// Which verdicts make the comparison fail.
    pub fail_on: FailOn,
    /// Whether the verdicts corrected for the number of figures (Holm) decide.
    pub corrected: bool,
}

/// The outcome of a comparison as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Nothing fails.
    NoRegression,
    /// At least one figure or cell fails.
    Regression,
    /// Too many samples of a run were disturbed for any figure to be compared.
    CannotTell,
    /// No figure of any cell exists in both runs.
    NothingComparable,
}

/// The comparison of two runs: the JSON contract. Its names are stable; later versions only add to
/// them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The outcome as a whole.
    pub conclusion: Conclusion,
    /// Which verdicts make the comparison fail.
    pub fail_on: FailOn,
    /// Whether the corrected verdicts decide.
    pub by_corrected: bool,
    /// How many figures and cells fail.
    pub failures: u32,
    /// The earlier run, which is compared with.
    pub before: Side,
    /// The later run, which is compared.
    pub after: Side,
    /// Differences of program, machine and plan, which may explain a change of the figures.
    pub differences: Vec<Difference>,
    /// Caveats of the comparison, in words.
    pub notes: Vec<String>,
    /// The smallest change worth having, a fraction: that of `after`'s plan.
    pub worth: f64,
    /// Ratios over all cells, for each metric of each load that two cells or more have.
    pub shifts: Vec<Shift>,
    /// The factors with more than one level in the two runs together.
    pub factors: Vec<Factor>,
    /// The cells that both runs have, in `after`'s order.
    pub cells: Vec<ComparedCell>,
    /// Cells that both runs have and that cannot be compared.
    pub not_comparable: Vec<NotComparable>,
    /// Levels of each cell that only `before` has.
    pub only_before: Vec<Levels>,
    /// Levels of each cell that only `after` has.
    pub only_after: Vec<Levels>,
}

/// One of the two runs of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The run directory.
    pub run_dir: String,
    /// The plan's name.
    pub name: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// Version of the program that made the run.
    pub program_version: String,
    /// Version of the run's record.
    pub record_version: u32,
    /// How the run ended.
    pub outcome: Ending,
    /// Rounds in which every cell has its sample.
    pub rounds_done: u32,
    /// Samples taken.
    pub samples: u32,
    /// Samples that are not valid and are left out.
    pub invalid: u32,
    /// Samples that are marked, for example as perhaps disturbed; they count.
    pub marked: u32,
    /// Whether the run can be relied on.
    pub trust: Trust,
}

/// How one figure changed over all cells: an effect of the machine, unless the change under test is in every cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// The load whose figure it is.
    pub load: String,
    /// The load's workload.
    #[serde(skip)]
    pub workload: Workload,
    /// The figure's metric.
    pub metric: Metric,
    /// Number of cells that were compared.
    pub cells: u32,
    /// Median of the cells' ratios after / before.
    pub median: f64,
    /// The smallest of these ratios.
    pub min: f64,
    /// The largest of these ratios.
    pub max: f64,
}

/// A cell of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    /// The cell's number in `before`.
    pub before_cell: u32,
    /// The cell's number in `after`.
    pub after_cell: u32,
    /// The cell's levels of [`Comparison::factors`].
    pub levels: Levels,
    /// The cell's levels of all factors.
    pub all_levels: Levels,
    /// The cell's figures, with a verdict each.
    pub figures: Vec<Figure>,
}

/// One figure of one cell in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The load whose figure it is.
    pub load: String,
    /// The load's workload.
    #[serde(skip)]
    pub workload: Workload,
    /// The figure's metric.
    pub metric: Metric,
    /// The unit of `before` and `after`.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Direction,
    /// Summary of the earlier run's valid samples.
    pub before: Option<Summary>,
    /// Summary of the later run's valid samples.
    pub after: Option<Summary>,
    /// The ratio after / before, its intervals, and the verdicts.
    #[serde(flatten)]
    pub judged: FigureVerdict,
    /// Why the figure is not comparable, where the verdict says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<Remark>,
    /// Differences between the two runs of the cell that do not rule out a verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Whether the figure makes the comparison fail.
    pub fails: bool,
}

/// A cell of both runs without a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotComparable {
    /// The cell's levels of [`Comparison::factors`].
    pub levels: Levels,
    /// The cell's levels of all factors.
    pub all_levels: Levels,
    /// The kind of reason.
    pub why: NotComparedReason,
    /// The reason in words.
    pub reason: String,
    /// Whether the cell makes the comparison fail.
    pub fails: bool,
}

/// Why a cell of both runs is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotComparedReason {
    /// The line's rate differs; all other levels are the same.
    LineRate,
    /// The levels have the same names, but what was built differs.
    BuiltDifferently,
    /// The cell was measured in the run before, and every sample of it in the run after is invalid.
    NoLongerMeasured,
    /// One of the runs, or both, has no valid sample of the cell.
    NotMeasured,
}

/// Compares a run with an earlier one.
pub fn compare(before: Compared<'_>, after: Compared<'_>, strictness: Strictness) -> Comparison {
    compare_cells(before, after, strictness, false)
}

/// Compares two runs. `manual`: these are results of `wirecost load`, for which nothing was built; cells of the same
/// loads are then compared whatever their options.
fn compare_cells(
    before: Compared<'_>,
    after: Compared<'_>,
    strictness: Strictness,
    manual: bool,
) -> Comparison {
    let experiments = [before, after].map(|side| &side.run.head.experiment);
    let matching = matching::match_cells(experiments[0], experiments[1]);
    let worth = experiments[1].plan.repeat.worth;
    let factors = matching::varied_factors(experiments[0], experiments[1]);
    let disturbed = disturbed(before, after);
    let (cells, mut not_comparable) = cells::cells(
        [before, after],
        &matching,
        &factors,
        strictness,
        disturbed.as_ref(),
        manual,
    );
    let only = |cells: &[matching::KeyedCell<'_>]| -> Vec<Levels> {
        cells.iter().map(|keyed| keyed.levels.clone()).collect()
    };
    let (only_before, only_after) = (only(&matching.only_before), only(&matching.only_after));
    for cell in &mut not_comparable {
        cell.fails = match cell.why {
            NotComparedReason::NoLongerMeasured => strictness.fail_on >= FailOn::Costs,
            _ => strictness.fail_on >= FailOn::CannotTell,
        };
    }
    let figures = cells.iter().flat_map(|cell| &cell.figures);
    let mut failures = figures.filter(|figure| figure.fails).count();
    failures += not_comparable.iter().filter(|cell| cell.fails).count();
    if strictness.fail_on >= FailOn::CannotTell {
        failures += only_before.len();
    }
    let lost = |cell: &NotComparable| cell.fails && cell.why == NotComparedReason::NoLongerMeasured;
    let conclusion = if cells.is_empty() && !not_comparable.iter().any(lost) {
        Conclusion::NothingComparable
    } else if failures > 0 {
        Conclusion::Regression
    } else if disturbed.is_some() && !cells.is_empty() {
        Conclusion::CannotTell
    } else {
        Conclusion::NoRegression
    };
    Comparison {
        conclusion,
        fail_on: strictness.fail_on,
        by_corrected: strictness.corrected,
        failures: failures as u32,
        before: side(before),
        after: side(after),
        differences: differences::differences(&before.run.head, &after.run.head),
        notes: caveats(before, after, &matching),
        worth,
        shifts: cells::shifts(&cells),
        factors,
        cells,
        not_comparable,
        only_before,
        only_after,
    }
}

/// Why no figure can be compared: one of the runs was disturbed, and the other not in the same way.
fn disturbed(before: Compared<'_>, after: Compared<'_>) -> Option<Remark> {
    let sides = [(before, "before"), (after, "after")];
    let reasons: Vec<String> = sides
        .into_iter()
        .filter_map(|(side, which)| Some(format!("{which}, {}", trust::disturbed(side.document)?)))
        .collect();
    (!reasons.is_empty()).then(|| Remark {
        kind: RemarkKind::Disturbed,
        text: reasons.join("; "),
        advice: "measure again on a quiet machine".into(),
    })
}

/// Checks, before a run of `planned` starts, that it can be compared with `before`.
///
/// # Errors
/// Why not, in one line for the user: no cell in common, or no valid sample of such a cell in `before`.
pub fn comparable(before: Compared<'_>, planned: &Experiment) -> Result<(), String> {
    // A datapath that the run is to choose is not known yet: the earlier run's is assumed.
    let earlier = &before.run.head.experiment;
    let chosen = match earlier.cells.first() {
        Some(cell) if planned.plan.datapath.is_empty() => {
            planned.clone().with_datapath(cell.network.datapath)
        }
        _ => planned.clone(),
    };
    let chosen = chosen.resolved();
    let matching = matching::match_cells(earlier, &chosen);
    let of_both: Vec<u32> = matching
        .pairs
        .iter()
        .filter(|pair| pair.not_comparable().is_none())
        .map(|pair| pair.before.index)
        .collect();
    if of_both.is_empty() {
        return Err("no cell of the plan is one of that run's: \
             `wirecost report RUN_DIR` shows its cells, `wirecost run PLAN --dry-run` those of the plan"
            .into());
    }
    let measured = |cell: &u32| {
        let mut cells = before.document.cells.iter();
        cells.any(|one| one.cell == *cell && one.valid > 0)
    };
    if of_both.iter().any(measured) {
        Ok(())
    } else {
        Err("that run has no valid sample of any cell of the plan".into())
    }
}

fn side(of: Compared<'_>) -> Side {
    let doc = of.document;
    Side {
        run_dir: doc.run_dir.clone(),
        name: doc.name.clone(),
        started: doc.started.clone(),
        program_version: doc.program_version.clone(),
        record_version: doc.record_version,
        outcome: doc.outcome,
        rounds_done: doc.rounds_done,
        samples: doc.samples,
        invalid: doc.invalid.len() as u32,
        marked: doc.measured().map(|cell| cell.marked).sum(),
        trust: doc.trust.clone(),
    }
}
