//! Guard before a verdict: whether a cell differs between two runs in something else that decides its figures.

use wirecost_model::cell::Cell;
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::metric::Figure;
use wirecost_stats::ENOUGH_STEPS;
use wirecost_stats::comparable::{Comparability, Evidence, Subject, comparability as between};

use super::Compared;
use super::matching::Pair;

/// Looks for what rules out a verdict on a figure. In a `disturbed` run no figure can be compared.
pub(super) fn comparability(
    [before, after]: [Compared<'_>; 2],
    pair: &Pair<'_>,
    figure: &Figure,
    disturbed: Option<&Remark>,
) -> Comparability {
    if let Some(disturbed) = disturbed {
        return Comparability {
            not_comparable: Some(disturbed.clone()),
            ..Comparability::default()
        };
    }
    let both = evidence(before, pair.before, figure).zip(evidence(after, pair.after, figure));
    both.map_or_else(Comparability::default, |(from, to)| {
        between(&Subject::Runs, &from, &to, figure.metric)
    })
}

/// Evidence of a run's samples about one cell's load; `None` where the cell does not run the load.
fn evidence<'a>(run: Compared<'a>, cell: &'a Cell, figure: &Figure) -> Option<Evidence<'a>> {
    let load = cell.load(&figure.load)?;
    run.document.gathered.observed.evidence(cell, load)
}

/// Also rules out a figure for which the busy time of a run is too few steps of its counter (`is_coarse`).
pub(super) fn reject_coarse(mut found: Comparability, is_coarse: bool) -> Comparability {
    if is_coarse && found.not_comparable.is_none() {
        found.not_comparable = Some(Remark {
            kind: RemarkKind::Resolution,
            text: format!(
                "in one of the runs the cores were busy for fewer than {ENOUGH_STEPS} ticks of their counter"
            ),
            advice: "measure longer windows or more rounds".into(),
        });
    }
    found
}
