//! Published comparisons, each with what was measured in its two cells.

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::effect::Effect;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::published::{Outcome, Published, PublishedComparison, PublishedValue};
use wirecost_stats::published::{Agreement, agreement, by_rule, difference, logs};
use wirecost_stats::sequential::lasting_ratio;
use wirecost_stats::{Contrast, Interval, PairedRatio, contrasts_of};

use crate::result::adaptive::IntervalBasis;
use crate::result::document::{ComparisonResult, NoRatio};
use crate::result::effects::judged;
use crate::result::gathered::Gathered;

/// Reason for a comparison without measured figures.
const NOT_MEASURED: &str = "no round has a valid sample of both cells with this figure";

/// Reason for not comparing busy time where all cores are full.
const SATURATED: &str = "the cores are full in both cells";

/// Reason for not comparing a share of responses that was published to rise.
const ALL_WITHIN: &str = "nearly all responses are within 500 us in both cells";

/// Every comparison of a plan.
pub(super) fn results(
    experiment: &Experiment,
    published: &Published,
    gathered: &Gathered,
    basis: IntervalBasis,
) -> Vec<ComparisonResult> {
    let wanted: Vec<Option<(Figure, [&Cell; 2])>> = published
        .comparisons
        .iter()
        .map(|one| wanted(experiment, one))
        .collect();
    let known: Vec<(Figure, [&Cell; 2])> = wanted.iter().flatten().cloned().collect();
    let mut contrasts = contrasts_of(experiment, &gathered.observed, &known).into_iter();
    published
        .comparisons
        .iter()
        .zip(&wanted)
        .map(|(one, wanted)| {
            let compared = wanted.as_ref().and_then(|(_, cells)| {
                let contrast = contrasts.next()?;
                Some((contrast, *cells))
            });
            let measuring = Measuring {
                experiment,
                published,
                gathered,
                basis,
            };
            measuring.result(one, compared.as_ref())
        })
        .collect()
}

/// The two cells, and the figure for which the guard checks them: for an outcome that gets no verdict, the load's
/// first.
fn wanted<'a>(
    experiment: &'a Experiment,
    one: &'a PublishedComparison,
) -> Option<(Figure, [&'a Cell; 2])> {
    let cells = one.cells(experiment)?;
    let load = one.metric.load(experiment, cells)?;
    let metric = if let Outcome::Of(metric) = one.metric {
        metric
    } else {
        let workload = cells[0].load(load)?.load.workload;
        *Metric::of(workload, experiment.plan.cores).first()?
    };
    let load = load.to_owned();
    Some((Figure { load, metric }, cells))
}

/// Whether the second cell's figure was published to be the higher one.
fn rises(value: PublishedValue, worth: f64) -> bool {
    match value {
        PublishedValue::Difference(by) => by > 0.0,
        PublishedValue::Values(_) | PublishedValue::Ratio(_) | PublishedValue::AtMost(_) => {
            value.ratio().is_some_and(|ratio| ratio > 1.0 + worth)
        }
    }
}

/// The data that comparisons are computed from.
struct Measuring<'a> {
    experiment: &'a Experiment,
    published: &'a Published,
    gathered: &'a Gathered,
    basis: IntervalBasis,
}

/// The measured side of a comparison.
#[derive(Default)]
struct Measured {
    here: Option<f64>,
    interval: Option<Interval>,
}

impl Measuring<'_> {
    fn result(
        &self,
        one: &PublishedComparison,
        compared: Option<&(Contrast, [&Cell; 2])>,
    ) -> ComparisonResult {
        let worth = self.experiment.plan.repeat.worth;
        let is_difference = matches!(
            one.value,
            Some(PublishedValue::Difference(_) | PublishedValue::AtMost(_))
        );
        let columns = compared.map(|(_, cells)| {
            cells.map(|cell| {
                let Gathered {
                    observed, outcomes, ..
                } = self.gathered;
                outcomes.column(observed, self.experiment, cell, one.metric)
            })
        });
        let columns = columns.unwrap_or_default();
        let effect = compared.map(|(contrast, _)| judged(contrast, worth, self.basis));
        let measured = if is_difference {
            self.difference(&columns)
        } else {
            self.ratio(one, &columns, effect.as_ref())
        };
        let barred = effect
            .as_ref()
            .and_then(|effect| effect.not_comparable.as_ref())
            .map(|remark| remark.text.clone());
        let mean = |at: usize| {
            wirecost_stats::summary(columns[at].iter().map(|(_, value)| *value))
                .map(|summary| summary.mean)
        };
        // Percent above which a share cannot rise by the margin any more.
        let most = 100.0 / (1.0 + worth);
        let full = [0, 1].iter().all(|&at| mean(at) >= Some(most));
        let ceiling = match one.metric {
            _ if !full => None,
            Outcome::HostsCpu | Outcome::ClientHostCpu | Outcome::ServerHostCpu => Some(SATURATED),
            Outcome::Within500us => one
                .value
                .filter(|value| rises(*value, worth))
                .map(|_| ALL_WITHIN),
            _ => None,
        };
        let reason = barred
            .or_else(|| {
                let lacks = measured.here.is_none();
                lacks.then(|| self.not_measured(compared, one.metric).to_owned())
            })
            .or_else(|| ceiling.map(str::to_owned));
        let found = one.value.map(|value| match &reason {
            Some(_) => Agreement::NotComparable,
            None => agreement(value, measured.interval, worth),
        });
        let values = |at: usize| {
            columns[at]
                .iter()
                .map(|(_, value)| *value)
                .collect::<Vec<_>>()
        };
        let ruled = |at: usize| by_rule(self.published.rule?, &values(at), one.metric.better());
        ComparisonResult {
            what: one.what.clone(),
            metric: one.metric,
            unit: one.metric.unit().0,
            cells: one.cells.clone(),
            published: one.value,
            inferred: one.inferred,
            note: one.note.clone(),
            here: measured.here,
            low: measured.interval.map(|interval| interval.low),
            high: measured.interval.map(|interval| interval.high),
            is_difference,
            figures: [mean(0), mean(1)],
            by_rule: [ruled(0), ruled(1)],
            rounds: effect.as_ref().map_or(0, |effect| effect.rounds),
            agreement: found,
            reason,
        }
    }

    /// Why a comparison has no measured figures.
    fn not_measured(
        &self,
        compared: Option<&(Contrast, [&Cell; 2])>,
        outcome: Outcome,
    ) -> &'static str {
        let is_sparse = compared.is_some_and(|(contrast, cells)| {
            let figure = Figure {
                load: contrast.load.clone(),
                metric: contrast.metric,
            };
            let observed = &self.gathered.observed;
            let mut cells = cells.iter();
            cells.any(|cell| observed.is_sparse(cell.index, &figure))
        });
        if is_sparse && matches!(outcome, Outcome::Of(_)) {
            NoRatio::TooFewTransactions.words()
        } else {
            NOT_MEASURED
        }
    }

    /// The measured difference, paired within rounds; without an interval where only lasting ones are valid, of which
    /// a difference has none.
    fn difference(&self, columns: &[Vec<(u32, f64)>; 2]) -> Measured {
        let stopping = match self.basis {
            IntervalBasis::Ended(stopping) => Some(stopping),
            IntervalBasis::Looking { .. } => None,
        };
        let found = difference(&columns[0], &columns[1], stopping.unwrap_or_default());
        found.map_or_else(Measured::default, |(here, interval)| Measured {
            here: Some(here),
            interval: interval.filter(|_| stopping.is_some()),
        })
    }

    /// The measured ratio, paired within rounds.
    fn ratio(
        &self,
        one: &PublishedComparison,
        columns: &[Vec<(u32, f64)>; 2],
        effect: Option<&Effect>,
    ) -> Measured {
        let paired = if let (Outcome::Of(_), Some(effect)) = (one.metric, effect) {
            PairedRatio {
                pairs: effect.rounds,
                ratio: effect.ratio,
                low: effect.low,
                high: effect.high,
            }
        } else {
            let logs = logs(&columns[0], &columns[1]);
            match self.basis {
                IntervalBasis::Ended(stopping) => PairedRatio::of_logs(&logs, stopping),
                IntervalBasis::Looking { criterion, ends_at } => {
                    lasting_ratio(&logs, &criterion, ends_at)
                }
            }
        };
        Measured {
            here: paired.ratio,
            interval: paired.interval(),
        }
    }
}
