//! The self-test: the first cell against its twin, between which nothing differs.

use wirecost_model::cell::Experiment;
use wirecost_model::metric::Figure;
use wirecost_stats::validity::self_test;
use wirecost_stats::{Observed, Stopping, self_test_logs};

use crate::result::adaptive::IntervalBasis;
use crate::result::document::{CellResult, MetricSelfTest, SelfTestResult};

pub(crate) fn judge(
    experiment: &Experiment,
    observed: &Observed,
    twin: CellResult,
    basis: IntervalBasis,
) -> SelfTestResult {
    let stopping = match basis {
        IntervalBasis::Ended(stopping) => stopping,
        // The self-test only warns: a warning too early is better than none.
        IntervalBasis::Looking { .. } => Stopping::Sequential,
    };
    let first = experiment.repeated();
    let measured = |figure: &Figure| {
        first.is_some_and(|cell| {
            let shares = cell.loads.len() > 1 && figure.metric.is_cpu();
            !shares && cell.load(&figure.load).is_some()
        })
    };
    let test = |figure: Figure| MetricSelfTest {
        test: self_test(
            &self_test_logs(experiment, observed, &figure),
            experiment.plan.repeat.worth,
            stopping,
        ),
        load: figure.load,
        metric: figure.metric,
    };
    SelfTestResult {
        cell: first.map_or(0, |cell| cell.index),
        twin,
        metrics: experiment
            .figures()
            .into_iter()
            .filter(measured)
            .map(test)
            .collect(),
    }
}
