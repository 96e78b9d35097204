//! Whether one cell in two runs differs in something that decides its figures, whatever is asked about.

use wirecost_model::cell::Cell;
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::metric::Figure;
use wirecost_stats::ENOUGH_STEPS;
use wirecost_stats::comparable::{Comparability, Evidence, Subject, look as between};

use super::Compared;
use super::matching::Pair;

/// Nothing of a disturbed run can be compared.
pub(super) fn look(
    [before, after]: [Compared<'_>; 2],
    pair: &Pair<'_>,
    figure: &Figure,
    disturbed: Option<&Remark>,
) -> Comparability {
    if let Some(disturbed) = disturbed {
        return Comparability {
            barred: Some(disturbed.clone()),
            ..Comparability::default()
        };
    }
    let both = evidence(before, pair.before, figure).zip(evidence(after, pair.after, figure));
    both.map_or_else(Comparability::default, |(from, to)| {
        between(&Subject::Runs, &from, &to, figure.metric)
    })
}

/// What a run's samples say of one cell's load; `None` where the cell does not run it.
fn evidence<'a>(run: Compared<'a>, cell: &'a Cell, figure: &Figure) -> Option<Evidence<'a>> {
    let load = cell.load(&figure.load)?;
    run.document.gathered.observed.evidence(cell, load)
}

/// Bars what the counter of a run's cores cannot tell.
pub(super) fn or_coarse(mut found: Comparability, is_coarse: bool) -> Comparability {
    if is_coarse && found.barred.is_none() {
        found.barred = Some(Remark {
            kind: RemarkKind::Resolution,
            text: format!(
                "in one of the runs the cores were busy for fewer than {ENOUGH_STEPS} ticks of their counter"
            ),
            advice: "measure longer windows or more rounds".into(),
        });
    }
    found
}
