//! Published figures compared with measured ones.

mod charts;
mod comparisons;

use wirecost_answer::Tally;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::effect::Effect;
use wirecost_model::metric::Metric;
use wirecost_model::plan::PublishedFigure;
use wirecost_stats::published::Agreement;

use crate::result::adaptive::IntervalBasis;
use crate::result::document::{
    ComparisonResult, EffectResult, PublishedNote, PublishedRatio, PublishedResult,
};
use crate::result::gathered::Gathered;

/// The published figure for a cell: the first whose levels are all the cell's.
pub(crate) fn figure<'a>(experiment: &'a Experiment, cell: &Cell) -> Option<&'a PublishedFigure> {
    let published = experiment.plan.published.as_ref()?;
    published.figures.iter().find(|figure| {
        figure
            .levels
            .iter()
            .all(|(key, level)| cell.levels.get(key) == Some(level))
    })
}

/// Compares what the plan says that others published with what was measured; `None` where the plan has nothing
/// published.
pub(crate) fn result(
    experiment: &Experiment,
    gathered: &Gathered,
    effects: &[EffectResult],
    basis: IntervalBasis,
) -> Option<PublishedResult> {
    let published = experiment.plan.published.as_ref()?;
    let note = |figure: &PublishedFigure| {
        Some(PublishedNote {
            levels: figure.levels.clone(),
            note: figure.note.clone()?,
        })
    };
    let comparisons = comparisons::results(experiment, published, gathered, basis);
    let tally = tally(&comparisons, published.unmeasured.len());
    Some(PublishedResult {
        source: published.source.clone(),
        title: published.title.clone(),
        sentence: (tally.all() > 0).then(|| tally.sentence()),
        tally,
        environment: published.environment.clone(),
        scaled: published.scaled.clone(),
        datapath: published.ovn.then(|| datapath(experiment)).flatten(),
        rule: published.rule,
        ratios: ratios(experiment, effects.iter().map(|result| &result.effect)),
        notes: published.figures.iter().filter_map(note).collect(),
        charts: charts::results(experiment, published, gathered, &comparisons),
        comparisons,
        unmeasured: published.unmeasured.clone(),
    })
}

/// The datapath that built the cells of a study of OVN, in words.
fn datapath(experiment: &Experiment) -> Option<String> {
    let chosen = experiment.chosen.as_ref().map(ToString::to_string);
    chosen.or_else(|| {
        let built = experiment.cells.first()?.network.datapath;
        Some(format!("every cell is built by {built}"))
    })
}

/// Counts comparisons by their result; what is not measured counts as not comparable.
fn tally(comparisons: &[ComparisonResult], unmeasured: usize) -> Tally {
    let count = |wanted| {
        let mut found = 0;
        for one in comparisons {
            found += u32::from(one.agreement == Some(wanted));
        }
        found
    };
    Tally {
        agrees: count(Agreement::Agrees),
        differs: count(Agreement::Differs),
        cannot_tell: count(Agreement::CannotTell),
        not_comparable: count(Agreement::NotComparable) + unmeasured as u32,
    }
}

/// A published ratio for every effect on throughput whose two cells have different published figures.
fn ratios<'a>(
    experiment: &Experiment,
    effects: impl Iterator<Item = &'a Effect>,
) -> Vec<PublishedRatio> {
    let gbps = |effect: &Effect, level: &String| {
        let cell = experiment.cells.iter().find(|cell| {
            cell.levels.get(&effect.factor) == Some(level)
                && effect
                    .where_
                    .iter()
                    .all(|(key, level)| cell.levels.get(key).is_none_or(|own| own == level))
        })?;
        figure(experiment, cell)
    };
    effects
        .filter(|effect| effect.metric == Metric::Throughput)
        .filter_map(|effect| {
            let (from, to) = (gbps(effect, &effect.from)?, gbps(effect, &effect.to)?);
            // A figure that is for both levels says nothing about the factor.
            (from.levels != to.levels && from.gbps > 0.0).then(|| PublishedRatio {
                factor: effect.factor.clone(),
                from: effect.from.clone(),
                to: effect.to.clone(),
                where_: effect.where_.clone(),
                published: to.gbps / from.gbps,
                here: effect.ratio,
                low: effect.low,
                high: effect.high,
            })
        })
        .collect()
}
