//! One run against another: cells matched by what was varied, what differs besides, effects with
//! a verdict each, and whether that is a regression.

mod by_hand;
mod caveats;
mod cells;
mod differences;
mod guard;
mod matching;

use serde::Serialize;
use wirecost_model::cell::{Experiment, Factor};
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::metric::{Direction, Metric};
use wirecost_model::plan::Levels;
use wirecost_model::record::Run;
use wirecost_stats::{FigureVerdict, Summary};

use self::caveats::caveats;
use crate::result::document::{Document, Ending, Trust};
use crate::result::run::RunResult;
use crate::result::trust;

pub use by_hand::{ByHand, compare_by_hand};
pub(crate) use differences::TRANSIT;
pub use differences::{Area, Difference};

/// A run, and its result as `document` works it out.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The record.
    pub run: &'a Run,
    /// The result.
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

/// What makes a comparison fail. Each fails what the one before it fails, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailOn {
    /// Nothing.
    Never,
    /// `costs`, and a cell that was measured before and of which every sample is invalid now.
    Costs,
    /// `loses` as well: certainly worse, perhaps within the margin.
    Loses,
    /// Whatever is not shown to be no worse: `cannot tell yet`, and cells of the run before that
    /// were not compared.
    CannotTell,
}

/// How verdicts become success or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strictness {
    /// Which verdicts fail.
    pub fail_on: FailOn,
    /// Whether it is the verdicts corrected for the number of figures that count.
    pub corrected: bool,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Nothing fails.
    NoRegression,
    /// Something does.
    Regression,
    /// Too many samples of a run were disturbed for anything to be told.
    CannotTell,
    /// No figure of any cell exists in both runs.
    NothingComparable,
}

/// One run against another: the JSON contract. Its names are stable; what is added later is added
/// beside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What it comes to.
    pub conclusion: Conclusion,
    /// Which verdicts fail.
    pub fail_on: FailOn,
    /// Whether the corrected verdicts count.
    pub by_corrected: bool,
    /// How many figures and cells fail.
    pub failures: u32,
    /// The run compared with.
    pub before: Side,
    /// The run compared.
    pub after: Side,
    /// What may make them differ beside what is asked about.
    pub differences: Vec<Difference>,
    /// What has to be known before one relies on it, in words.
    pub notes: Vec<String>,
    /// The smallest change worth having, a fraction: that of `after`'s plan.
    pub worth: f64,
    /// What all cells share, for each metric; none where fewer than two cells were compared.
    pub shifts: Vec<Shift>,
    /// The factors that tell the cells of the two runs apart.
    pub factors: Vec<Factor>,
    /// The cells that both runs have, in `after`'s order.
    pub cells: Vec<ComparedCell>,
    /// Cells that both have and that cannot be compared.
    pub not_comparable: Vec<NotComparable>,
    /// Levels of the cells of `before` alone.
    pub only_before: Vec<Levels>,
    /// Levels of the cells of `after` alone.
    pub only_after: Vec<Levels>,
}

/// One of the two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The run directory.
    pub run_dir: String,
    /// The plan's name.
    pub name: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// Version of the program that made it.
    pub program_version: String,
    /// Version of its record.
    pub record_version: u32,
    /// How it ended.
    pub outcome: Ending,
    /// Rounds in which every cell has its sample.
    pub rounds_done: u32,
    /// Samples taken.
    pub samples: u32,
    /// Of these, those that are not valid and left out.
    pub invalid: u32,
    /// Of these, those that may have been disturbed, and count.
    pub marked: u32,
    /// Whether it can be relied on.
    pub trust: Trust,
}

/// How all cells together moved: the machine, as far as what is asked about is not in every cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// The load whose figure it is.
    pub load: String,
    /// The figure.
    pub metric: Metric,
    /// Cells that were compared.
    pub cells: u32,
    /// Median of their ratios after / before.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// A cell of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    /// Its number in `before`.
    pub before_cell: u32,
    /// Its number in `after`.
    pub after_cell: u32,
    /// Its levels of [`Comparison::factors`].
    pub levels: Levels,
    /// Its levels of all factors.
    pub all_levels: Levels,
    /// Its figures, with a verdict each.
    pub figures: Vec<Figure>,
}

/// One figure of one cell in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The load.
    pub load: String,
    /// The figure.
    pub metric: Metric,
    /// The unit of `before` and `after`.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Direction,
    /// The valid samples of the run compared with.
    pub before: Option<Summary>,
    /// The valid samples of the run compared.
    pub after: Option<Summary>,
    /// The effect and what follows; ratios are after / before.
    #[serde(flatten)]
    pub judged: FigureVerdict,
    /// Why it is not comparable, where the verdict says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<Remark>,
    /// Differences between the two runs of the cell that do not forbid the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Whether it makes the comparison fail.
    pub fails: bool,
}

/// A cell of both runs without a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotComparable {
    /// Its levels of [`Comparison::factors`].
    pub levels: Levels,
    /// Its levels of all factors.
    pub all_levels: Levels,
    /// The reason.
    pub why: Why,
    /// The reason in words.
    pub reason: String,
    /// Whether it makes the comparison fail.
    pub fails: bool,
}

/// Why a cell of both runs is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// All levels but the line's rate are the same.
    LineRate,
    /// The names of the levels are the same, and what was built is not.
    BuiltDifferently,
    /// It was measured before, and after it every sample is invalid.
    NoLongerMeasured,
    /// A run has no valid sample of it.
    NotMeasured,
}

/// Compares a run with an earlier one.
pub fn compare(before: Compared<'_>, after: Compared<'_>, strictness: Strictness) -> Comparison {
    compare_cells(before, after, strictness, false)
}

/// The same; of loads `by_hand` nothing was built, and cells of the same loads are compared whatever their options.
fn compare_cells(
    before: Compared<'_>,
    after: Compared<'_>,
    strictness: Strictness,
    by_hand: bool,
) -> Comparison {
    let experiments = [before, after].map(|side| &side.run.head.experiment);
    let matching = matching::matching(experiments[0], experiments[1]);
    let worth = experiments[1].plan.repeat.worth;
    let factors = matching::telling(experiments[0], experiments[1]);
    let disturbed = disturbed(before, after);
    let (cells, mut not_comparable) = cells::cells(
        [before, after],
        &matching,
        &factors,
        strictness,
        disturbed.as_ref(),
        by_hand,
    );
    let only = |cells: &[matching::Keyed<'_>]| -> Vec<Levels> {
        cells.iter().map(|keyed| keyed.levels.clone()).collect()
    };
    let (only_before, only_after) = (only(&matching.only_before), only(&matching.only_after));
    for cell in &mut not_comparable {
        cell.fails = match cell.why {
            Why::NoLongerMeasured => strictness.fail_on >= FailOn::Costs,
            _ => strictness.fail_on >= FailOn::CannotTell,
        };
    }
    let figures = cells.iter().flat_map(|cell| &cell.figures);
    let mut failures = figures.filter(|figure| figure.fails).count();
    failures += not_comparable.iter().filter(|cell| cell.fails).count();
    if strictness.fail_on >= FailOn::CannotTell {
        failures += only_before.len();
    }
    let lost = |cell: &NotComparable| cell.fails && cell.why == Why::NoLongerMeasured;
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

/// Why nothing can be told: whatever disturbed one of the runs did not disturb the other in the same way.
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

/// Whether a run of `planned` could be compared with `before`, or why not: a line for whoever is
/// about to start it.
pub fn comparable(before: Compared<'_>, planned: &Experiment) -> Result<(), String> {
    // What the run is to choose is not known yet: it is taken for what the earlier one had.
    let earlier = &before.run.head.experiment;
    let chosen = match earlier.cells.first() {
        Some(cell) if planned.plan.datapath.is_empty() => {
            planned.clone().with_datapath(cell.network.datapath)
        }
        _ => planned.clone(),
    };
    let chosen = chosen.settled();
    let matching = matching::matching(earlier, &chosen);
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
        marked: doc.cells.iter().map(|cell| cell.marked).sum(),
        trust: doc.trust.clone(),
    }
}
