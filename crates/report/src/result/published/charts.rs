//! A study's own charts: bars of published figures, and of the measured ones.

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::comparison_cells::cells_with;
use wirecost_model::plan::Levels;
use wirecost_model::published::{Published, PublishedChart, PublishedValue};
use wirecost_stats::summary;

use crate::result::document::{BarsOf, ChartBar, ChartGroup, ChartResult, ComparisonResult};
use crate::result::gathered::Gathered;

/// Every chart of a plan.
pub(super) fn results(
    experiment: &Experiment,
    published: &Published,
    gathered: &Gathered,
    comparisons: &[ComparisonResult],
) -> Vec<ChartResult> {
    let charts = published.charts.iter();
    charts
        .map(|chart| {
            let of_chart: Vec<&ComparisonResult> = comparisons
                .iter()
                .filter(|one| one.metric == chart.metric && is_in(chart, one))
                .collect();
            let has_figures = of_chart
                .iter()
                .any(|one| matches!(one.published, Some(PublishedValue::Values(_))));
            let of = match of_chart.iter().any(|one| one.is_difference) {
                _ if has_figures || of_chart.is_empty() => BarsOf::Figures,
                true => BarsOf::Differences,
                false => BarsOf::Changes,
            };
            let levels = experiment.factors.iter().find(|one| one.key == chart.by);
            let levels = levels.map_or(&[][..], |factor| &factor.levels);
            let groups = levels.iter().map(|level| ChartGroup {
                level: level.clone(),
                bars: match of {
                    BarsOf::Figures => figures(experiment, gathered, chart, level, &of_chart),
                    BarsOf::Differences | BarsOf::Changes => changes(chart, level, of, &of_chart),
                },
            });
            ChartResult {
                title: chart.title.clone(),
                metric: chart.metric,
                unit: match of {
                    BarsOf::Changes => "%",
                    BarsOf::Figures | BarsOf::Differences => chart.metric.unit().0,
                },
                of,
                by: chart.by.clone(),
                groups: groups.filter(|group| !group.bars.is_empty()).collect(),
            }
        })
        .collect()
}

/// Whether both cells of a comparison have the levels that the chart is restricted to.
fn is_in(chart: &PublishedChart, one: &ComparisonResult) -> bool {
    let mut levels = chart.levels.iter();
    levels.all(|(key, level)| {
        let mut cells = one.cells.iter();
        cells.all(|cell| cell.get(key).is_none_or(|own| own == level))
    })
}

/// A bar for each cell of a group.
fn figures(
    experiment: &Experiment,
    gathered: &Gathered,
    chart: &PublishedChart,
    level: &str,
    comparisons: &[&ComparisonResult],
) -> Vec<ChartBar> {
    let published_of = |cell: &Cell| {
        comparisons.iter().find_map(|one| {
            let Some(PublishedValue::Values(values)) = one.published else {
                return None;
            };
            let is = |levels: &wirecost_model::plan::Levels| {
                let mut levels = levels.iter();
                levels.all(|(key, level)| cell.levels.get(key) == Some(level))
            };
            let at = one.cells.iter().position(is)?;
            Some(values[at])
        })
    };
    cells_with(experiment, &chart.levels)
        .filter(|cell| cell.levels.get(&chart.by).is_some_and(|own| own == level))
        .map(|cell| {
            let column =
                gathered
                    .outcomes
                    .column(&gathered.observed, experiment, cell, chart.metric);
            ChartBar::of(
                chart.label(&cell.levels),
                published_of(cell),
                summary(column.into_iter().map(|(_, value)| value)),
            )
        })
        .filter(|bar| bar.published.is_some() || bar.here.is_some())
        .collect()
}

/// A bar for each comparison of a group.
fn changes(
    chart: &PublishedChart,
    level: &str,
    of: BarsOf,
    comparisons: &[&ComparisonResult],
) -> Vec<ChartBar> {
    let shown = |value: f64| match of {
        BarsOf::Changes => (value - 1.0) * 100.0,
        BarsOf::Figures | BarsOf::Differences => value,
    };
    let of_group = comparisons.iter().filter(|one| {
        let mut cells = one.cells.iter();
        cells.all(|cell| cell.get(&chart.by).is_some_and(|own| own == level))
    });
    let bars = of_group.filter(|one| one.is_difference == (of == BarsOf::Differences));
    // Figures of the same cells from another testbed are in the table alone.
    let mut drawn: Vec<&[Levels; 2]> = Vec::new();
    let bars = bars.filter(|one| {
        let is_new = !drawn.contains(&&one.cells);
        drawn.push(&one.cells);
        is_new
    });
    bars.map(|one| ChartBar {
        label: chart.label(&one.cells[1]),
        published: one.compared_with().map(shown),
        is_loose: one.inferred || matches!(one.published, Some(PublishedValue::AtMost(_))),
        here: one.here.map(shown),
        low: one.low.map(shown),
        high: one.high.map(shown),
    })
    .collect()
}
