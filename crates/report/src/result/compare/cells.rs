//! Compares the figures of matched cells, and computes the shift that all cells share.

use std::collections::BTreeMap;

use wirecost_model::cell::Experiment;
use wirecost_model::cell::Factor;
use wirecost_model::effect::{Remark, Verdict};
use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure as Measured, Metric};
use wirecost_model::plan::Levels;
use wirecost_stats::{Corrected, FigureSamples, FigureVerdict, judge, summary};

use super::guard;
use super::matching::{MatchedCells, Pair};
use super::{
    Compared, ComparedCell, FailOn, Figure, NotComparable, NotComparedReason, Shift, Strictness,
};

/// Compares the matched cells; returns those that cannot be compared separately, with the reason.
pub(super) fn cells(
    [before, after]: [Compared<'_>; 2],
    matching: &MatchedCells<'_>,
    factors: &[Factor],
    strictness: Strictness,
    disturbed: Option<&Remark>,
    manual: bool,
) -> (Vec<ComparedCell>, Vec<NotComparable>) {
    let shared = shared(&before.run.head.experiment, &after.run.head.experiment);
    let (mut cells, mut not_comparable) = (Vec::new(), Vec::new());
    let (mut sides, mut founds) = (Vec::new(), Vec::new());
    for pair in &matching.pairs {
        let why = pair
            .not_comparable()
            .filter(|_| !manual)
            .or_else(|| not_measured(before, after, pair, &shared));
        if let Some((why, reason)) = why {
            not_comparable.push(NotComparable {
                levels: shown(&pair.levels, factors),
                all_levels: pair.levels.clone(),
                why,
                reason,
                fails: false,
            });
            continue;
        }
        let figures = of(pair, &shared);
        for figure in figures {
            let (from, to) = (
                values(before, pair.before.index, figure),
                values(after, pair.after.index, figure),
            );
            let found = guard::comparability([before, after], pair, figure, disturbed);
            let is_coarse = [&from, &to].into_iter().any(Option::is_none);
            let found = guard::reject_coarse(found, is_coarse);
            // Only figures that get a verdict belong to the family of the correction.
            let spoken = found.not_comparable.is_none();
            let side = |values: Option<Vec<f64>>| values.unwrap_or_default();
            let these = FigureSamples {
                from: side(from),
                to: side(to),
                better: figure.metric.better(),
            };
            sides.push((these, spoken));
            founds.push(found);
        }
        cells.push((pair, of(pair, &shared)));
    }
    let worth = after.run.head.experiment.plan.repeat.worth;
    let mut judged = judge_spoken(&sides, worth)
        .into_iter()
        .zip(sides)
        .zip(founds);
    let cells = cells
        .into_iter()
        .map(|(pair, figures)| ComparedCell {
            before_cell: pair.before.index,
            after_cell: pair.after.index,
            levels: shown(&pair.levels, factors),
            all_levels: pair.levels.clone(),
            figures: figures
                .into_iter()
                .zip(judged.by_ref())
                .map(
                    |(Measured { load, metric }, ((judged, (sides, _)), found))| {
                        let verdict = if strictness.corrected {
                            judged.corrected.verdict
                        } else {
                            judged.verdict
                        };
                        let workload = workload(pair, load);
                        Figure {
                            load: load.clone(),
                            workload,
                            metric: *metric,
                            unit: metric.unit_of(workload).0,
                            better: metric.better(),
                            before: summary(sides.from),
                            after: summary(sides.to),
                            judged,
                            not_comparable: found.not_comparable,
                            remarks: found.remarks,
                            fails: fails(verdict, strictness.fail_on),
                        }
                    },
                )
                .collect(),
        })
        .collect();
    (cells, not_comparable)
}

/// Judges the comparable figures as one family; of the others keeps the ratio alone.
fn judge_spoken(sides: &[(FigureSamples, bool)], worth: f64) -> Vec<FigureVerdict> {
    let of = |spoken: bool| -> Vec<FigureSamples> {
        let these = sides.iter().filter(|(_, speaks)| *speaks == spoken);
        these.map(|(sides, _)| sides.clone()).collect()
    };
    let mut spoken = judge(&of(true), worth).into_iter();
    let mut barred = judge(&of(false), worth)
        .into_iter()
        .map(|judged| FigureVerdict {
            verdict: Verdict::NotComparable,
            rank_verdict: None,
            corrected: Corrected {
                verdict: Verdict::NotComparable,
                p: None,
                adjusted_p: None,
                claim_p: None,
                adjusted_claim_p: None,
            },
            ..judged
        });
    let next = |(_, speaks): &(FigureSamples, bool)| {
        if *speaks {
            spoken.next()
        } else {
            barred.next()
        }
    };
    sides.iter().filter_map(next).collect()
}

/// The figures that both runs have. Where the hosts of one run share their cores, its CPU figure is the
/// machine's and not a host's, so the runs have none in common.
fn shared(before: &Experiment, after: &Experiment) -> Vec<Measured> {
    let after = after.figures();
    let mut both = before.figures();
    both.retain(|figure| after.contains(figure));
    both
}

/// The shared figures that a cell has: those of its loads, and CPU only where one load runs alone.
fn of<'a>(pair: &Pair<'_>, shared: &'a [Measured]) -> Vec<&'a Measured> {
    let cell = pair.after;
    let has = |figure: &&Measured| {
        let mixed = cell.loads.len() > 1 && figure.metric.is_cpu();
        !mixed && cell.load(&figure.load).is_some()
    };
    shared.iter().filter(has).collect()
}

/// The workload of one of the pair's loads.
fn workload(pair: &Pair<'_>, load: &str) -> Workload {
    let named = pair.after.load(load);
    named.map_or(Workload::TcpStream, |named| named.load.workload)
}

fn fails(verdict: Verdict, fail_on: FailOn) -> bool {
    let needs = match verdict {
        Verdict::Costs => FailOn::Costs,
        Verdict::Loses => FailOn::Loses,
        Verdict::CannotTellYet | Verdict::NotComparable => FailOn::CannotTell,
        Verdict::Pays | Verdict::Gains | Verdict::MakesNoDifference => return false,
    };
    fail_on >= needs
}

/// Why a cell is not compared where one of the runs has no valid sample with a figure of it.
fn not_measured(
    before: Compared<'_>,
    after: Compared<'_>,
    pair: &Pair<'_>,
    shared: &[Measured],
) -> Option<(NotComparedReason, String)> {
    let (was, is) = (pair.before.index, pair.after.index);
    let figures = of(pair, shared);
    let measured = |run: Compared<'_>, cell| {
        let mut figures = figures.iter().filter(|figure| !figure.metric.is_cpu());
        figures.any(|figure| values(run, cell, figure).is_some_and(|values| !values.is_empty()))
    };
    let why = match (measured(before, was), measured(after, is)) {
        (true, true) => return None,
        (true, false) => {
            let sums = after.document.gathered.cells.get(&is);
            match sums.and_then(|sums| sums.last_invalid.as_ref()) {
                Some(invalid) => {
                    let reason = format!("no valid sample any more: {}", invalid.reason());
                    return Some((NotComparedReason::NoLongerMeasured, reason));
                }
                None => "no valid sample after",
            }
        }
        (false, true) => "no valid sample before",
        (false, false) => "no valid sample in either run",
    };
    Some((NotComparedReason::NotMeasured, why.into()))
}

/// The values of one figure in a cell's valid samples ([`crate::result::values`]).
fn values(run: Compared<'_>, cell: u32, figure: &Measured) -> Option<Vec<f64>> {
    crate::result::values::values(&run.document.gathered.observed, cell, figure)
}

fn shown(levels: &Levels, factors: &[Factor]) -> Levels {
    let is_varied = |key: &str| factors.iter().any(|factor| factor.key == key);
    let levels = levels.iter().filter(|(key, _)| is_varied(key));
    levels
        .map(|(key, level)| (key.clone(), level.clone()))
        .collect()
}

/// The shift of all cells, for each metric of each load that two cells or more have.
pub(super) fn shifts(cells: &[ComparedCell]) -> Vec<Shift> {
    let mut ratios: BTreeMap<(&str, Metric, Workload), Vec<f64>> = BTreeMap::new();
    for figure in cells.iter().flat_map(|cell| &cell.figures) {
        if let Some(ratio) = figure.judged.unpaired.ratio {
            let of = (figure.load.as_str(), figure.metric, figure.workload);
            ratios.entry(of).or_default().push(ratio);
        }
    }
    ratios
        .into_iter()
        .filter(|(_, ratios)| ratios.len() > 1)
        .map(|((load, metric, workload), mut ratios)| {
            ratios.sort_by(f64::total_cmp);
            let n = ratios.len();
            Shift {
                load: load.to_owned(),
                workload,
                metric,
                cells: n as u32,
                // The mean of the two middle ratios on the log scale.
                median: (ratios[(n - 1) / 2] * ratios[n / 2]).sqrt(),
                min: ratios[0],
                max: ratios[n - 1],
            }
        })
        .collect()
}
