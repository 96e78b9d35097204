//! Whether one cell in two runs differs in something that decides its figures, whatever is asked about.

use wirecost_model::cell::Cell;
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::metric::Figure;
use wirecost_model::record::Run;
use wirecost_model::sample::Sample;
use wirecost_stats::ENOUGH_STEPS;
use wirecost_stats::comparable::{Evidence, Found, Subject, look as between};

use super::matching::Pair;

/// Nothing of a disturbed run can be compared.
pub(super) fn look(
    [before, after]: [&Run; 2],
    pair: &Pair<'_>,
    figure: &Figure,
    disturbed: Option<&Remark>,
) -> Found {
    if let Some(disturbed) = disturbed {
        return Found {
            barred: Some(disturbed.clone()),
            ..Found::default()
        };
    }
    let evidence = |run: &Run, cell: &Cell, then: &mut dyn FnMut(&Evidence<'_>)| {
        let Some(load) = cell.load(&figure.load) else {
            return;
        };
        let samples = run
            .samples
            .iter()
            .filter(|sample| sample.cell == cell.index);
        let samples: Vec<&Sample> = samples.collect();
        let cost = run.head.environment.wakeup_cost;
        then(&Evidence::of(cell, load, &samples, cost));
    };
    let mut found = Found::default();
    evidence(before, pair.before, &mut |from| {
        evidence(after, pair.after, &mut |to| {
            found = between(&Subject::Runs, from, to, figure.metric);
        });
    });
    found
}

/// Bars what the counter of a run's cores cannot tell.
pub(super) fn or_coarse(mut found: Found, is_coarse: bool) -> Found {
    if is_coarse && found.barred.is_none() {
        found.barred = Some(Remark {
            kind: RemarkKind::Resolution,
            text: format!(
                "the cores were busy for fewer than {ENOUGH_STEPS} steps of their counter in one of the runs"
            ),
            advice: "measure longer windows or more rounds".into(),
        });
    }
    found
}
